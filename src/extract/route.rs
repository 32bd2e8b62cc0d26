use std::borrow::Cow;
#[cfg(feature = "axum")]
use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

#[cfg(feature = "axum")]
use axum::extract::{FromRequestParts, RawPathParams, rejection::RawPathParamsRejection};
use http::{Uri, request::Parts};

#[cfg(feature = "axum")]
use crate::value::KeyError;

/// The name of the route: the matched route with every nested router's prefix where Axum tells it, the whole path
/// elsewhere.
pub(crate) fn route(parts: &Parts) -> Cow<'_, str> {
    #[cfg(feature = "axum")]
    if let Some(matched) = parts.extensions.get::<axum::extract::MatchedPath>() {
        return Cow::Borrowed(matched.as_str());
    }
    Cow::Borrowed(full_uri(parts).path())
}

/// The URI as the client sent it: nested routers cut their prefix off the request's own.
pub(crate) fn full_uri(parts: &Parts) -> &Uri {
    #[cfg(feature = "axum")]
    if let Some(axum::extract::OriginalUri(uri)) = parts.extensions.get() {
        return uri;
    }
    &parts.uri
}

/// A parameter of the matched route, percent-decoded.
#[cfg(feature = "axum")]
pub(super) fn path_parameter(parts: &Parts, wanted: &str) -> Result<Option<String>, KeyError> {
    // The extractor is asynchronous in form only: it reads an extension. It wants parts of its own.
    let (mut own, ()) = http::Request::new(()).into_parts();
    own.extensions = parts.extensions.clone();
    let extracted =
        pin!(RawPathParams::from_request_parts(&mut own, &())).poll(&mut Context::from_waker(Waker::noop()));
    match extracted {
        Poll::Ready(Ok(found)) => Ok(found.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.to_owned())),
        Poll::Ready(Err(RawPathParamsRejection::MissingPathParams(_))) | Poll::Pending => Ok(None),
        Poll::Ready(Err(_)) => Err(KeyError::malformed("the key is not UTF-8")),
    }
}
