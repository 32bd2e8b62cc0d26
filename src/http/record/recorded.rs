//! What a first answer says of itself once it is recorded, and not before.
//!
//! Three kinds: the successor of a token, the times of the record, and hints for SDKs. All of them would be wrong on an
//! answer that is not recorded, so `of_record` collects them before the end of the claim, and `tell` adds them only
//! after `FinishOutcome::Recorded`.

use http::{HeaderMap, HeaderValue, Response};

use super::{codec, response_kind::has_failed};
use crate::{
    http::{Exchange, answer::RecordAction, respond::Times},
    problem,
};

/// The response headers that describe a record, once it exists.
pub(crate) struct OfRecord {
    /// The token that takes the place of the one that came.
    successor: Option<HeaderValue>,
    /// When the answer was kept, and until when.
    times: Option<Times>,
    /// Its duplicates do not run.
    settled: bool,
}

impl Exchange {
    /// Collects what the answer gets if the record is settled as `action` says; `None` if that is nothing.
    pub(crate) fn of_record(&self, action: &RecordAction) -> Option<Box<OfRecord>> {
        let successor = if let RecordAction::Replace(.., successor) = action { Some(successor.clone()) } else { None };
        let (times, settled) = (self.times_of(action), matches!(action, RecordAction::Settle(..)));
        let any = successor.is_some() || times.is_some() || (settled && self.sdk_hints);
        any.then(|| Box::new(OfRecord { successor, times, settled }))
    }

    /// Returns the times that are in the record, if the layer sends them.
    fn times_of(&self, action: &RecordAction) -> Option<Times> {
        if self.completed_header.is_none() && self.expires_header.is_none() {
            return None;
        }
        match action {
            RecordAction::Settle(Ok(payload), _) | RecordAction::Replace(payload, ..) => codec::times(payload),
            RecordAction::Settle(Err(_), retention) => Some(Times::now(Some(*retention))),
            RecordAction::Release(_) | RecordAction::Undo => None,
        }
    }

    /// Adds the headers to an answer whose record is settled.
    pub(crate) fn tell<B>(&self, answer: &mut Response<B>, OfRecord { successor, times, settled }: OfRecord) {
        let failed = has_failed(answer.status());
        let headers = answer.headers_mut();
        if let (Some(rule), Some(successor)) = (&self.tokens, successor) {
            headers.insert(rule.header.clone(), successor);
        }
        if let Some(times) = times {
            self.tell_times(headers, times);
        }
        if self.sdk_hints && settled && failed {
            problem::set_sdk_hints(headers, false);
        }
    }

    /// Adds the times to the headers, under the names that the layer has.
    fn tell_times(&self, headers: &mut HeaderMap, times: Times) {
        for (name, value) in self.time_fields(times.completed(), times.expires()) {
            headers.insert(name, value);
        }
    }
}
