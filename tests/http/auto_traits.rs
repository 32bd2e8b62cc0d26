//! What may be sent, shared, cloned and moved. It holds if it compiles.

use std::{convert::Infallible, fmt::Debug, sync::Arc};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tower::{Layer, Service, util::BoxCloneSyncService};
use tower_idempotency::{
    BackgroundTasks, Event, IdempotencyLayer, MemoryStore, Operation, Policy, Refusal, StoreError, fingerprint, key,
    policy::{Duplicate, KeptAnswer},
    scope,
    service::{Idempotency, RefusedRequest, RequestBody, ResponseBody, ResponseFuture},
    store::{Claim, Claimed, Record, RecordKey, Store, StoreAdmin, StoreFuture},
};

use crate::common::steps::Steps;

fn values<T: Send + Sync + Clone + Debug + Unpin + 'static>() {}
fn shared<T: Send + Sync + Debug + Unpin + 'static>() {}
fn sent<T: Send + Debug>() {}
fn unpinned<T: Send + Debug + Unpin>() {}
fn errors<T: std::error::Error + Send + Sync + 'static>() {}
fn stores<T: Store + StoreAdmin>() {}
fn services<S, B>()
where
    S: Service<Request<B>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
{
}

type Inner<B> = BoxCloneSyncService<Request<RequestBody<B>>, Response<Full<Bytes>>, Infallible>;
/// Not `Sync`, as bodies of applications are.
type OddBody = http_body_util::combinators::UnsyncBoxBody<Bytes, Infallible>;

#[test]
fn public_types_can_be_sent_and_shared() {
    values::<IdempotencyLayer>();
    values::<Idempotency<Inner<Full<Bytes>>>>();
    values::<Operation>();
    values::<BackgroundTasks>();
    values::<Policy>();
    values::<(key::KeyExtractor, scope::ScopeExtractor)>();
    values::<fingerprint::FingerprintExtractor>();
    values::<(RecordKey, Record, Claim, Claimed, Refusal)>();
    values::<MemoryStore>();
    values::<Event<'static>>();
    values::<(Duplicate<'static>, KeptAnswer, RefusedRequest<'static>)>();
    errors::<StoreError>();
    sent::<StoreFuture<'static, Claimed>>();
    stores::<MemoryStore>();
    stores::<Arc<MemoryStore>>();
    stores::<Arc<dyn StoreAdmin>>();
    shared::<(RequestBody<Steps>, ResponseBody<Full<Bytes>>)>();
    sent::<RequestBody<OddBody>>();
    sent::<ResponseBody<OddBody>>();
    services::<Idempotency<Inner<Full<Bytes>>>, _>();
    services::<Idempotency<Inner<Steps>>, _>();
    sent::<ResponseFuture<Inner<Steps>, Steps, Full<Bytes>>>();
    sent::<ResponseFuture<Inner<OddBody>, OddBody, OddBody>>();
    unpinned::<ResponseFuture<Inner<Full<Bytes>>, Full<Bytes>, Full<Bytes>>>();
}

#[cfg(feature = "testing")]
#[test]
fn types_for_testing_can_be_sent_and_shared() {
    use tower_idempotency::testing::{Faults, FaultyStore, Gate, ManualClock};
    values::<(FaultyStore<MemoryStore>, Faults, ManualClock)>();
    shared::<Gate>();
    stores::<FaultyStore<MemoryStore>>();
}

/// A layer and its service can be named, stored and returned.
struct App {
    layer: IdempotencyLayer,
    service: Idempotency<Inner<Full<Bytes>>>,
}

#[test]
fn layer_and_service_can_be_named() {
    let inner = || Inner::new(tower::service_fn(|_| async { Ok(Response::new(Full::default())) }));
    let layer = IdempotencyLayer::new(MemoryStore::new());
    let app = App { service: layer.layer(inner()), layer };
    let _ = (app.layer.clone(), app.service.clone().into_inner());
}

#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
#[test]
fn the_message_log_can_be_sent_and_shared() {
    use tower_idempotency::{
        MessageLogLayer,
        service::{BufferedBody, MessageId, MessageLogFuture, MessageLogService},
        sql::message_log::{IncomingMessage, LoggedMessage, MessageFilter},
    };

    type Logged<B> = BoxCloneSyncService<Request<BufferedBody<B>>, Response<Full<Bytes>>, Infallible>;

    values::<MessageLogLayer>();
    values::<MessageLogService<Logged<Full<Bytes>>>>();
    values::<(MessageId, IncomingMessage, LoggedMessage, MessageFilter)>();
    unpinned::<BufferedBody<OddBody>>();
    sent::<MessageLogFuture<OddBody, Infallible>>();
    services::<MessageLogService<Logged<OddBody>>, _>();
}

#[cfg(feature = "sealed")]
#[test]
fn sealed_stores_can_be_sent_and_shared() {
    use tower_idempotency::store::{Seal, SealedStore, SealingKeyId, SealingKeys};

    values::<(SealedStore<MemoryStore>, SealingKeys, Seal, SealingKeyId)>();
    stores::<SealedStore<MemoryStore>>();
    stores::<SealedStore<Arc<dyn StoreAdmin>>>();
}
