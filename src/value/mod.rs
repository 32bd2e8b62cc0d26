//! Values: the name of an operation, the comparison of requests, policies, kept answers. No I/O, no store, no HTTP
//! service.
//!
//! - `key`: the name of a record, and the digests that it is made of. `record`: what a store holds, and the arguments
//!   of its verbs.
//! - `rules`: what follows for a claim, a renewal, an end. Every store and every cache uses these functions.
//! - `policy`, `keep`, `reply`: what happens to a duplicate. `refusal`, `error`: why something does not happen.
//! - `event`: what is reported; `sweep_report`: what a reconciler reports. `fingerprint`: what counts as the same request.
//! - `time`, `nonzero`, `unseen`, `finite`: small helpers.
//!
//! Nothing here is asynchronous, locks, or reads a clock: times are arguments. So a rule can be tested on every state
//! of a record.

mod error;
mod event;
mod fingerprint;
#[cfg(feature = "json")]
mod finite;
mod keep;
mod key;
mod nonzero;
mod policy;
mod random;
mod record;
mod refusal;
mod reply;
mod rules;
mod sweep_report;
mod switch;
mod time;
mod unseen;

#[cfg(feature = "_sql")]
pub(crate) use self::policy::UNRECONCILED;
#[cfg(feature = "sealed")]
pub(crate) use self::record::{SEAL_MARK, sealed_with};
#[cfg(feature = "memory")]
pub(crate) use self::rules::{Undone, released, undone};
#[cfg(any(feature = "redis", feature = "_sql"))]
pub(crate) use self::time::jitter;
pub use self::{
    error::{KeyError, StoreError, StoreErrorKind},
    event::{DeadLetterReason, DropReason, Event, NotKept, Observer, StoreVerb, WaitEnd},
    fingerprint::{Fingerprint, FingerprintBuilder},
    keep::{Answer, Keep},
    key::{RecordKey, Secret, SecretNumber, SecretTooShort},
    policy::{AfterCrash, OnDuplicate, Policy, RunPolicy, WhileRunning},
    record::{
        Binding, Caller, Claim, Claimant, Entry, Filter, Issue, Origin, Payload, Record, Release, Seal, SealingKeyId,
        Settlement, State, TraceContext,
    },
    refusal::Refusal,
    reply::{Duplicate, ForDuplicates, KeptAnswer, Reply},
    rules::{Granted, Mismatch, RecordHead, StoredRecord, Verdict, judge},
    sweep_report::SweepReport,
    switch::{Protection, Switch},
};
pub(crate) use self::{
    event::{Observers, status_of},
    keep::is_undone,
    key::{CompactDigest, Digest, check_key, check_name, child_key, hex, is_blank, labelled_digest},
    nonzero::nonzero,
    policy::{HandlerDirectives, Resolved, Retain, RunSettings},
    random::random_bytes,
    record::{is_failure, is_sealed},
    rules::{Behalf, Ending, Hold},
    time::{Backoff, doubled, millis},
    unseen::Unseen,
};
#[cfg(feature = "json")]
pub(crate) use self::{finite::is_finite, record::json_of};
