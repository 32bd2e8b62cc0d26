//! Replays and kept answers, as the application's hooks change them.

use std::sync::Arc;

use bytes::Bytes;
use http::{Response, request, response::Parts};
use http_body::Body;

use super::{
    Exchange, RequestContext,
    answer::RecordAction,
    record::{HeaderPolicy, codec},
    respond::Times,
    settings::report_hook,
};
use crate::{
    body::{Collected, ResponseBody},
    value::{Event, ForDuplicates, KeptAnswer, NotKept, OnDuplicate, RecordKey, Refusal, TraceContext},
};

impl Exchange {
    /// Returns the kept answer that a duplicate would be replayed, if a hook is to decide about it.
    pub(super) fn awaits_hook(&self, context: RequestContext<'_>, payload: Option<&Bytes>) -> Option<KeptAnswer> {
        self.hooks.on_replay.as_ref()?;
        if let Some(failed) = self.replaced(payload, context.token) {
            return Some(failed);
        }
        let kept = || codec::decode(payload?.clone());
        match self.policy.on_duplicate {
            OnDuplicate::Replay | OnDuplicate::PassThrough => kept(),
            OnDuplicate::Respond(_) => kept().filter(KeptAnswer::has_failed),
            OnDuplicate::Reject => None,
        }
    }

    /// Replays an answer, if the hook admits it.
    pub(super) async fn replay_hooked<B: Body>(
        &self,
        head: &request::Parts,
        key: &RecordKey,
        kept: KeptAnswer,
    ) -> Response<ResponseBody<B>> {
        let Some(hook) = &self.hooks.on_replay else { return self.replay(key, kept) };
        match self.hooks.ask(|| hook(head.clone(), kept)).await {
            Ok(Ok(kept)) => self.replay(key, kept),
            Ok(Err(response)) => {
                self.engine.report(&Event::ReplayRefused { key, status: response.status() });
                response.map(|body| ResponseBody::whole(body, None))
            }
            Err(failure) => {
                report_hook("on_replay", key, failure);
                self.refuse(Some(head), Some(key), &Refusal::ReplayNotDecided)
            }
        }
    }

    /// Returns whether what is kept of an answer is changed before.
    pub(super) fn changes_what_is_kept(&self) -> bool {
        self.hooks.on_keep.is_some()
    }

    /// Changes what is kept of an answer. If the hook fails, a tombstone is kept.
    pub(super) async fn changed(self: &Arc<Self>, key: &RecordKey, action: RecordAction) -> RecordAction {
        match action {
            RecordAction::Settle(Ok(payload), retention) => {
                let changed = self.changed_payload(key, payload, &self.headers, Times::now(Some(retention))).await;
                RecordAction::Settle(changed.ok_or(NotKept::HookFailed), retention)
            }
            RecordAction::Replace(payload, retention, successor) => {
                let mut headers = self.headers.clone();
                headers.also.extend(self.tokens.as_ref().map(|rule| rule.header.clone()));
                match self.changed_payload(key, payload, &headers, Times::now(Some(retention))).await {
                    Some(payload) => RecordAction::Replace(payload, retention, successor),
                    None => RecordAction::Settle(Err(NotKept::HookFailed), retention),
                }
            }
            action => action,
        }
    }

    async fn changed_payload(
        &self,
        key: &RecordKey,
        payload: Bytes,
        headers: &HeaderPolicy,
        times: Times,
    ) -> Option<Bytes> {
        let hook = self.hooks.on_keep.as_ref()?;
        let kept = codec::decode(payload)?;
        match self.hooks.ask(|| hook(key.clone(), kept)).await {
            Ok(kept) => Some(encoded(kept, headers, times)),
            Err(failure) => {
                report_hook("on_keep", key, failure);
                None
            }
        }
    }

    /// Keeps the answer for duplicates that the handler has made, in place of its own.
    ///
    /// The extension stays in the answer: a layer further out keeps an answer of its own, and must not keep more.
    pub(super) fn for_duplicates(
        &self,
        head: &Parts,
        action: RecordAction,
        trace: Option<TraceContext>,
    ) -> RecordAction {
        match (head.extensions.get::<ForDuplicates>(), action) {
            (Some(ForDuplicates(answer)), RecordAction::Settle(Ok(_), retention)) => {
                let body = Collected { data: answer.body().clone(), trailers: None };
                let times = Times::now(Some(retention));
                let payload = codec::encode(answer.status(), answer.headers(), &body, &self.headers, times, trace);
                RecordAction::Settle(Ok(payload), retention)
            }
            (_, action) => action,
        }
    }
}

fn encoded(kept: KeptAnswer, headers: &HeaderPolicy, times: Times) -> Bytes {
    let KeptAnswer { status, headers: fields, body, trailers, trace, .. } = kept;
    codec::encode(status, &fields, &Collected { data: body, trailers }, headers, times, trace)
}
