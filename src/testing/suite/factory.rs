use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use crate::store::StoreAdmin;

/// A source of stores for the suite, which also lets time pass for them.
///
/// A closure is a factory whose stores live in real time, or in the paused time of a test's runtime if that is where
/// they take it from. A store with a clock of its own implements the trait:
///
/// ```
/// use std::time::Duration;
/// use tower_idempotency::{
///     MemoryStore,
///     testing::{ManualClock, suite, suite::Factory},
/// };
///
/// struct Manual {
///     clock: ManualClock,
///     store: MemoryStore,
/// }
///
/// impl Factory for Manual {
///     type Store = MemoryStore;
///
///     async fn store(&self, namespace: &str) -> MemoryStore {
///         self.store.namespace(namespace)
///     }
///
///     async fn pass(&self, time: Duration) {
///         self.clock.advance(time);
///     }
///
///     // All rules look at one clock, which must not jump under a rule that did not ask for it.
///     fn side_by_side(&self) -> bool {
///         false
///     }
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let clock = ManualClock::new();
/// let store = MemoryStore::builder().clock(clock.clone()).build();
/// suite::run(&Manual { clock, store }).await;
/// # }
/// ```
pub trait Factory {
    /// The store.
    type Store: StoreAdmin;

    /// Returns a handle to the records of `namespace`: the same name twice is the same records, as two processes see
    /// them.
    ///
    /// The suite asks for namespaces with random names of at most 32 letters, digits and underscores.
    fn store(&self, namespace: &str) -> impl Future<Output = Self::Store>;

    /// Lets time pass for the stores.
    fn pass(&self, time: Duration) -> impl Future<Output = ()> {
        tokio::time::sleep(time)
    }

    /// Returns whether rules that wait for time to pass may do so at once.
    fn side_by_side(&self) -> bool {
        true
    }
}

impl<F, R> Factory for F
where
    F: Fn(&str) -> R,
    R: Future<Output: StoreAdmin>,
{
    type Store = R::Output;

    fn store(&self, namespace: &str) -> impl Future<Output = Self::Store> {
        self(namespace)
    }
}

pub(super) type Local<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// A factory without its type, so that the rules are compiled once and not for every store.
pub(super) trait AnyFactory {
    fn any_store<'a>(&'a self, namespace: &'a str) -> Local<'a, Arc<dyn StoreAdmin>>;

    fn any_pass(&self, time: Duration) -> Local<'_, ()>;
}

impl<F: Factory> AnyFactory for F {
    fn any_store<'a>(&'a self, namespace: &'a str) -> Local<'a, Arc<dyn StoreAdmin>> {
        Box::pin(async move { Arc::new(self.store(namespace).await) as Arc<dyn StoreAdmin> })
    }

    fn any_pass(&self, time: Duration) -> Local<'_, ()> {
        Box::pin(self.pass(time))
    }
}
