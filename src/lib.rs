//! Tower middleware that makes an operation safe to repeat.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod body;
mod engine;
mod exchange;
mod extract;
#[cfg(feature = "axum")]
mod extractors;
mod idempotency;
mod problem;
pub mod store;
mod value;

#[cfg(feature = "axum")]
pub use self::extractors::MissingOperation;
#[cfg(feature = "memory")]
#[cfg_attr(docsrs, doc(cfg(feature = "memory")))]
pub use self::store::{Clock, MemoryStore, MemoryStoreBuilder};
pub use self::{
    body::{RequestBody, ResponseBody},
    engine::Leftovers,
    exchange::Operation,
    extract::{fingerprint, key, scope},
    idempotency::{Idempotency, IdempotencyLayer, ResponseFuture},
    value::{
        AfterCrash, Answer, Binding, Caller, Claim, Claimant, Entry, Event, Fingerprint, FingerprintBuilder, Head,
        Issue, Keep, KeyError, Mismatch, Observer, OnDuplicate, Policy, Record, RecordKey, Refusal, Release, Reply,
        Settlement, State, StoreError, StoreErrorKind, StoreVerb, Verdict, WhileRunning, judge,
    },
};
