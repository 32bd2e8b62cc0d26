//! A store for `cratestack-axum`, which has stores on SQL only: as little as its trait lets one get by with, and nothing
//! expires.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use async_trait::async_trait;
use cratestack_core::{CratestackError, IdempotencyRecord, ReservationOutcome, store::IdempotencyStore};
use uuid::Uuid;

/// All requests of a bench have one principal, so the keys do not contain it.
#[derive(Default)]
pub struct Map(Mutex<HashMap<String, Entry>>);

struct Entry {
    token: Uuid,
    hash: [u8; 32],
    expires_at: SystemTime,
    record: Option<IdempotencyRecord>,
}

impl Map {
    fn entries(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl IdempotencyStore for Map {
    async fn reserve_or_fetch(
        &self,
        _: &str,
        key: &str,
        hash: [u8; 32],
        expires_at: SystemTime,
    ) -> Result<ReservationOutcome, CratestackError> {
        let mut entries = self.entries();
        Ok(match entries.get(key) {
            None => {
                let token = Uuid::new_v4();
                entries.insert(key.to_owned(), Entry { token, hash, expires_at, record: None });
                ReservationOutcome::Reserved { token }
            }
            Some(entry) if entry.hash != hash => ReservationOutcome::Conflict,
            Some(Entry { record: Some(record), .. }) => ReservationOutcome::Replay(record.clone()),
            Some(_) => ReservationOutcome::InFlight,
        })
    }

    async fn complete(
        &self,
        principal: &str,
        key: &str,
        token: Uuid,
        status: u16,
        headers: &[u8],
        body: &[u8],
    ) -> Result<(), CratestackError> {
        if let Some(entry) = self.entries().get_mut(key).filter(|entry| entry.token == token) {
            entry.record = Some(IdempotencyRecord {
                key: key.to_owned(),
                principal_fingerprint: principal.to_owned(),
                request_hash: entry.hash,
                response_status: status,
                response_headers: headers.to_vec(),
                response_body: body.to_vec(),
                created_at: entry.expires_at,
                expires_at: entry.expires_at,
            });
        }
        Ok(())
    }

    async fn release(&self, _: &str, key: &str, token: Uuid) -> Result<(), CratestackError> {
        let mut entries = self.entries();
        if entries.get(key).is_some_and(|entry| entry.token == token) {
            entries.remove(key);
        }
        Ok(())
    }
}
