//! What a process does, and what the answers of the store mean to it.

use crate::{
    config::{Broken, Config, Mode},
    state::{Answer, Message, Number, Phase, State, Verb},
    store::{FAILED, LEASE, RETENTION, Reply},
};

impl Config {
    /// The store handles a message.
    pub(crate) fn arrive(&self, state: &mut State, message: Message) -> Reply {
        let number = message.from;
        let was =
            state.owner().or(state.seen.released.filter(|(_, until)| state.now < *until).map(|(caller, _)| caller));
        if message.verb == Verb::Settle && self.is(Broken::EffectWithoutItsRecord) {
            state.roll_back(number);
        }
        let reply = state.handle(self, message);
        let mine = self.requests[usize::from(number)];
        if message.verb == Verb::Claim && reply == Reply::Granted && was.is_some_and(|caller| caller != mine.0) {
            state.fault("a record was granted to another caller");
        }
        if message.verb == Verb::Release && reply == Reply::Done {
            state.seen.released = Some((mine.0, state.now + RETENTION));
        }
        if message.verb == Verb::Settle && self.mode == Mode::Transaction && !state.has_failed(number) {
            let commits = reply == Reply::Done || self.is(Broken::EffectWithoutItsRecord);
            if commits && !state.seen.committed.contains(&number) {
                state.seen.committed.push(number);
                state.seen.effects += 1;
            }
        }
        if message.verb == Verb::Undo && matches!(reply, Reply::Refused(_)) {
            // The claim may still be on its way.
            let comes = state.messages.iter().any(|other| other.from == number && other.verb == Verb::Claim);
            if comes {
                state.messages.push(message);
            }
        }
        reply
    }

    /// The process that has sent a message receives the store's answer.
    pub(crate) fn hear(&self, state: &mut State, message: Message, reply: Reply) {
        let number = message.from;
        match (state.requests[usize::from(number)].phase, message.verb) {
            (Phase::Claims { sent }, Verb::Claim) => match reply {
                Reply::Granted
                    if state.now >= sent + LEASE && self.has_leases() && !self.is(Broken::LateGrantIsUsed) =>
                {
                    state.phase(number, Phase::Answered(Answer::ComeAgain));
                    state.send(number, Verb::Undo);
                }
                Reply::Granted => {
                    let anew = self.is(Broken::LeaseCountsFromTheReply) || self.is(Broken::LateGrantIsUsed);
                    let since = if anew { state.now } else { sent };
                    state.phase(number, Phase::Runs { since, cleared: false, acted: false });
                    state.seen.runs += 1;
                }
                Reply::Settled(value) => self.answer(state, number, value),
                Reply::Mismatch => state.phase(number, Phase::Answered(Answer::Mismatch)),
                Reply::OutcomeUnknown => state.phase(number, Phase::Answered(Answer::OutcomeUnknown)),
                _ => state.phase(number, Phase::Answered(Answer::ComeAgain)),
            },
            (Phase::Runs { since, cleared, acted }, Verb::Renew) => {
                state.requests[usize::from(number)].renews = false;
                match reply {
                    Reply::Done => {
                        let since = since.max(message.sent);
                        state.phase(number, Phase::Runs { since, cleared, acted });
                    }
                    _ if self.is(Broken::RefusedRenewalIsIgnored) => {
                        state.phase(number, Phase::Runs { since: state.now, cleared, acted });
                    }
                    // It is lost, and no look at the lease passes any more.
                    _ => state.phase(number, Phase::Runs { since: 0, cleared, acted }),
                }
            }
            (Phase::Ends { failed, .. }, Verb::Settle | Verb::Release) => match reply {
                Reply::Done if failed => state.phase(number, Phase::Answered(Answer::Failed)),
                Reply::Done => self.answer(state, number, number),
                Reply::Refused(_) if self.is(Broken::OwnValueAfterALoss) => self.answer(state, number, number),
                Reply::Refused(Some(value)) => self.answer(state, number, value),
                _ => state.phase(number, Phase::Answered(Answer::ComeAgain)),
            },
            _ => {}
        }
    }

