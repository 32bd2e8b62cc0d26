//! Values: the name of an operation, the comparison of requests, policies, kept answers. No I/O, no store, no HTTP
//! service.

mod child;
mod claim;
mod compact;
mod digest;
mod error;
mod event;
mod fingerprint;
#[cfg(feature = "json")]
mod finite;
mod identity;
mod judge;
mod keep;
mod key;
mod nonzero;
mod payload;
mod policy;
mod record;
mod refusal;
mod reply;
mod secret;
mod trace;
mod unseen;

#[cfg(feature = "_sql")]
pub(crate) use self::policy::UNRECONCILED;
pub(crate) use self::{
    child::child_key,
    compact::CompactDigest,
    digest::{Digest, hex, labelled_digest},
    keep::is_undone,
    key::{check_key, check_name, is_blank},
    nonzero::nonzero,
    payload::is_failure,
    policy::{HandlerDirectives, Retain},
    unseen::Unseen,
};
pub use self::{
    claim::{Binding, Claim, Issue, Release, Settlement},
    error::{KeyError, StoreError, StoreErrorKind},
    event::{Event, Observer, StoreVerb},
    fingerprint::{Fingerprint, FingerprintBuilder},
    identity::{Caller, Claimant, Origin},
    judge::{Granted, Head, Mismatch, Verdict, judge},
    keep::{Answer, Keep},
    key::RecordKey,
    payload::Payload,
    policy::{AfterCrash, OnDuplicate, Policy, WhileRunning},
    record::{Entry, Filter, Record, State},
    refusal::Refusal,
    reply::{Duplicate, KeptAnswer, Reply},
    secret::{Secret, SecretNumber, SecretTooShort},
    trace::TraceContext,
};
#[cfg(feature = "json")]
pub(crate) use self::{finite::is_finite, payload::json_of};
