//! What a record keeps, in a block of its own.

use std::time::Duration;

use bytes::Bytes;

use super::{head::Head, records::COPIED_BYTES, *};
use crate::{
    store::memory::storage::LARGEST,
    value::{Caller, Claim, Granted, RecordKey, Settlement, TraceContext},
};

fn records(key: &RecordKey, claim: &Claim) -> (Records, u32) {
    let mut records = Records::default();
    let slot = records.insert(&mut RecordDraft::granted(0, key, None, claim, &Granted::first(claim), 2));
    (records, slot)
}

#[test]
fn every_record_fits_into_a_block() {
    const { assert!(Head::LENGTH + 769 + text::LONGEST <= LARGEST) }
}

#[test]
fn payloads_short_and_long_with_and_without_a_caller() {
    let key = RecordKey::new("/", None, "k").unwrap();
    let lengths = [0, 1, 900, LARGEST, COPIED_BYTES, COPIED_BYTES + 1].map(Some).into_iter().chain([None]);
    for length in lengths {
        for caller in [Caller::NONE, Caller::from_parts(1, [7; 16])] {
            for note in ["", "note"] {
                let payload = length.map(|length| Bytes::from(vec![b'x'; length]));
                let claim = Claim { caller, note: note.into(), ..Claim::new(Duration::MAX, Duration::ZERO) };
                let (mut records, slot) = records(&key, &claim);
                let before = records.get(slot).unwrap().weight().bytes;
                records
                    .settle(slot, &Settlement::new(claim.claimant, payload.clone(), Duration::from_millis(7)), 3)
                    .unwrap();
                let view = records.get(slot).unwrap();
                assert_eq!(view.payload(), payload);
                let record = view.record(4);
                assert_eq!((record.caller, record.payload, &*record.note), (caller, payload, note.as_bytes()));
                assert_eq!(view.key(), key.as_bytes());
                assert_eq!(record.expires_in, Duration::from_millis(6));
                assert_eq!(view.weight().bytes, before + length.unwrap_or(0));
            }
        }
    }
}

#[test]
fn a_long_payload_is_shared_and_a_short_one_keeps_no_buffer() {
    let key = RecordKey::new("/", None, "k").unwrap();
    for (length, shared) in [(COPIED_BYTES, false), (COPIED_BYTES + 1, true)] {
        let claim = Claim::new(Duration::MAX, Duration::MAX);
        let (mut records, slot) = records(&key, &claim);
        let payload = Bytes::from(vec![b'x'; length]);
        records.settle(slot, &Settlement::new(claim.claimant, Some(payload.clone()), Duration::MAX), 3).unwrap();
        assert_eq!(records.get(slot).unwrap().payload().unwrap().as_ptr() == payload.as_ptr(), shared);
    }
}

#[test]
fn a_replaced_record_keeps_its_slot_and_its_first_moment() {
    let key = RecordKey::new("/", None, &"k".repeat(200)).unwrap();
    let claim = Claim { note: "first".into(), ..Claim::new(Duration::ZERO, Duration::MAX) };
    let (mut records, slot) = records(&key, &claim);
    let trace = Some(TraceContext::new([1; 16], [2; 8], 1));
    let again = Claim { trace, caller: Caller::from_parts(1, [7; 16]), ..Claim::new(Duration::ZERO, Duration::MAX) };
    let granted = Granted { attempt: 2, ..Granted::first(&again) };
    let mut record = RecordDraft::granted(0, &key, records.get(slot).as_ref(), &again, &granted, 900);
    let weight = record.weight().bytes;
    let replaced = records.replace(slot, &mut record).unwrap().left.unwrap();
    assert_eq!(replaced.bytes(), "first".len());
    let view = records.get(slot).unwrap();
    let record = view.record(900);
    assert_eq!((record.attempt, record.trace, record.caller), (2, trace, again.caller));
    assert_eq!(record.created, std::time::SystemTime::UNIX_EPOCH + Duration::from_millis(2));
    assert_eq!((view.key(), view.weight().bytes), (key.as_bytes(), weight));
}
