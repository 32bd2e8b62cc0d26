//! Values: the name of an operation, the comparison of requests, policies, kept answers. No I/O, no store, no HTTP
//! service.

pub(crate) mod base64url;
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
mod keep;
mod key;
mod nonzero;
mod payload;
mod policy;
mod record;
mod refusal;
mod reply;
mod rules;
mod secret;
#[cfg(feature = "signed-tokens")]
mod signing;
mod time;
mod trace;
mod unseen;

#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub(crate) use self::policy::UNRECONCILED;
#[cfg(feature = "memory")]
pub(crate) use self::rules::{Undone, released, undone};
#[cfg(feature = "signed-tokens")]
pub use self::signing::SigningKeys;
#[cfg(any(feature = "redis", feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub(crate) use self::time::jitter;
pub(crate) use self::{
    child::child_key,
    compact::CompactDigest,
    digest::{Digest, hex, labelled_digest},
    keep::is_undone,
    key::{check_key, check_name, is_blank},
    nonzero::nonzero,
    payload::is_failure,
    policy::{HandlerDirectives, Retain},
    rules::{Behalf, Ending, Hold},
    time::{Backoff, doubled, millis},
    unseen::Unseen,
};
pub use self::{
    claim::{Binding, Claim, Issue, Release, Settlement},
    error::{KeyError, StoreError, StoreErrorKind},
    event::{Event, Observer, StoreVerb},
    fingerprint::{Fingerprint, FingerprintBuilder},
    identity::{Caller, Claimant, Origin},
    keep::{Answer, Keep},
    key::RecordKey,
    payload::Payload,
    policy::{AfterCrash, OnDuplicate, Policy, WhileRunning},
    record::{Entry, Filter, Record, State},
    refusal::Refusal,
    reply::{Duplicate, KeptAnswer, Reply},
    rules::{Granted, Head, Mismatch, StoredRecord, Verdict, judge},
    secret::{Secret, SecretNumber, SecretTooShort},
    trace::TraceContext,
};
#[cfg(feature = "json")]
pub(crate) use self::{finite::is_finite, payload::json_of};
