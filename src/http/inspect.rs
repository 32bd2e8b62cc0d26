//! Signs of a mistake in the set-up, seen in the answers of one request: a 401 or a timeout from inside the layer, an
//! answer that no duplicate can get, an answer of gRPC, a `HEAD` that the layer cannot protect. Each leads to one warning for each route.
//!
//! None of this changes a response. It looks at the status, at what becomes of the record and at the layer's settings,
//! and is skipped for an answer that broke.

use http::{Method, StatusCode, request, response::Parts};

use super::{
    Exchange, Scoping,
    answer::RecordAction,
    record::response_kind::{is_event_stream, is_partial},
    respond::Advice,
};
use crate::{
    body::Collected,
    extract::route,
    value::{OnDuplicate, RecordKey},
};

impl Exchange {
    /// Looks at what became of an answer for signs of layers in the wrong order, and of answers that nobody can be
    /// replayed.
    pub(super) fn check_answer(&self, key: &RecordKey, parts: &Parts, action: &RecordAction, is_stream: bool) {
        if let Some(advice) = self.advice_on(parts, action, is_stream) {
            self.warned.warn(advice, key.route());
        }
    }

    /// Returns the warning for an answer, if it shows a mistake.
    fn advice_on(&self, parts: &Parts, action: &RecordAction, is_stream: bool) -> Option<Advice> {
        match parts.status {
            StatusCode::UNAUTHORIZED if matches!(self.scoping, Scoping::Credentials(..)) => {
                return Some(Advice::AuthenticationInside);
            }
            // Only a replay shows somebody else an answer.
            StatusCode::UNAUTHORIZED
                if self.tokens.is_some()
                    && matches!(self.scoping, Scoping::Unscoped)
                    && matches!(self.policy.on_duplicate, OnDuplicate::Replay) =>
            {
                return Some(Advice::AuthenticationInsideOfTokens);
            }
            StatusCode::REQUEST_TIMEOUT | StatusCode::GATEWAY_TIMEOUT
                if matches!(action, RecordAction::Release(_)) && self.engine.transactions.is_none() =>
            {
                return Some(Advice::TimeoutInside);
            }
            _ => {}
        }
        let nobody_asks = !matches!(self.policy.on_duplicate, OnDuplicate::Replay);
        let on_purpose = is_stream || is_partial(parts.status) || self.policy.stream_after.is_some();
        if nobody_asks || on_purpose || !matches!(action, RecordAction::Settle(Err(_), _)) {
            return None;
        }
        Some(if is_event_stream(&parts.headers) { Advice::AnswerStreams } else { Advice::AnswerTooLong })
    }

    /// Looks for the status of gRPC, which a layer of HTTP does not follow. The layer of gRPC renders its refusals.
    pub(super) fn check_trailers(&self, key: &RecordKey, whole: &Collected) {
        let of_grpc = whole.trailers.as_deref().is_some_and(|trailers| trailers.contains_key("grpc-status"));
        if of_grpc && self.render.is_none() {
            self.warned.warn(Advice::AnswerOfGrpc, key.route());
        }
    }

    /// Returns whether a request of one of the methods is let through all the same. A `HEAD` is among them for its
    /// warning: the handler of a protected `GET` serves it.
    pub(super) fn leaves_out(&self, parts: &request::Parts) -> bool {
        if self.exceptions.cover(parts) {
            return true;
        }
        let is_head = parts.method == Method::HEAD;
        if is_head {
            self.warned.warn(Advice::UnprotectedHead, &route(parts));
        }
        is_head
    }
}
