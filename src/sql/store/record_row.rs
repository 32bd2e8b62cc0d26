//! Reading a row.
//!
//! The columns are those of `RECORD` in `statement.rs`, in this order. A row of a later version, and one that this
//! crate cannot have written, are values of their own (`Newer`, `Corrupt`), so that no caller takes them for a free key.

use std::time::{Duration, SystemTime};

use bytes::Bytes;

use crate::{
    sql::driver::SqlDatabase,
    value::{Binding, Caller, Claimant, Fingerprint, Origin, Record, RecordHead, SecretNumber, State, TraceContext},
};

/// The layout that this version writes. A row of a later layout is never matched and never changed.
const VERSION: i64 = 1;

/// The position of the columns after those of every record.
const NOTE: usize = 21;
pub(in crate::sql) const ID: usize = NOTE + 1;

/// A record as it was read.
pub(in crate::sql) struct FetchedRecord {
    /// The database's clock at the time of the read; not before the record's last change.
    pub(in crate::sql) now: i64,
    pub(in crate::sql) lease_ends: i64,
    pub(in crate::sql) expires: i64,
    record: Record,
}

/// The meaning of a row.
pub(in crate::sql) enum RecordRow {
    /// There was no record, and the claim's has been inserted.
    Fresh,
    Record(Box<FetchedRecord>),
    /// A record of a later version of this crate.
    Newer,
    Corrupt,
}

impl RecordRow {
    /// Reads the columns of [`RECORD`](crate::sql::statement), and the note after them.
    pub(in crate::sql) fn read<D: SqlDatabase>(row: &D::Row) -> sqlx::Result<Self> {
        let Some(state) = D::text(row, 1)? else { return Ok(Self::Fresh) };
        let int = |at| Ok::<_, sqlx::Error>(D::int(row, at)?.unwrap_or(0));
        let Some(state) = state_of(&state).filter(|_| int(15).is_ok_and(|version| version <= VERSION)) else {
            return Ok(Self::Newer);
        };
        let caller =
            |at| Ok::<_, sqlx::Error>(D::bytes(row, at)?.map(|bytes| bytes.try_into().map(Caller::from_bytes)));
        let (Some(claimant), Some(Ok(who)), Some(fingerprint), origin) = (
            D::bytes(row, 2)?.and_then(|bytes| bytes.try_into().ok()).map(Claimant::from_bytes),
            caller(5)?,
            D::bytes(row, 4)?.and_then(|bytes| fingerprint_of(&bytes)),
            caller(17)?.unwrap_or(Ok(Caller::NONE)).unwrap_or(Caller::NONE),
        ) else {
            return Ok(Self::Corrupt);
        };
        let (changed, lease_ends, expires) = (int(9)?, int(10)?, int(11)?);
        // A statement may have read the clock before it saw a change that was made a moment later.
        let now = int(0)?.max(changed);
        let attempt = u32::try_from(int(3)?).unwrap_or(u32::MAX);
        let binding = D::text(row, 12)?;
        let principal = if binding.is_some() { D::text(row, 13)? } else { None };
        let running = |ms| if state == State::Running { span(ms) } else { Duration::ZERO };
        let payload = if state == State::Settled { D::bytes(row, 14)? } else { None };
        let record = Record {
            fingerprint,
            caller: who,
            caller_is_new: D::flag(row, 19)?.unwrap_or(false),
            secret: number(int(16)?),
            origin: Origin::new(origin, number(int(18)?)),
            at_most_once: D::flag(row, 6)?.unwrap_or(true),
            takeover: D::flag(row, 7)?.unwrap_or(false),
            // While a record is running, only a renewal changes it.
            lease: running(lease_ends - changed),
            lease_left: running(lease_ends - now),
            lapsed_for: running(now - lease_ends),
            created: SystemTime::UNIX_EPOCH + span(int(8)?),
            settled: (state == State::Settled).then(|| SystemTime::UNIX_EPOCH + span(changed)),
            expires_in: span(expires - now),
            payload: payload.map(Bytes::from),
            note: D::bytes(row, NOTE)?.map_or_else(Bytes::new, Bytes::from),
            binding: binding.map(|purpose| Binding::new(&purpose, principal.as_deref())),
            trace: D::bytes(row, 20)?.and_then(|bytes| bytes.try_into().ok()).map(TraceContext::from_bytes),
            ..Record::new(state, claimant, attempt)
        };
        Ok(Self::Record(Box::new(FetchedRecord { now, lease_ends, expires, record })))
    }
}

impl FetchedRecord {
    /// Returns whether it has not expired.
    pub(in crate::sql) fn is_there(&self) -> bool {
        self.expires > self.now
    }

    pub(in crate::sql) fn as_record(&self) -> &Record {
        &self.record
    }

    pub(in crate::sql) fn into_record(self) -> Record {
        self.record
    }

    /// Returns what decides about a claim, at [`now`](Self::now).
    pub(in crate::sql) fn head(&self) -> RecordHead<'_> {
        RecordHead {
            lease_ends: self.lease_ends.unsigned_abs(),
            expires: self.expires.unsigned_abs(),
            ..RecordHead::from(&self.record)
        }
    }
}

/// Returns the word for a state in the column `state`.
pub(in crate::sql) fn word(state: State) -> &'static str {
    match state {
        State::Issued => "issued",
        State::Running => "running",
        State::Settled => "settled",
        State::Released => "released",
    }
}

/// Returns the state for a word; `None` for a word of a later version.
fn state_of(text: &str) -> Option<State> {
    [State::Issued, State::Running, State::Settled, State::Released].into_iter().find(|&state| word(state) == text)
}

/// Reads scheme and digest.
fn fingerprint_of(bytes: &[u8]) -> Option<Fingerprint> {
    let (&scheme, digest) = bytes.split_first()?;
    Some(Fingerprint::from_parts(scheme, digest.try_into().ok()?))
}

fn number(number: i64) -> SecretNumber {
    SecretNumber::from_u32(u32::try_from(number).unwrap_or(u32::MAX))
}

/// Converts milliseconds; a negative number is zero.
fn span(ms: i64) -> Duration {
    Duration::from_millis(ms.try_into().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_words() {
        for state in [State::Issued, State::Running, State::Settled, State::Released] {
            assert_eq!(state_of(word(state)), Some(state));
        }
        assert_eq!(state_of("paused"), None);
    }

    #[test]
    fn fingerprints_are_read_as_they_were_written() {
        let bytes = [&[3][..], &[7; 32]].concat();
        assert_eq!(fingerprint_of(&bytes), Some(Fingerprint::from_parts(3, [7; 32])));
        assert_eq!((fingerprint_of(&[]), fingerprint_of(&[1; 32])), (None, None));
    }

    #[test]
    fn what_has_passed_is_no_time() {
        assert_eq!((span(-1), span(5)), (Duration::ZERO, Duration::from_millis(5)));
    }
}
