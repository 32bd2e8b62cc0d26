//! One HTTP request, from its head to its response.
//!
//! # One request, top to bottom
//!
//! | step | file | hands on |
//! | --- | --- | --- |
//! | 1. is the request protected? | `service` (`call`), `inspect` (`leaves_out`), `settings/exceptions` | the parts of the request |
//! | 2. identify: key, scope, caller, as far as the head has them | `identify` (`subject`), `authenticate` if an extractor has the scope | `PartialIdentity` |
//! | 3. receive: the body, whole, streamed, or up to a token | `future` (`Receives`); `receive` and `prefix` for what has to be awaited | `Collected`, `Received` |
//! | 4. verify | `receive`, with `settings/verify` | – |
//! | 5. name the operation: key and fingerprint | `name` (`claim`) | `KeyedRequest` |
//! | 6. claim, or wait | `decide` (`decide`, `instead`, `begin`), with `engine` (`admit_now`, `admit`) | `Grant`, or why it does not run |
//! | 7. run the handler while the lease is renewed | `run` (`HandlerJob`), in an `engine` (`Execution`) | the response |
//! | 8. read the response, decide what is kept | `run`, with `answer`, `hooked`, `record/codec`, `record/headers` | `RecordAction`, `Completion` |
//! | 9. end the claim | `engine` (`run/execution`, `run/finish`) | `Outcome` |
//! | 10. respond | `run` (`respond`); for duplicates and refusals `respond/refuse`; headers of a first answer `record/recorded` | the response |
//!
//! A duplicate leaves at step 6 for `respond/refuse` (`duplicate`, `running`). A request that the layer does not protect
//! leaves at step 1. With a store that answers at once, steps 3 to 6 are one poll of `future`, and nothing is boxed
//! before step 7.
//!
//! # What always holds
//!
//! - Nothing is claimed before step 5 has succeeded. So a refusal up to there leaves nothing behind, and needs no
//!   cleanup.
//! - From step 7 on the request is an `engine::Running`: if the client disconnects, it goes on in the background.
//! - The response is sent after step 9. A client never receives an answer that contradicts the record known by then.
//! - A refusal is a response. The error type of the service is that of the inner service.
//!
//! Nothing in this room is locked. `Exchange` is immutable and shared by an `Arc`; the only shared state is `Warned`,
//! an array of atomics.
//!
//! # The values between the steps
//!
//! | type | where | what it is |
//! | --- | --- | --- |
//! | `Exchange` | `exchange` | the settings of a layer, and its engine |
//! | `PartialIdentity` | `identify` | caller, scope and key, as far as the head has them |
//! | `Stop` | `settings/verify` | why a request is answered before its claim |
//! | `KeyedRequest` | `name` | the claim that is sent to the store, and the token |
//! | `RequestContext` | `name` | the same by reference, with the head: what answers depend on |
//! | `Decision`, `Instead` | `decide` | what follows for a request, and what it receives if it does not run |
//! | `Grant`, `NotRun` | `engine` | whether the request may run, and if not, why |
//! | `RecordAction` | `answer` | what becomes of the record: settled, replaced, released, undone |
//! | `Completion`, `Outcome` | `engine` | the same for the engine, and how it went |
//! | `OfRecord` | `record/recorded` | headers that the answer gets once it is recorded |
//!
//! A new step takes what it needs from `Exchange` and hands on a value of its own; it does not write into the settings.

mod answer;
#[cfg(feature = "axum")]
mod authenticate;
mod decide;
mod exchange;
mod future;
mod hooked;
mod identify;
mod inspect;
mod name;
#[cfg(feature = "form")]
mod prefix;
mod receive;
mod record;
mod respond;
mod run;
mod service;
mod settings;
#[cfg(all(test, feature = "axum"))]
mod tests;
mod tokens;

use self::{
    exchange::MARKER,
    identify::PartialIdentity,
    name::{KeyedRequest, RequestContext},
};
pub(crate) use self::{
    exchange::{Exchange, RouteSource, Scoping, assert_replayable},
    settings::FailOpen,
};
pub use self::{future::ResponseFuture, respond::RefusedRequest, service::Idempotency};