    /// The client receives a kept answer.
    fn answer(&self, state: &mut State, number: Number, value: Number) {
        if value & FAILED != 0 {
            return state.phase(number, Phase::Answered(Answer::Failed));
        }
        if state.settled() != Some(value) && !state.seen.forgotten {
            state.fault("a client received an answer that no record holds");
        }
        if state.has_failed(value) {
            state.fault("a failure was replayed as a success");
        }
        if self.requests[usize::from(value)] != self.requests[usize::from(number)] {
            state.fault("a client received the answer to another request");
        }
        state.phase(number, Phase::Answered(Answer::Kept(value)));
    }

    pub(crate) fn give_up(&self, state: &mut State, number: Number) {
        if !matches!(state.requests[usize::from(number)].phase, Phase::Claims { .. }) {
            state.seen.late_record = true;
            return state.phase(number, Phase::Answered(Answer::Unconfirmed));
        }
        state.phase(number, Phase::Answered(Answer::ComeAgain));
        if !self.is(Broken::UnansweredClaimIsLeft) {
            state.send(number, Verb::Undo);
        }
    }

    fn has_leases(&self) -> bool {
        self.mode != Mode::Transaction
    }

    pub(crate) fn look(&self, state: &mut State, number: Number) {
        let Phase::Runs { since, acted, .. } = state.requests[usize::from(number)].phase else { return };
        let lives = state.now < since + LEASE || !self.has_leases() || self.is(Broken::ActsAfterItsLease);
        if !lives {
            return self.end(state, number, true);
        }
        state.phase(number, Phase::Runs { since, cleared: true, acted });
        if !self.pauses {
            self.act(state, number);
        }
    }

    pub(crate) fn act(&self, state: &mut State, number: Number) {
        let Phase::Runs { since, .. } = state.requests[usize::from(number)].phase else { return };
        state.phase(number, Phase::Runs { since, cleared: true, acted: true });
        state.seen.acted.push(number);
        if self.has_leases() {
            state.seen.effects += 1;
        }
    }

    pub(crate) fn end(&self, state: &mut State, number: Number, failed: bool) {
        let Phase::Runs { since, acted, .. } = state.requests[usize::from(number)].phase else { return };
        if failed {
            state.seen.failed.push(number);
            if acted && self.is(Broken::RollbackKeepsTheEffect) {
                state.seen.effects += 1;
            }
        }
        let keeps = self.mode == Mode::AtMostOnce || self.is(Broken::FailureIsSettled);
        state.phase(number, Phase::Ends { failed, since });
        state.send(number, if failed && !keeps { Verb::Release } else { Verb::Settle });
        if !failed && self.is(Broken::AnswersBeforeItSettles) {
            self.answer(state, number, number);
        }
    }

    pub(crate) fn reconcile(&self, state: &mut State) {
        let holder = state.holder();
        let Some(seen) = state.reconciles.take() else {
            state.reconciles = holder.map(|(holder, _)| holder);
            return;
        };
        let lives = holder.filter(|(holder, _)| state.holds(*holder));
        match holder {
            Some((now_holds, _)) if self.is(Broken::ReconcilesAnybody) => state.settle_live(now_holds),
            Some((now_holds, _)) if self.is(Broken::ReconcilesTooEarly) && now_holds == seen => state.settle_live(seen),
            _ => state.end_for(seen),
        }
        if lives.is_some() && state.holder().is_none() {
            state.fault("the reconciler ended a claim that lives");
        }
    }
}

/// Remembers what the properties need.
pub(crate) fn look_back(state: &mut State) {
    match (state.seen.settled, state.settled()) {
        (None, Some(value)) => state.seen.settled = Some((value, state.now + RETENTION)),
        (Some((kept, until)), found) if state.now < until && found != Some(kept) && !state.seen.forgotten => {
            state.fault("a settled answer has changed within its retention");
        }
        _ => {}
    }
}
