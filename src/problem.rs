//! Refusals as `application/problem+json` (RFC 9457).

use std::{fmt::Write, time::Duration};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Response,
    header::{CACHE_CONTROL, CONTENT_TYPE, LINK, RETRY_AFTER},
    request::Parts,
};

use crate::value::Refusal;

/// The page that explains the names of refusals, if the application has no page of its own.
pub(crate) const TYPE_BASE: &str =
    "https://docs.rs/tower-idempotency/latest/tower_idempotency/guide/refusals/index.html";

/// Names one occurrence of a problem.
pub(crate) type Instance = dyn Fn(&Parts) -> Option<String> + Send + Sync;

/// A refusal, with what the layer knows about it.
pub(crate) struct Problem<'a> {
    pub(crate) refusal: &'a Refusal,
    /// The base of `type`, which is this base, a `#`, and the refusal's name.
    pub(crate) base: &'a str,
    /// The place where the missing or malformed value belongs.
    pub(crate) place: Option<String>,
    /// What names this occurrence, and the request's head that it depends on.
    pub(crate) instance: Option<(&'a Instance, &'a Parts)>,
    /// Whether a `Link` header also leads to the explanation.
    pub(crate) link: bool,
}

impl Problem<'_> {
    /// Returns the problem document as a response.
    pub(crate) fn render(&self) -> Response<Bytes> {
        let (refusal, kind) = (self.refusal, format!("{}#{}", self.base, self.refusal.name()));
        let status = refusal.status();
        let mut body = String::with_capacity(256);
        body.push_str("{\"type\":");
        quote(&mut body, &kind);
        body.push_str(",\"title\":");
        quote(&mut body, refusal.title());
        body.push_str(",\"status\":");
        body.push_str(status.as_str());
        body.push_str(",\"detail\":");
        quote(&mut body, &detail(refusal, self.place.as_deref()));
        body.push_str(if refusal.is_retryable() { ",\"retryable\":true" } else { ",\"retryable\":false" });
        if let Some(instance) = self.instance.and_then(|(instance, head)| instance(head)) {
            body.push_str(",\"instance\":");
            quote(&mut body, &instance);
        }
        body.push('}');
        let mut response = Response::new(Bytes::from(body));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let (true, Ok(link)) = (self.link, HeaderValue::try_from(format!("<{kind}>; rel=\"describedby\""))) {
            headers.insert(LINK, link);
        }
        response
    }
}

/// Returns what the client can do about a refusal, and where the missing or malformed value belongs.
pub(crate) fn detail(refusal: &Refusal, place: Option<&str>) -> String {
    let detail = refusal.detail();
    match place {
        Some(place) => format!("{detail} It belongs in {place}."),
        None => detail.into_owned(),
    }
}

/// Sets `Retry-After`, if the refusal is temporary and the response has none yet: to `pause`, or to the rest of the
/// running request's lease if that is shorter.
pub(crate) fn set_retry_after(response: &mut Response<Bytes>, refusal: &Refusal, pause: Duration) {
    let pause = match refusal {
        Refusal::RequestInProgress { left } => pause.min(*left),
        Refusal::NotLogged
        | Refusal::ReplayNotDecided
        | Refusal::StoreUnavailable
        | Refusal::StoreFull
        | Refusal::CommitUnknown
        | Refusal::RecordIncompatible
        | Refusal::AnswerUnreadable
        | Refusal::ServerBusy
        | Refusal::TooManyUnfinished
        | Refusal::TooManyKeys => pause,
        _ => return,
    };
    retry_after(response.headers_mut(), pause);
}

/// Sets `Retry-After`, in whole seconds, unless the response has one already.
pub(crate) fn retry_after(headers: &mut HeaderMap, pause: Duration) {
    let seconds = pause.as_secs() + u64::from(pause.subsec_nanos() > 0);
    headers.entry(RETRY_AFTER).or_insert_with(|| HeaderValue::from(seconds.max(1)));
}

/// Sets the fields that state whether a retry is useful, which SDKs follow before they look at the status: the field of
/// Stripe's own SDKs, and that of the SDKs that Stainless generates.
pub(crate) fn set_sdk_hints(headers: &mut HeaderMap, retryable: bool) {
    let value = HeaderValue::from_static(if retryable { "true" } else { "false" });
    for name in ["stripe-should-retry", "x-should-retry"] {
        headers.entry(HeaderName::from_static(name)).or_insert_with(|| value.clone());
    }
}

/// Appends `text` as a JSON string (RFC 8259, section 7).
fn quote(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            '\u{0}'..='\u{1f}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(character)); // into a string: it cannot fail
            }
            _ => out.push(character),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::KeyError;

    fn render(refusal: &Refusal) -> Response<Bytes> {
        Problem { refusal, base: "https://example.com/p", place: None, instance: None, link: false }.render()
    }

    #[test]
    fn a_problem_is_json() {
        let refusal = Refusal::KeyInvalid { error: KeyError::malformed("a \"b\"\n\\ é") };
        let response = render(&refusal);
        let problem: serde_json::Value = serde_json::from_slice(response.body()).unwrap();
        assert_eq!(problem["type"], "https://example.com/p#key-invalid");
        assert_eq!(problem["status"], 400);
        assert_eq!(problem["detail"], "a \"b\"\n\\ é.");
        assert_eq!(problem["retryable"], false);
        assert_eq!(response.headers()[CACHE_CONTROL], "no-store");
    }

    #[test]
    fn a_problem_with_all_that_there_is() {
        let place = Some("the header `X-\"Key\"`".to_owned());
        let (head, ()) = http::Request::new(()).into_parts();
        let name = |_: &Parts| Some("/orders#7".to_owned());
        let instance: Option<(&Instance, _)> = Some((&name, &head));
        let problem =
            Problem { refusal: &Refusal::KeyMissing, base: "https://example.com/p", place, instance, link: true };
        let response = problem.render();
        let problem: serde_json::Value = serde_json::from_slice(response.body()).unwrap();
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.ends_with(" It belongs in the header `X-\"Key\"`."), "{detail}");
        assert_eq!(problem["instance"], "/orders#7");
        assert_eq!(response.headers()[LINK], "<https://example.com/p#key-missing>; rel=\"describedby\"");
    }

    #[test]
    fn when_to_come_again() {
        let retry_after = |refusal: &Refusal, pause: u64| {
            let mut response = render(refusal);
            set_retry_after(&mut response, refusal, Duration::from_millis(pause));
            response.headers().get(RETRY_AFTER).map(|value| value.to_str().unwrap().to_owned())
        };
        for (left, pause, expected) in
            [(1, 5000, "1"), (1001, 5000, "2"), (30_000, 5000, "5"), (0, 5000, "1"), (30_000, 1, "1")]
        {
            let running = Refusal::RequestInProgress { left: Duration::from_millis(left) };
            assert_eq!(retry_after(&running, pause).as_deref(), Some(expected), "{left} {pause}");
        }
        assert_eq!(retry_after(&Refusal::StoreFull, 1000).as_deref(), Some("1"));
        assert_eq!(retry_after(&Refusal::DuplicateRequest, 1000), None);
    }
}
