//! The state of a search.

use std::fmt;

use tower_idempotency::store::State as RecordState;

use crate::store::{LEASE, Reply};

/// The number of a request, which is also that of its claimant and of its answer.
pub(crate) type Number = u8;

/// What a process asks the store for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Verb {
    Claim,
    Renew,
    Settle,
    /// After a failure: the attempt is remembered.
    Release,
    /// Of a claim that was not answered in time.
    Undo,
}

/// A message on its way to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Message {
    pub(crate) from: Number,
    pub(crate) verb: Verb,
    /// When it was sent.
    pub(crate) sent: u8,
}

/// What the client of a request has received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Answer {
    /// The value of this request's run, which the record holds.
    Kept(Number),
    /// The value of its own run, of which it is not known whether the record holds it.
    Unconfirmed,
    /// Its own run has failed.
    Failed,
    /// A refusal: it may come again.
    ComeAgain,
    /// A refusal for good: another content, or another caller.
    Mismatch,
    /// It is not known how the only run ended.
    OutcomeUnknown,
}

/// How far a request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    /// It has not been sent.
    New,
    /// Its claim is on its way, or the answer to it.
    Claims {
        sent: u8,
    },
    /// It runs. The lease counts from `since`. It has looked at its lease, if `cleared`, and acts next.
    Runs {
        since: u8,
        cleared: bool,
        acted: bool,
    },
    /// Its end is on its way.
    Ends {
        failed: bool,
        since: u8,
    },
    Answered(Answer),
    /// Its process has died, and no client has received anything.
    Died,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Request {
    pub(crate) phase: Phase,
    pub(crate) renewals: u8,
    /// The store was asked to renew, and its answer is not there.
    pub(crate) renews: bool,
}

/// What is left of each budget of faults.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Budget {
    pub(crate) crashes: u8,
    pub(crate) losses: u8,
    pub(crate) copies: u8,
    pub(crate) late: u8,
    pub(crate) failures: u8,
    pub(crate) failovers: u8,
}

/// What has been seen so far, by which the properties judge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Seen {
    /// How often there was an effect.
    pub(crate) effects: u8,
    /// How many runs began.
    pub(crate) runs: u8,
    /// What was settled first, and until when it holds.
    pub(crate) settled: Option<(Number, u8)>,
    /// Whose record was released, and until when it stays that caller's.
    pub(crate) released: Option<(u8, u8)>,
    /// Whose runs have acted, as the other side knows.
    pub(crate) acted: Vec<Number>,
    /// Whose runs have failed.
    pub(crate) failed: Vec<Number>,
    /// Whose transactions were committed.
    pub(crate) committed: Vec<Number>,
    /// The lease of a run has lapsed between its effect and its record: the store was away, or the process slow.
    pub(crate) late_record: bool,
    /// Something that cannot be seen in the state alone was wrong.
    pub(crate) fault: Option<&'static str>,
    /// A failover has forgotten something.
    pub(crate) forgotten: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) now: u8,
    /// The record as the store has written it.
    pub(crate) record: Option<Vec<u8>>,
    /// The record before the last write.
    pub(crate) before: Option<Vec<u8>>,
    pub(crate) requests: Vec<Request>,
    pub(crate) messages: Vec<Message>,
    /// Answers of the store that are on their way.
    pub(crate) answers: Vec<(Message, Reply)>,
    /// Whose abandoned record the reconciler has seen, and is about to settle.
    pub(crate) reconciles: Option<Number>,
    pub(crate) left: Budget,
    pub(crate) seen: Seen,
}

impl State {
    pub(crate) fn phase(&mut self, number: Number, phase: Phase) {
        self.requests[usize::from(number)].phase = phase;
    }

    pub(crate) fn send(&mut self, from: Number, verb: Verb) {
        self.messages.push(Message { from, verb, sent: self.now });
    }

    /// Remembers the first thing that was wrong.
    pub(crate) fn fault(&mut self, fault: &'static str) {
        self.seen.fault.get_or_insert(fault);
    }

    pub(crate) fn has_failed(&self, number: Number) -> bool {
        self.seen.failed.contains(&number)
    }

    /// Returns the caller that the record belongs to, by the request that has claimed it first.
    pub(crate) fn owner(&self) -> Option<u8> {
        let slot = self.slot(self.now);
        slot.record()
            .filter(|record| record.state != RecordState::Issued)
            .map(|record| record.origin.caller.digest()[0])
    }

    /// Returns whether a request runs, and its lease lives as far as its process knows.
    pub(crate) fn holds(&self, number: Number) -> bool {
        let request = self.requests.get(usize::from(number));
        request.is_some_and(|request| matches!(request.phase, Phase::Runs { since, .. } if self.now < since + LEASE))
    }
}

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    Send(Number),
    /// The store handles a message, and its answer arrives.
    Arrive(Message),
    /// The same, and a copy of the message is still on its way.
    ArriveOnceMore(Message),
    /// The store handles a message, and its answer is lost.
    AnswerIsLost(Message),
    /// The store handles a message, and its answer takes its time.
    AnswerIsLate(Message),
    /// An answer arrives at last.
    Hear(Message),
    Lose(Message),
    GiveUp(Number),
    Renew(Number),
    Look(Number),
    Act(Number),
    Finish(Number),
    Fail(Number),
    Die(Number),
    Reconcile,
    FailOver,
    Tick,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Send(number) => write!(f, "request {number} sends its claim"),
            Self::Arrive(Message { from, verb, .. }) => write!(f, "{verb:?} of {from} arrives and is answered"),
            Self::ArriveOnceMore(Message { from, verb, .. }) => {
                write!(f, "{verb:?} of {from} arrives, and stays on its way")
            }
            Self::AnswerIsLost(Message { from, verb, .. }) => {
                write!(f, "{verb:?} of {from} arrives, its answer is lost")
            }
            Self::AnswerIsLate(Message { from, verb, .. }) => {
                write!(f, "{verb:?} of {from} arrives, its answer takes its time")
            }
            Self::Hear(Message { from, verb, .. }) => write!(f, "the answer to {verb:?} of {from} arrives"),
            Self::Lose(Message { from, verb, .. }) => write!(f, "{verb:?} of {from} is lost"),
            Self::GiveUp(number) => write!(f, "request {number} waits no longer for the store"),
            Self::Renew(number) => write!(f, "request {number} renews its lease"),
            Self::Look(number) => write!(f, "request {number} looks at its lease"),
            Self::Act(number) => write!(f, "request {number} acts"),
            Self::Finish(number) => write!(f, "request {number} ends"),
            Self::Fail(number) => write!(f, "request {number} fails"),
            Self::Die(number) => write!(f, "the process of request {number} dies"),
            Self::Reconcile => f.write_str("the reconciler looks for what is abandoned, or ends it"),
            Self::FailOver => f.write_str("a failover forgets the last write"),
            Self::Tick => f.write_str("time passes"),
        }
    }
}
