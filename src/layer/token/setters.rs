//! The setters that other builders have too.

use crate::{
    builder::{engine_setters, policy_setters},
    layer::{
        TokenLayer,
        setters::{answer_setters, request_setters},
    },
};

/// The policy, as a whole and in parts.
impl TokenLayer {
    policy_setters! { Policy =>
        /// A token layer begins with [`Policy::reject`](crate::Policy::reject).
        policy,
        /// The default is 409 `token-used`. With [`Replay`](crate::OnDuplicate::Replay) a request with a used token
        /// receives the first answer, and with [`Respond`](crate::OnDuplicate::Respond) an answer of your own. With
        /// [`PassThrough`](crate::OnDuplicate::PassThrough) it reaches the handler, which finds in its
        /// [`Operation`](crate::Operation) that the request is a duplicate. Each of these applies only if the request
        /// asks for the same as the first: a form that a browser restored must not be answered with another order's
        /// success. The same token with other content receives 422 `key-reused`, so the body is read before the token
        /// is claimed. [`fingerprint`](Self::fingerprint) defines what counts as the same.
        on_duplicate,
        while_running,
        /// An answer that is kept spends the token; any other answer releases the token, which keeps its first expiry.
        keep,
        after_crash,
        /// So long a used token is known as used. Default: 24 hours; after that the token is unknown, and is still not
        /// accepted. A signed token is known as used for as long as it would have been valid, whatever this setting is:
        /// see [`Tokens::signed`][signed].
        ///
        #[cfg_attr(feature = "signed-tokens", doc = "[signed]: crate::Tokens::signed")]
        #[cfg_attr(
            not(feature = "signed-tokens"),
            doc = "[signed]: https://docs.rs/tower-idempotency/latest/tower_idempotency/struct.Tokens.html#method.signed"
        )]
        retention,
        lease,
        retry_after,
        /// The limit applies if the body is read before the handler receives it.
        request_limit,
        response_limit,
        stream_after,
    }
}

/// The store and the work.
impl TokenLayer {
    engine_setters! {
        store_timeout,
        cancel_on_disconnect,
        background_tasks,
        secret,
        observer,
        switch,
    }
}

/// Which requests need a token, and how they are read.
impl TokenLayer {
    request_setters! {
        /// Requests of these methods require a token.
        methods,
        /// Requests with a token and without one are passed on. A handler still issues tokens, so that pages look the
        /// same.
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
        disabled,
        /// No token is required of them.
        skip_routes,
        /// No token is required of them.
        skip_if,
        /// This is for what has to be true beside the token, such as a captcha. A refusal does not spend the token. The
        /// body is read first, wherever the token is. See
        /// [`IdempotencyLayer::verify`](crate::IdempotencyLayer::verify) for an example.
        verify,
        trace_context,
        body_timeout,
        waiting_body_limit,
        /// The body is then read first, wherever the token is.
        keep_request,
    }
}

/// Refusals, and header fields of answers.
impl TokenLayer {
    answer_setters! {
        include_header,
        exclude_header,
        on_replay,
        on_keep,
        hook_timeout,
        replay_header,
        without_replay_header,
        completed_header,
        /// Until then the token is known as used.
        expires_header,
        sdk_hints,
        problem_type_base,
        problem_link,
        problem_instance,
        render,
    }
}
