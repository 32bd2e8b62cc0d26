//! Tower middleware that makes an operation safe to repeat.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod store;
#[cfg(feature = "testing")]
#[cfg_attr(docsrs, doc(cfg(feature = "testing")))]
pub mod testing;
mod value;

pub use self::value::{
    AfterCrash, Answer, Binding, Caller, Claim, Claimant, Entry, Event, Fingerprint, FingerprintBuilder, Head, Issue,
    Keep, KeyError, Mismatch, Observer, OnDuplicate, Policy, Record, RecordKey, Refusal, Release, Reply, Retain,
    Settlement, State, StoreError, StoreErrorKind, StoreVerb, Verdict, WhileRunning, judge,
};
