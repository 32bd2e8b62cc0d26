//! The size of an entry, and what it keeps.

use super::*;
use crate::value::Caller;

#[test]
fn an_entry_is_small() {
    assert_eq!(size_of::<MemoryRecord>(), 112);
    assert_eq!(size_of::<Option<MemoryRecord>>(), 112);
}

#[test]
fn payloads_short_and_long_with_and_without_a_caller() {
    let key = RecordKey::new("/", None, "k").unwrap();
    for caller in [Caller::NONE, Caller::from_parts(1, [7; 16])] {
        for length in [None, Some(0), Some(1), Some(JOINED_BYTES), Some(JOINED_BYTES + 1)] {
            let payload = length.map(|length| Bytes::from(vec![b'x'; length]));
            let mut entry = MemoryRecord::new(0, &key, 1);
            let claim = Claim { caller, ..Claim::new(Duration::MAX, Duration::ZERO) };
            entry.grant(&claim, &Granted::first(&claim), 2);
            entry.settle(claim.claimant, payload.as_ref(), Duration::from_millis(7), 3);
            assert_eq!(entry.payload(), payload);
            let record = entry.record(4);
            assert_eq!((record.caller, record.payload), (caller, payload));
            assert_eq!(entry.key(), key.as_bytes());
            assert_eq!(record.expires_in, Duration::from_millis(6));
        }
    }
}
