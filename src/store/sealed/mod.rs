//! A store that encrypts what its inner store keeps of the application's.
//!
//! - `keys`: the keys, and the layout of what is sealed. `sealer`: which arguments and results of the verbs are sealed
//!   and opened.
//! - this file: the builder, and the verbs. `admin`, `transaction`: the other two traits.
//!
//! The inner store decides about every claim; nothing that decides is encrypted. What cannot be opened stays sealed, and
//! every edge refuses a sealed payload (`is_sealed`), so that it is neither replayed nor taken for a success. There are
//! no locks. The lint `missing_trait_methods` is denied, so that a verb that is added to a trait is passed on here too.

#![deny(clippy::missing_trait_methods)]

mod admin;
mod keys;
mod sealer;
#[cfg(test)]
mod tests;
mod transaction;

use std::{sync::Arc, time::Duration};

use crate::value::{Claim, Claimant, Issue, RecordKey, Release, Settlement, StoreError};

use super::{Claimed, Finished, Issued, Renewed, Store, StoreFuture, support::forward_store};

pub use self::keys::SealingKeys;
use self::sealer::Sealer;

/// A store that encrypts the answers and notes that another store keeps.
///
/// Answers are encrypted with XChaCha20-Poly1305 before the inner store sees them, and so are notes, such as the
/// request body that [`keep_request`](crate::IdempotencyLayer::keep_request) keeps. Anyone who reads the inner
/// store, its backups or its traffic sees how long they are and nothing else of them. Anyone who can write to it can
/// remove an answer, or bring an older one of the same record back, but can neither change one nor move it to another
/// record.
///
/// ```
/// use std::time::Duration;
/// use tower_idempotency::{
///     MemoryStore,
///     store::{Claim, Claimed, Origin, RecordKey, Seal, SealedStore, SealingKeys, Settlement, Store, StoreAdmin},
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let secret = [7; 32];
/// let keys = SealingKeys::new(secret)?;
/// let inner = MemoryStore::new(); // or a server, or a database
/// let store = SealedStore::new(inner.clone(), keys.clone());
///
/// let key = RecordKey::new("/orders", None, "7f0c")?;
/// let (lease, day) = (Duration::from_secs(30), Duration::from_secs(86_400));
/// let first = Claim::new(lease, day);
/// assert!(matches!(store.claim(&key, &first).await?, Claimed::Granted(_)));
/// store.settle(&key, &Settlement::new(first.claimant, Some("paid".into()), day)).await?;
///
/// // A duplicate receives the answer, and an operator sees that it is sealed.
/// assert_eq!(store.claim(&key, &Claim::new(lease, day)).await?, Claimed::Settled(Some("paid".into()), Origin::NONE));
/// assert_eq!(store.inspect(&key).await?.unwrap().payload_seal(), Seal::Opened(keys.id()));
///
/// // The store itself has 49 bytes more, and nothing that can be read.
/// let kept = inner.inspect(&key).await?.unwrap();
/// assert_eq!(kept.payload_seal(), Seal::Closed(keys.id()));
/// assert_eq!(kept.payload.unwrap().len(), "paid".len() + 49);
/// # Ok(())
/// # }
/// ```
///
/// # What is sealed, and what is not
///
/// The payload of a settled record and the note of a claim are sealed; an empty note and a tombstone are not. What the
/// store compares and what operators look for stays as it is: route, scope and key, the digests of caller and content,
/// states, times, what a token is bound to, the position in a trace. See [`Secret`](crate::Secret) for the digests.
///
/// Each part is bound to its record's key, and to the name that [`bound_to`](Self::bound_to) sets. It is 49 bytes
/// longer than what is in it, and the limits of the inner store count these: what is too large for it sealed leaves a
/// tombstone. Nonces are 192 random bits of the operating system, so that a key may seal any number of answers.
///
/// # What cannot be opened
///
/// If the key of an answer is not at hand, or the answer was changed or moved, its duplicate is refused with 409
/// [`answer-unreadable`](crate::guide::refusals#answer-unreadable) and never runs; a message is given back to its
/// broker. An ERROR in the log names the route and the number of the key. Operators read such records with
/// [`inspect`](super::StoreAdmin::inspect), which says [`Closed`](super::Seal::Closed) and has the encrypted bytes.
///
/// # Wrappers
///
/// It is a store of transactions if its inner store is one, and it answers at once if its inner store does. Around a
/// [`CachedStore`](super::CachedStore) it keeps the cache encrypted too; inside of one, the cache holds answers as they
/// are. A handler that settles in a transaction of its own
/// has to seal by itself: [`sealed_settlement`](Self::sealed_settlement).
///
/// # Records from before
///
/// Records that are not sealed are refused by default, as those that were changed are: otherwise anyone who can
/// write to the store could plant an answer. To begin sealing with a store that has records, take three steps, each on all
/// processes before the next one begins:
///
/// 1. open what is sealed, and seal nothing yet: [`without_sealing`](Self::without_sealing)
/// 2. seal, and read what is not sealed: [`accept_unsealed`](Self::accept_unsealed)
/// 3. when the longest retention has passed since step 2: neither.
///
/// A process that skips step 1 refuses what its neighbours seal, with the same 409, so step 1 can be left out if
/// duplicates may be refused for as long as the deploy takes. To stop sealing, go back to step 1.
#[derive(Clone, Debug)]
pub struct SealedStore<S> {
    inner: S,
    sealer: Arc<Sealer>,
}

