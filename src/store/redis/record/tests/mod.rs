use super::*;

const MINUTE: Duration = Duration::from_secs(60);

fn claim() -> Claim {
    Claim {
        fingerprint: Fingerprint::from_parts(3, [0x5a; 32]),
        caller: Caller::from_bytes([0xc3; 16]),
        at_most_once: true,
        note: Bytes::from_static(b"a \0 note"),
        ..Claim::new(MINUTE, MINUTE * 10)
    }
}

fn bindings() -> [Option<Binding>; 3] {
    [None, Some(Binding::new("checkout", Some(""))), Some(Binding::new("", None))]
}

#[test]
fn a_claim_is_read_as_it_was_written() {
    for binding in bindings() {
        for note in [&b""[..], b"n"] {
            let claim = Claim { note: Bytes::from_static(note), ..claim() };
            let stored = Stored::read(Draft::running(&claim, 7, true, binding.as_ref()).whole(), 590_000).unwrap();
            let record = stored.record(1_000_000);
            assert_eq!((record.state, record.claimant, record.attempt), (State::Running, claim.claimant, 7));
            assert_eq!((record.fingerprint, record.caller), (claim.fingerprint, claim.caller));
            assert_eq!((record.at_most_once, record.takeover), (true, true));
            assert_eq!((record.note, record.binding), (claim.note, binding.clone()));
            assert_eq!((record.payload, record.settled), (None, None));
            assert_eq!((record.lease_left, record.expires_in), (Duration::from_secs(50), Duration::from_secs(590)));
            assert_eq!(record.created, SystemTime::UNIX_EPOCH + Duration::from_secs(400));
            let head = stored.head();
            assert_eq!((stored.age(), head.lease_ends, head.expires), (10_000, 60_000, 600_000));
        }
    }
}

#[test]
fn an_issued_token_is_read_as_it_was_written() {
    for binding in bindings().into_iter().flatten() {
        let draft = Draft::issued(&Issue::new(binding.clone(), MINUTE));
        let record = Stored::read(draft.whole(), 60_000).unwrap().record(100_000);
        assert_eq!((record.state, record.attempt, record.binding), (State::Issued, 0, Some(binding)));
    }
}

#[test]
fn a_payload_shares_the_memory_of_what_was_read() {
    let mut bytes = Draft::running(&claim(), 1, false, None).whole();
    (bytes[1], bytes[2], bytes[99]) = (2, PAYLOAD | NOTE, 3);
    bytes.splice(HEAD..HEAD, *b"yes");
    let at = bytes[HEAD..].as_ptr();
    let stored = Stored::read(bytes, 1).unwrap();
    let payload = stored.payload().unwrap();
    assert_eq!((payload.as_ptr(), &*payload), (at, &b"yes"[..]));
    assert_eq!(stored.record(0).note, &b"a \0 note"[..]);
}

#[test]
fn later_versions_and_torn_records_are_told() {
    let whole = Draft::running(&claim(), 1, false, Some(&Binding::new("checkout", Some("ann")))).whole();
    let newer = [&[VERSION + 1], &whole[1..]].concat();
    assert_eq!(Stored::read(newer, 1).err(), Some(Unreadable::Newer));
    assert_eq!(Stored::read(vec![9], 1).err(), Some(Unreadable::Newer));
    assert_eq!(Stored::read(b"\0".to_vec(), 1).err(), Some(Unreadable::Torn));
    for end in 0..HEAD + 8 + 4 + 8 + 4 + 3 {
        assert_eq!(Stored::read(whole[..end].to_vec(), 1).err(), Some(Unreadable::Torn), "{end} bytes");
    }
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut torn = whole.clone();
            torn[at] ^= 1 << bit;
            // Whatever it is taken for, it is read without a panic.
            if let Ok(stored) = Stored::read(torn, i64::MAX) {
                let _ = (stored.record(i64::MIN), stored.head().expires, stored.seen());
            }
        }
    }
}

#[test]
fn a_glance_needs_the_head_alone() {
    let running = Draft::running(&claim(), 1, false, None).whole();
    assert_eq!(glance(&running[..HEAD], 600_000), Some((State::Running, false)));
    assert_eq!(glance(&running[..HEAD], 540_000), Some((State::Running, true)));
    assert_eq!(glance(&running[..HEAD], -2), None);
    assert_eq!(glance(&running[..HEAD - 1], 1), None);
}
