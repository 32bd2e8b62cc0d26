use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderName, Response};

use crate::{extract::key::KeyExtractor, sql::message_log::MessageSink, value::Refusal};

/// What a layer and its services share.
#[derive(Clone)]
pub(super) struct MessageLogSettings {
    pub(super) sink: Arc<dyn MessageSink>,
    pub(super) key: KeyExtractor,
    /// In place of the matched path.
    pub(super) route: Option<Arc<str>>,
    /// Headers that are written although they carry credentials, and headers that are left out.
    pub(super) also: Vec<HeaderName>,
    pub(super) not: Vec<HeaderName>,
    pub(super) keeps_query: bool,
    pub(super) notes_answers: bool,
    pub(super) timeout: Duration,
    pub(super) body_timeout: Duration,
    pub(super) fails_open: bool,
    pub(super) render: Option<Arc<RenderRefusal>>,
}

/// Makes the answer to a request that could not be logged.
pub(super) type RenderRefusal = dyn Fn(&Refusal) -> Response<Bytes> + Send + Sync;

impl fmt::Debug for MessageLogSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageLogLayer")
            .field("key", &self.key)
            .field("route", &self.route)
            .field("timeout", &self.timeout)
            .field("fails_open", &self.fails_open)
            .finish_non_exhaustive()
    }
}
