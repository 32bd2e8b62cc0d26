//! Refusals as `application/problem+json` (RFC 9457).

use std::{fmt::Write, time::Duration};

use bytes::Bytes;
use http::{
    HeaderValue, Response,
    header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER},
};

use crate::value::Refusal;

/// Where the names of refusals are explained, if the application has no page of its own.
pub(crate) const TYPE_BASE: &str =
    "https://docs.rs/tower-idempotency/latest/tower_idempotency/guide/refusals/index.html";

/// The answer that tells a client of a refusal. `type` is `base`, a `#`, and the refusal's name.
pub(crate) fn render(refusal: &Refusal, base: &str) -> Response<Bytes> {
    let status = refusal.status();
    let mut body = String::with_capacity(256);
    body.push_str("{\"type\":");
    quote(&mut body, &format!("{base}#{}", refusal.name()));
    body.push_str(",\"title\":");
    quote(&mut body, refusal.title());
    body.push_str(",\"status\":");
    body.push_str(status.as_str());
    body.push_str(",\"detail\":");
    quote(&mut body, &refusal.detail());
    body.push('}');
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Says when to come again, where the refusal is one of those that pass and the answer does not say it yet: after
/// `pause`, or sooner where the lease of the running request lapses sooner.
pub(crate) fn set_retry_after(response: &mut Response<Bytes>, refusal: &Refusal, pause: Duration) {
    let pause = match refusal {
        Refusal::RequestInProgress(left) => pause.min(*left),
        Refusal::StoreUnavailable
        | Refusal::StoreFull
        | Refusal::CommitUnknown
        | Refusal::RecordIncompatible
        | Refusal::ServerBusy
        | Refusal::TooManyUnfinished
        | Refusal::TooManyKeys => pause,
        _ => return,
    };
    let seconds = pause.as_secs() + u64::from(pause.subsec_nanos() > 0);
    response.headers_mut().entry(RETRY_AFTER).or_insert_with(|| HeaderValue::from(seconds.max(1)));
}

/// A JSON string (RFC 8259, section 7).
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

    #[test]
    fn a_problem_is_json() {
        let refusal = Refusal::KeyInvalid(KeyError::malformed("a \"b\"\n\\ é"));
        let response = render(&refusal, "https://example.com/p");
        let problem: serde_json::Value = serde_json::from_slice(response.body()).unwrap();
        assert_eq!(problem["type"], "https://example.com/p#key-invalid");
        assert_eq!(problem["status"], 400);
        assert_eq!(problem["detail"], "a \"b\"\n\\ é.");
        assert_eq!(response.headers()[CACHE_CONTROL], "no-store");
    }

    #[test]
    fn when_to_come_again() {
        let retry_after = |refusal: &Refusal, pause: u64| {
            let mut response = render(refusal, TYPE_BASE);
            set_retry_after(&mut response, refusal, Duration::from_millis(pause));
            response.headers().get(RETRY_AFTER).map(|value| value.to_str().unwrap().to_owned())
        };
        for (left, pause, expected) in
            [(1, 5000, "1"), (1001, 5000, "2"), (30_000, 5000, "5"), (0, 5000, "1"), (30_000, 1, "1")]
        {
            let running = Refusal::RequestInProgress(Duration::from_millis(left));
            assert_eq!(retry_after(&running, pause).as_deref(), Some(expected), "{left} {pause}");
        }
        assert_eq!(retry_after(&Refusal::StoreFull, 1000).as_deref(), Some("1"));
        assert_eq!(retry_after(&Refusal::DuplicateRequest, 1000), None);
    }
}
