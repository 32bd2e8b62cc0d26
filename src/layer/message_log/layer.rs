use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderName, Response};
use tower_layer::Layer;

use crate::{
    extract::key::{self, IntoKeyExtractor},
    sql::{SqlDatabase, message_log::MessageLog},
    value::{Refusal, nonzero},
};

use super::{service::MessageLogService, settings::MessageLogSettings};

/// The default of `timeout`.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long a body may stand still before what is there of it is written, and the request goes on.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// A layer that writes each request to a [`MessageLog`] before the services behind it see it.
///
/// Put it outside of an [`IdempotencyLayer`](crate::IdempotencyLayer): the log then has every try, also those that are
/// refused and those that are duplicates, and in transaction mode those whose transaction is rolled back. If a platform
/// signs its messages, put it inside of what checks the signature, or everybody can fill the table.
///
/// ```
/// # #[cfg(all(feature = "axum", feature = "sqlite"))] {
/// use axum::{Router, body::Body, http::Request, routing::post};
/// use tower::ServiceExt;
/// use tower_idempotency::{IdempotencyLayer, MessageLogLayer, SqliteStore, sql::message_log::MessageFilter};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = std::env::temp_dir().join(format!("message-log-layer-doc-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let path = folder.join("records.db");
/// let store = SqliteStore::open(&path).await?;
/// let log = store.message_log();
/// # store.migrate().await?;
/// log.migrate().await?;
///
/// let app: Router = Router::new()
///     .route("/payments", post(|| async { "paid" }))
///     .layer(IdempotencyLayer::new(store))
///     .layer(MessageLogLayer::new(log.clone()));
///
/// for body in ["7 EUR", "7 EUR", "8 EUR"] {
///     let request = Request::post("/payments").header("Idempotency-Key", "order-7").body(Body::from(body))?;
///     app.clone().oneshot(request).await?;
/// }
/// // The first one, its duplicate, and one that was refused.
/// let messages = log.list(&MessageFilter::new().key("order-7"), 10).await?;
/// let statuses: Vec<_> = messages.iter().map(|message| message.status.unwrap()).collect();
/// assert_eq!(statuses, [200, 200, 422]);
/// # std::fs::remove_dir_all(folder)?;
/// # Ok(())
/// # }
/// # main().unwrap();
/// # }
/// ```
///
/// # What is written
///
/// The route, the SHA-256 of the key, the method, the path with its query, the headers without those
/// [that carry credentials](crate::credential), and the body, up to the
/// [limit of the log](MessageLog::body_limit). The service behind receives the whole request in any case. A body that
/// breaks or stands still for 30 seconds is written as far as it came, and passed on. The name of the message, a
/// [`MessageId`](super::MessageId), is in the extensions of the request.
///
/// After the answer its status is noted with the message. Until then, and if the client or the process is gone before,
/// the message has none.
///
/// # If the log cannot be written
///
/// The request is refused with 503 [`not-logged`](crate::guide::refusals#not-logged), and no service behind sees it:
/// what is not on record must not take effect. With [`fail_open`](Self::fail_open) it goes on, and a WARN reports it. If
/// only the answer's status cannot be noted, a WARN reports it and the client receives the answer.
#[derive(Clone)]
#[must_use = "a layer does nothing until a service is put behind it"]
pub struct MessageLogLayer {
    settings: Arc<MessageLogSettings>,
}

impl MessageLogLayer {
    /// Creates a layer that writes to `log`.
    pub fn new<D: SqlDatabase>(log: MessageLog<D>) -> Self {
        let settings = MessageLogSettings {
            sink: Arc::new(log),
            key: key::header("Idempotency-Key"),
            route: None,
            also: Vec::new(),
            not: Vec::new(),
            keeps_query: true,
            notes_answers: true,
            timeout: TIMEOUT,
            body_timeout: BODY_TIMEOUT,
            fails_open: false,
            render: None,
        };
        Self { settings: Arc::new(settings) }
    }

    fn with(mut self, change: impl FnOnce(&mut MessageLogSettings)) -> Self {
        change(Arc::make_mut(&mut self.settings));
        self
    }

    /// Sets where the key is that messages are found by. It should be that of the idempotency layer. Default:
    /// [`key::header("Idempotency-Key")`](crate::key::header).
    ///
    /// A message without the key, with a malformed one, or whose body has the key and is not kept whole, is written
    /// without a key.
    pub fn key(self, key: impl IntoKeyExtractor) -> Self {
        let key = key.into_key_extractor();
        self.with(|settings| settings.key = key)
    }

    /// Sets the name of the route, in place of the matched path.
    pub fn route(self, name: impl Into<Arc<str>>) -> Self {
        let name = name.into();
        self.with(|settings| settings.route = Some(name))
    }

    /// Writes a header that is left out by default, since it [carries a credential](crate::credential): `Authorization`,
    /// `Cookie`.
    ///
    /// Caution: anyone who reads the table can use it.
    pub fn include_header(self, name: HeaderName) -> Self {
        self.with(|settings| settings.also.push(name))
    }

    /// Leaves a header out, such as one in which an application sends a token.
    pub fn exclude_header(self, name: HeaderName) -> Self {
        self.with(|settings| settings.not.push(name))
    }

    /// Leaves the query out of the path, for routes that clients send credentials to in the query.
    pub fn without_query(self) -> Self {
        self.with(|settings| settings.keeps_query = false)
    }

    /// Does not note the statuses of answers, which saves one statement a request.
    pub fn without_answers(self) -> Self {
        self.with(|settings| settings.notes_answers = false)
    }

    /// Sets how long a statement may take before the log counts as away. Default: five seconds.
    ///
    /// # Panics
    ///
    /// Panics if `timeout` is zero.
    #[track_caller]
    pub fn timeout(self, timeout: Duration) -> Self {
        let timeout = nonzero("timeout", timeout);
        self.with(|settings| settings.timeout = timeout)
    }

    /// Sets how long a body may stand still before what is there of it is written and the request is passed on.
    /// Default: 30 seconds.
    ///
    /// # Panics
    ///
    /// Panics if `timeout` is zero.
    #[track_caller]
    pub fn body_timeout(self, timeout: Duration) -> Self {
        let timeout = nonzero("body timeout", timeout);
        self.with(|settings| settings.body_timeout = timeout)
    }

    /// Lets requests through that cannot be logged, instead of refusing them.
    ///
    /// Caution: what takes effect then has no message in the log. A WARN reports each of them.
    pub fn fail_open(self) -> Self {
        self.with(|settings| settings.fails_open = true)
    }

    /// Sets the answer to a request that cannot be logged, in place of the problem document: the word, for example, at
    /// which a platform sends its message again.
    pub fn render(self, render: impl Fn(&Refusal) -> Response<Bytes> + Send + Sync + 'static) -> Self {
        self.with(|settings| settings.render = Some(Arc::new(render)))
    }
}

impl<S> Layer<S> for MessageLogLayer {
    type Service = MessageLogService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        MessageLogService::new(inner, Arc::clone(&self.settings))
    }
}

impl fmt::Debug for MessageLogLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.fmt(f)
    }
}
