use std::{borrow::Cow, sync::Arc};

use bytes::Bytes;
use http::{HeaderName, request::Parts};

use crate::{
    extract::{credential::is_credential, full_uri, route},
    sql::message_log::IncomingMessage,
};

use super::settings::MessageLogSettings;

/// The id of the message that a request was logged as, in the extensions of the request.
///
/// ```
/// use axum::Extension;
/// use tower_idempotency::service::MessageId;
///
/// async fn pay(Extension(message): Extension<MessageId>) -> String {
///     format!("see message {}", message.as_str())
/// }
/// # drop(pay);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MessageId(Arc<str>);

impl MessageId {
    pub(super) fn of(message: &IncomingMessage) -> Self {
        Self(message.id.as_str().into())
    }

    /// Returns the id: 32 hexadecimal digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl MessageLogSettings {
    /// Returns what is written of a request.
    pub(super) fn message(&self, parts: &Parts, body: Bytes, is_whole: bool) -> IncomingMessage {
        let name = self.route.as_deref().map_or_else(|| route(parts), Cow::Borrowed);
        let uri = full_uri(parts);
        let path = uri.path_and_query().filter(|_| self.keeps_query).map_or(uri.path(), |path| path.as_str());
        let key = self.key_of(parts, &body, is_whole).map(Cow::into_owned);
        let mut message = IncomingMessage::new(name, body).request(parts.method.as_str(), path);
        if let Some(key) = key {
            message = message.key(&key);
        }
        for (name, value) in parts.headers.iter().filter(|(name, _)| self.writes(name)) {
            message = message.header(name.as_str(), Bytes::copy_from_slice(value.as_bytes()));
        }
        message.is_cut = !is_whole;
        message
    }

    /// Returns the key, if the request has one.
    fn key_of<'a>(&self, parts: &'a Parts, body: &'a Bytes, is_whole: bool) -> Option<Cow<'a, str>> {
        if self.key.needs_body() && !is_whole {
            return None;
        }
        self.key.extract(parts, body).ok().flatten()
    }

    fn writes(&self, name: &HeaderName) -> bool {
        !self.not.contains(name) && (!is_credential(name) || self.also.contains(name))
    }
}
