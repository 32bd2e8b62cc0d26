//! Slots of records, and the bytes that they are written as.

use std::time::Duration;

use ::bytes::Bytes;

use super::*;
use crate::value::{Binding, Caller, Fingerprint, Origin, SecretNumber, State, TraceContext};

const NOW: u64 = 1_795_960_123_457;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn claim() -> Claim {
    Claim::new(ms(30), ms(500))
}

fn full() -> StoredRecord {
    StoredRecord {
        fingerprint: Fingerprint::from_parts(8, [3; 32]),
        caller: Caller::from_parts(1, [4; 16]),
        caller_is_new: true,
        secret: SecretNumber::from_u32(5),
        origin: Origin::new(Caller::from_parts(1, [6; 16]), SecretNumber::from_u32(7)),
        at_most_once: true,
        takeover: true,
        lease: 30_000,
        lease_ends: NOW + 1,
        expires: NOW + 2,
        created: NOW - 1,
        settled: Some(NOW),
        payload: Some(Bytes::from_static(b"answer")),
        note: Bytes::from_static(b"note"),
        binding: Some(Binding::new("order", Some("ann"))),
        token_expires: NOW + 3,
        trace: Some(TraceContext::new([1; 16], [2; 8], 1)),
        ..StoredRecord::new(State::Settled, Claimant::from_bytes([9; 16]), 4)
    }
}

#[test]
fn a_record_is_read_as_it_was_written() {
    let plain = StoredRecord::new(State::Released, Claimant::NONE, 0);
    let records = [
        StoredRecord { payload: None, ..full() },
        StoredRecord { payload: Some(Bytes::new()), settled: None, ..full() },
        StoredRecord { binding: Some(Binding::new("", None)), trace: None, ..full() },
        StoredRecord { binding: None, at_most_once: false, ..full() },
        StoredRecord { takeover: false, caller_is_new: false, state: State::Running, ..full() },
        plain,
        full(),
    ];
    for record in records {
        assert_eq!(bytes::read(&bytes::write(&record)), Ok(record));
    }
}

/// Records that are stored somewhere have this layout: a change of it needs another version.
#[test]
fn the_layout_stays_as_it_is() {
    let expected = [
        &[1, 2, 0xff][..],
        &[9; 16],
        &[0, 0, 0, 4, 8],
        &[3; 32],
        &[1],
        &[4; 16],
        &[0, 0, 0, 5, 1],
        &[6; 16],
        &[0, 0, 0, 7],
        &30_000_u64.to_be_bytes(),
        &(NOW + 1).to_be_bytes(),
        &(NOW + 2).to_be_bytes(),
        &(NOW - 1).to_be_bytes(),
        &(NOW + 3).to_be_bytes(),
        b"\0\0\0\x05order\0\0\0\x03ann",
        &[1; 16],
        &[2; 8],
        &[1],
        &NOW.to_be_bytes(),
        b"\0\0\0\x04noteanswer",
    ];
    assert_eq!(bytes::write(&full()), expected.concat());
}

#[test]
fn what_is_no_record_is_an_error() {
    let whole = bytes::write(&StoredRecord { payload: None, ..full() });
    for length in 0..whole.len() {
        assert_eq!(bytes::read(&whole[..length]), Err(DecodeError::Corrupt), "the first {length} bytes");
    }
    assert_eq!(bytes::read(&[&whole[..], b"x"].concat()), Err(DecodeError::Corrupt));
    let error = RecordSlot::from_bytes(Some(b"\0text"), NOW).map(drop).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Corrupt);
}

/// A store may return anything.
#[test]
fn bytes_that_were_changed_are_read_without_a_panic() {
    let whole = bytes::write(&full());
    for at in 0..whole.len() {
        for value in 0..=u8::MAX {
            let mut changed = whole.clone();
            changed[at] = value;
            if let Ok(record) = bytes::read(&changed) {
                assert_eq!(bytes::read(&bytes::write(&record)), Ok(record), "byte {at} is {value}");
            }
        }
    }
}

#[test]
fn a_record_of_a_later_version_is_neither_matched_nor_changed() {
    let later = [u8::MAX, 1, 2, 3];
    let mut slot = RecordSlot::from_bytes(Some(&later), NOW).unwrap();
    let own = claim();
    assert_eq!(slot.claim(&own), Claimed::Incompatible);
    assert_eq!(slot.issue(&Issue::new(Binding::new("x", None), ms(9))), Issued::Exists);
    assert_eq!(slot.renew(&own), Renewed::Lost);
    assert!(matches!(slot.settle(&Settlement::new(own.claimant, None, ms(9))), Finished::Refused(None)));
    assert!(matches!(slot.release(&Release::new(own.claimant, ms(9))), Finished::Refused(None)));
    assert_eq!(slot.inspect().unwrap_err().kind(), StoreErrorKind::Corrupt);
    assert!(!slot.is_running_under(own.claimant) && !slot.is_empty() && !slot.is_changed());
    assert_eq!(slot.to_bytes().as_deref(), Some(&later[..]));
    assert!(slot.forget() && slot.is_changed() && slot.to_bytes().is_none());
}

#[test]
fn only_a_change_has_to_be_written() {
    let (mut slot, own) = (RecordSlot::new(None, NOW), claim());
    assert!(!slot.forget() && !slot.is_changed());
    assert!(matches!(slot.claim(&own), Claimed::Granted(_)));
    assert!(slot.is_changed());

    let mut slot = RecordSlot::new(slot.into_record(), NOW + 10);
    assert!(matches!(slot.claim(&own), Claimed::Granted(_)), "a repetition");
    assert!(matches!(slot.claim(&claim()), Claimed::Running { .. }));
    assert!(matches!(slot.settle(&Settlement::new(claim().claimant, None, ms(9))), Finished::Refused(Some(_))));
    assert!(!slot.is_changed());
    assert_eq!(slot.renew(&own), Renewed::Done);
    assert!(slot.is_changed());
}

#[test]
fn what_expires_at_once_leaves_an_empty_slot() {
    let mut slot = RecordSlot::new(None, NOW);
    assert!(matches!(slot.claim(&Claim::new(Duration::ZERO, Duration::ZERO)), Claimed::Granted(_)));
    assert!(slot.is_changed() && slot.is_empty());

    let (mut slot, own) = (RecordSlot::new(None, NOW), claim());
    slot.claim(&own);
    assert!(matches!(slot.settle(&Settlement::new(own.claimant, None, Duration::ZERO)), Finished::Done));
    assert!(slot.is_changed() && slot.is_empty() && slot.to_bytes().is_none());
}

#[test]
fn what_has_expired_is_absent() {
    let (mut slot, own) = (RecordSlot::new(None, NOW), claim());
    slot.claim(&own);
    let record = slot.into_record();
    assert!(RecordSlot::new(record.clone(), NOW + 499).record().is_some());
    let mut slot = RecordSlot::new(record, NOW + 500);
    assert!(slot.is_empty() && !slot.is_changed());
    assert!(matches!(slot.settle(&Settlement::new(own.claimant, None, ms(9))), Finished::Refused(None)));
}
