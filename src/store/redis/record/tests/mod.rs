//! Records of Redis, written and read back, and what strangers may put in their place.

use super::*;
use crate::value::{Claim, Granted, Issue};

const MINUTE: Duration = Duration::from_secs(60);

fn claim() -> Claim {
    Claim {
        fingerprint: Fingerprint::from_parts(3, [0x5a; 32]),
        caller: Caller::from_parts(2, [0xc3; 16]),
        secret: SecretNumber::from_u32(0x005e_c2e7),
        at_most_once: true,
        note: Bytes::from_static(b"a \0 note"),
        ..Claim::new(MINUTE, MINUTE * 10)
    }
}

fn granted(claim: &Claim, attempt: u32) -> Granted {
    let mut granted = Granted::first(claim);
    granted.attempt = attempt;
    granted
}

fn bindings() -> [Option<Binding>; 3] {
    [None, Some(Binding::new("checkout", Some(""))), Some(Binding::new("", None))]
}

#[test]
fn a_claim_is_read_as_it_was_written() {
    let trace = TraceContext::new([1; 16], [2; 8], 1);
    for (n, binding) in (0..).zip(bindings()) {
        for note in [&b""[..], b"n"] {
            let trace = (n > 0).then_some(trace);
            let claim = Claim { note: Bytes::from_static(note), trace, ..claim() };
            let mut granted = granted(&claim, 7 + n);
            granted.takeover = true;
            granted.caller_is_new = n == 1;
            if n == 2 {
                granted.origin = Origin::new(Caller::NONE, SecretNumber::from_u32(9));
            }
            let draft = NewRecord::running(&claim, &granted, binding.as_ref());
            let stored = EncodedRecord::read(draft.encode(), 590_000).unwrap();
            let record = stored.record(1_000_000);
            assert_eq!((record.state, record.claimant, record.attempt), (State::Running, claim.claimant, 7 + n));
            assert_eq!((record.fingerprint, record.caller), (claim.fingerprint, claim.caller));
            assert_eq!((record.secret, record.origin), (claim.secret, granted.origin));
            assert_eq!((record.caller_is_new, record.trace), (n == 1, trace));
            assert_eq!((record.at_most_once, record.takeover), (true, true));
            assert_eq!((record.note, record.binding), (claim.note, binding.clone()));
            assert_eq!((record.payload, record.settled), (None, None));
            assert_eq!((record.lease, record.lease_left), (Duration::from_secs(60), Duration::from_secs(50)));
            assert_eq!((record.lapsed_for, record.expires_in), (Duration::ZERO, Duration::from_secs(590)));
            assert_eq!(record.created, SystemTime::UNIX_EPOCH + Duration::from_secs(400));
            let head = stored.head();
            assert_eq!((stored.age(), head.lease_ends, head.expires), (10_000, 60_000, 600_000));
            assert_eq!((head.origin, head.secret, head.caller_is_new), (granted.origin, claim.secret, n == 1));
        }
    }
}

/// Without a token, a note and a trace, and with the caller that began it, a record is its head.
#[test]
fn the_first_claim_of_a_key_takes_the_head_alone() {
    let claim = Claim { note: Bytes::new(), ..claim() };
    assert_eq!(NewRecord::running(&claim, &granted(&claim, 1), None).encode().len(), HEAD);
    let mut next = granted(&claim, 2);
    next.origin = Origin::NONE;
    assert_eq!(NewRecord::running(&claim, &next, None).encode().len(), HEAD + 21);
}

/// The process that settles by what the claim wrote does not know the server's clock, and sends how long the run took
/// instead.
#[test]
fn a_creation_counts_from_the_last_change_if_it_is_small() {
    let mut settled = NewRecord::running(&claim(), &granted(&claim(), 1), None).encode();
    settled[1] = 2;
    settled[CREATED..CREATED + 8].copy_from_slice(&1_500_u64.to_be_bytes());
    let record = EncodedRecord::read(settled, 590_000).unwrap().record(1_700_000_600_000);
    let time = |ms| SystemTime::UNIX_EPOCH + Duration::from_millis(ms);
    assert_eq!((record.settled, record.created), (Some(time(1_700_000_000_000)), time(1_699_999_998_500)));
}

#[test]
fn an_issued_token_is_read_as_it_was_written() {
    for binding in bindings().into_iter().flatten() {
        let draft = NewRecord::issued(&Issue::new(binding.clone(), MINUTE));
        let record = EncodedRecord::read(draft.encode(), 60_000).unwrap().record(100_000);
        assert_eq!((record.state, record.attempt, record.binding), (State::Issued, 0, Some(binding)));
    }
}

#[test]
fn a_payload_shares_the_memory_of_what_was_read() {
    let mut bytes = NewRecord::running(&claim(), &granted(&claim(), 1), None).encode();
    (bytes[1], bytes[FLAGS], bytes[HEAD - 1]) = (2, PAYLOAD, 3);
    bytes.splice(HEAD..HEAD, *b"yes");
    let at = bytes[HEAD..].as_ptr();
    let stored = EncodedRecord::read(bytes, 1).unwrap();
    let payload = stored.payload().unwrap();
    assert_eq!((payload.as_ptr(), &*payload), (at, &b"yes"[..]));
    assert_eq!(stored.record(0).note, &b"a \0 note"[..]);
}

fn token() -> NewRecord {
    let binding = Binding::new("checkout", Some("ann"));
    let mut granted = granted(&claim(), 2);
    granted.origin = Origin::NONE;
    NewRecord::running(&Claim { trace: Some(TraceContext::from_bytes([7; 25])), ..claim() }, &granted, Some(&binding))
}

#[test]
fn later_versions_and_torn_records_are_told() {
    let whole = token().encode();
    let newer = [&[VERSION + 1], &whole[1..]].concat();
    assert_eq!(EncodedRecord::read(newer, 1).err(), Some(DecodeError::Newer));
    assert_eq!(EncodedRecord::read(vec![9], 1).err(), Some(DecodeError::Newer));
    assert_eq!(EncodedRecord::read(b"\0".to_vec(), 1).err(), Some(DecodeError::Corrupt));
    for end in 0..HEAD + 8 + 4 + 8 + 4 + 3 + 21 + 25 {
        assert_eq!(EncodedRecord::read(whole[..end].to_vec(), 1).err(), Some(DecodeError::Corrupt), "{end} bytes");
    }
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut corrupt = whole.clone();
            corrupt[at] ^= 1 << bit;
            // Whatever it is taken for, it is read without a panic.
            if let Ok(stored) = EncodedRecord::read(corrupt, i64::MAX) {
                let _ = (stored.record(i64::MIN), stored.head().expires, stored.version_token());
            }
        }
    }
}

#[test]
fn a_glance_needs_the_head_alone() {
    let running = NewRecord::running(&claim(), &granted(&claim(), 1), None).encode();
    assert_eq!(decode_summary(&running[..HEAD], 600_000), Some((State::Running, false)));
    assert_eq!(decode_summary(&running[..HEAD], 540_000), Some((State::Running, true)));
    assert_eq!(decode_summary(&running[..HEAD], -2), None);
    assert_eq!(decode_summary(&running[..HEAD - 1], 1), None);
}
