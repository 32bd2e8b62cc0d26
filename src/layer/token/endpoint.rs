use axum::routing::{MethodRouter, get};
use http::{HeaderValue, Response, header::CONTENT_TYPE};

use crate::{
    layer::TokenLayer,
    token::{IssueError, TokenIssuer},
};

impl TokenLayer {
    /// Returns a route that issues tokens of this purpose to any client that requests it with `GET`, as JSON with
    /// `Cache-Control: no-store`.
    ///
    /// ```json
    /// {"token": "…", "expires_in": 300}
    /// ```
    ///
    /// `expires_in` is in seconds. The principal is that of the request, as it is for requests that spend a token. A
    /// page of another origin cannot read the answer unless a CORS layer allows that.
    ///
    /// ```
    /// use axum::{Router, body::{Body, to_bytes}, http::Request, routing::post};
    /// use tower::ServiceExt;
    /// use tower_idempotency::{MemoryStore, Tokens, scope};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let checkout = Tokens::new(MemoryStore::new()).layer("checkout").principal(scope::header("X-User"));
    /// let app: Router = Router::new()
    ///     .route("/checkout/token", checkout.clone().endpoint())
    ///     .route("/checkout", post(|| async { "ordered" }).layer(checkout));
    ///
    /// let request = Request::get("/checkout/token").header("X-User", "ann").body(Body::empty()).unwrap();
    /// let response = app.oneshot(request).await.unwrap();
    /// assert_eq!(response.headers()["cache-control"], "no-store");
    /// let body = to_bytes(response.into_body(), 1024).await.unwrap();
    /// assert!(body.starts_with(br#"{"token":""#) && body.ends_with(br#"","expires_in":300}"#));
    /// # }
    /// ```
    pub fn endpoint<S>(self) -> MethodRouter<S>
    where
        S: Clone + Send + Sync + 'static,
    {
        get(in_json).layer(self)
    }
}

async fn in_json(tokens: TokenIssuer) -> Result<Response<String>, IssueError> {
    let token = tokens.issue().await?;
    // Neither part needs escaping.
    let json = format!(r#"{{"token":"{}","expires_in":{}}}"#, token.as_str(), token.lifetime().as_secs_f64());
    let mut response = Response::new(json);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}