impl<S> SealedStore<S> {
    /// Creates a store that seals what `inner` keeps.
    pub fn new(inner: S, keys: SealingKeys) -> Self {
        Self::within(inner, Sealer { keys, name: "".into(), seals: true, accepts_unsealed: false })
    }

    fn within(inner: S, sealer: Sealer) -> Self {
        Self { inner, sealer: Arc::new(sealer) }
    }

    /// Binds what is sealed to a name as well, such as the namespace of the inner store: an answer that is moved to the
    /// record of the same key in another namespace does not open there. Default: no name.
    ///
    /// What was sealed under another name is refused from then on, as if it had been changed.
    #[must_use]
    pub fn bound_to(self, name: &str) -> Self {
        let sealer = Sealer { name: name.into(), ..Sealer::clone(&self.sealer) };
        Self::within(self.inner, sealer)
    }

    /// Accepts records that are not sealed, such as those from before the store was sealed. Default: they are refused.
    ///
    /// As long as this is set, anyone who can write to the inner store can plant an answer.
    #[must_use]
    pub fn accept_unsealed(self) -> Self {
        let sealer = Sealer { accepts_unsealed: true, ..Sealer::clone(&self.sealer) };
        Self::within(self.inner, sealer)
    }

    /// Seals nothing, opens what is sealed, and accepts what is not: the first step before sealing begins, and the last
    /// one after it has ended.
    #[must_use]
    pub fn without_sealing(self) -> Self {
        let sealer = Sealer { seals: false, accepts_unsealed: true, ..Sealer::clone(&self.sealer) };
        Self::within(self.inner, sealer)
    }

    /// Returns the inner store, which does not open what is sealed.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// Returns a settlement with its payload sealed, for a handler that settles a record of the inner store by itself,
    /// such as with `SqlStore::settle_in` or `settle_statement`.
    ///
    /// # Errors
    ///
    /// Returns an error of the kind [`TooLarge`](super::StoreErrorKind::TooLarge) if the payload has 256 GiB or more.
    pub fn sealed_settlement(&self, key: &RecordKey, settlement: &Settlement) -> Result<Settlement, StoreError> {
        Ok(self.sealer.settlement(key, settlement)?.unwrap_or_else(|| settlement.clone()))
    }

    /// Returns a claim with its note sealed, for an application that claims in the inner store by itself, such as with
    /// `SqlStore::claim_statement`.
    ///
    /// # Errors
    ///
    /// Returns an error of the kind [`TooLarge`](super::StoreErrorKind::TooLarge) if the note has 256 GiB or more.
    pub fn sealed_claim(&self, key: &RecordKey, claim: &Claim) -> Result<Claim, StoreError> {
        Ok(self.sealer.claim(key, claim)?.unwrap_or_else(|| claim.clone()))
    }
}

impl<S: Store> SealedStore<S> {
    /// Asks the inner store with an argument that was made for it. An inner store that answers at once does so here.
    fn ask<'a, A, T, U>(
        &'a self,
        argument: A,
        call: impl for<'b> Fn(&'b S, &'b A) -> StoreFuture<'b, T> + Send + 'a,
        convert: impl FnOnce(T) -> U + Send + 'a,
    ) -> StoreFuture<'a, U>
    where
        A: Send + Sync + 'a,
        T: Send + Unpin + 'a,
        U: 'a,
    {
        if self.inner.is_immediate()
            && let Some(answer) = call(&self.inner, &argument).into_ready()
        {
            return StoreFuture::ready(answer.map(convert));
        }
        StoreFuture::new(async move { call(&self.inner, &argument).await.map(convert) })
    }
}

impl<S: Store> Store for SealedStore<S> {
    forward_store!([inner] is_immediate, issue, renew, changed);

    fn claim<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Claimed> {
        let opened = |claimed| self.sealer.claimed(key, claimed);
        match self.sealer.claim(key, claim) {
            Ok(None) => self.inner.claim(key, claim).map(opened),
            Ok(Some(sealed)) => self.ask((key, sealed), |inner, (key, sealed)| inner.claim(key, sealed), opened),
            Err(error) => StoreFuture::ready(Err(error)),
        }
    }

    fn settle<'a>(&'a self, key: &'a RecordKey, settlement: &'a Settlement) -> StoreFuture<'a, Finished> {
        let opened = |finished| self.sealer.finished(key, finished);
        match self.sealer.settlement(key, settlement) {
            Ok(None) => self.inner.settle(key, settlement).map(opened),
            Ok(Some(sealed)) => self.ask((key, sealed), |inner, (key, sealed)| inner.settle(key, sealed), opened),
            Err(error) => StoreFuture::ready(Err(error)),
        }
    }

    fn release<'a>(&'a self, key: &'a RecordKey, release: &'a Release) -> StoreFuture<'a, Finished> {
        self.inner.release(key, release).map(|finished| self.sealer.finished(key, finished))
    }
}
