//! Requests that the layer leaves out.

use http::request::Parts;

use crate::layer::TokenLayer;

impl TokenLayer {
    /// Switches the layer off: every request reaches the inner service, with a token or without. Default: `false`.
    ///
    /// With this setting, a configuration can decide whether a form is protected; the type of the service stays the
    /// same. A handler still issues tokens, so that pages look the same, and [`verify`](Self::verify) still verifies.
    ///
    /// ```
    /// use axum::{Router, body::Body, http::Request, routing::post};
    /// use tower::ServiceExt;
    /// use tower_idempotency::{MemoryStore, Tokens};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let switched_on = false; // from the configuration
    /// let checkout = Tokens::new(MemoryStore::new()).layer("checkout").disabled(!switched_on);
    /// let app = Router::new().route("/checkout", post(|| async { "ordered" }).layer(checkout));
    ///
    /// // A request without a token is not refused.
    /// let response = app.oneshot(Request::post("/checkout").body(Body::empty())?).await?;
    /// assert_eq!(response.status(), 200);
    /// # Ok(())
    /// # }
    /// ```
    pub fn disabled(self, disabled: bool) -> Self {
        self.with(|exchange| exchange.disabled = disabled)
    }

    /// Leaves these routes out: their requests reach the inner service without a check of a token. See
    /// [`IdempotencyLayer::skip_routes`](crate::IdempotencyLayer::skip_routes) for how a route is named.
    pub fn skip_routes<N: Into<String>>(self, names: impl IntoIterator<Item = N>) -> Self {
        self.with(|exchange| names.into_iter().for_each(|name| exchange.exceptions.add_route(name.into())))
    }

    /// Leaves requests out: those whose head fulfils `condition` reach the inner service without a check of a token.
    ///
    /// The condition is checked only for requests of the [methods](Self::methods) that require a token. Several calls
    /// add up: a request is left out if one of the conditions holds.
    pub fn skip_if(self, condition: impl Fn(&Parts) -> bool + Send + Sync + 'static) -> Self {
        self.with(|exchange| exchange.exceptions.add_condition(condition))
    }
}
