//! Tower middleware that makes an operation safe to repeat.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod store;
mod value;

#[cfg(feature = "memory")]
#[cfg_attr(docsrs, doc(cfg(feature = "memory")))]
pub use self::store::{Clock, MemoryStore, MemoryStoreBuilder};
pub use self::value::{
    AfterCrash, Answer, Binding, Caller, Claim, Claimant, Entry, Event, Fingerprint, FingerprintBuilder, Head, Issue,
    Keep, KeyError, Mismatch, Observer, OnDuplicate, Policy, Record, RecordKey, Refusal, Release, Reply, Retain,
    Settlement, State, StoreError, StoreErrorKind, StoreVerb, Verdict, WhileRunning, judge,
};
