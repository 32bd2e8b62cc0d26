use std::borrow::Cow;
#[cfg(feature = "axum")]
use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

#[cfg(feature = "axum")]
use axum::extract::{FromRequestParts, RawPathParams, rejection::RawPathParamsRejection};
use http::{Uri, header::HOST, request::Parts, uri::Authority};

#[cfg(feature = "axum")]
use crate::value::KeyError;

/// Returns the name of the route: the matched route with every nested router's prefix if Axum gives it, otherwise the
/// whole path.
pub(crate) fn route(parts: &Parts) -> Cow<'_, str> {
    #[cfg(feature = "axum")]
    if let Some(matched) = parts.extensions.get::<axum::extract::MatchedPath>() {
        return Cow::Borrowed(matched.as_str());
    }
    Cow::Borrowed(full_uri(parts).path())
}

/// Returns the URI as the client sent it: nested routers cut their prefix off the request's own.
pub(crate) fn full_uri(parts: &Parts) -> &Uri {
    #[cfg(feature = "axum")]
    if let Some(axum::extract::OriginalUri(uri)) = parts.extensions.get() {
        return uri;
    }
    &parts.uri
}

/// Returns the host that the request was sent to, in lower case and without a port that is a default one; `None` if the
/// request does not name it, or names it twice.
pub(super) fn host(parts: &Parts) -> Option<String> {
    let authority = if let Some(authority) = full_uri(parts).authority() {
        authority.clone()
    } else {
        let mut lines = parts.headers.get_all(HOST).iter();
        let only = lines.next().filter(|_| lines.next().is_none())?;
        Authority::try_from(only.as_bytes()).ok()?
    };
    let host = authority.host().trim_end_matches('.').to_ascii_lowercase();
    match authority.port_u16() {
        _ if host.is_empty() => None,
        None | Some(80 | 443) => Some(host),
        Some(port) => Some(format!("{host}:{port}")),
    }
}

/// Returns parameters of the matched route, percent-decoded; `None` if one of them is not there.
#[cfg(feature = "axum")]
pub(super) fn path_parameters(parts: &Parts, wanted: &[Box<str>]) -> Result<Option<Vec<String>>, KeyError> {
    // The extractor is asynchronous in form only: it reads an extension. It wants parts of its own.
    let (mut own, ()) = http::Request::new(()).into_parts();
    own.extensions = parts.extensions.clone();
    let extracted =
        pin!(RawPathParams::from_request_parts(&mut own, &())).poll(&mut Context::from_waker(Waker::noop()));
    match extracted {
        Poll::Ready(Ok(found)) => {
            let value =
                |wanted: &str| found.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.to_owned());
            Ok(wanted.iter().map(|wanted| value(wanted)).collect())
        }
        Poll::Ready(Err(RawPathParamsRejection::MissingPathParams(_))) | Poll::Pending => Ok(None),
        Poll::Ready(Err(_)) => Err(KeyError::malformed("the key is not UTF-8")),
    }
}
