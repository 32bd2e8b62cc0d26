//! The layout of what is sealed, and what it is bound to.

use super::keys::{OVERHEAD, SealingKeys, Unopened};
use crate::value::{SealingKeyId, sealed_with};

fn keys(byte: u8) -> SealingKeys {
    SealingKeys::new([byte; 32]).unwrap()
}

#[test]
fn what_is_sealed_is_opened_with_the_same_key_and_context() {
    for text in [&b""[..], b"paid", &vec![0x5a; 70_000]] {
        let sealed = keys(1).seal(b"context", text).unwrap();
        assert_eq!(sealed.len(), text.len() + OVERHEAD);
        assert_eq!(sealed_with(&sealed), Some(keys(1).id()));
        let (opened, id) = keys(1).open(b"context", &sealed).unwrap();
        assert_eq!((&*opened, id), (text, keys(1).id()));
        assert_eq!(keys(1).open(b"other", &sealed), Err(Unopened::Altered(id)));
        assert_eq!(keys(2).open(b"context", &sealed), Err(Unopened::NoKey(id)));
    }
}

#[test]
fn nothing_of_the_text_is_seen_and_no_two_are_alike() {
    let (one, other) = (keys(1).seal(b"", &[7; 64]).unwrap(), keys(1).seal(b"", &[7; 64]).unwrap());
    assert_ne!(one, other);
    assert!(!one.windows(8).any(|bytes| bytes == [7; 8]));
}

#[test]
fn a_bit_that_was_changed_anywhere_is_found() {
    let sealed = keys(1).seal(b"context", b"paid").unwrap();
    for at in 0..sealed.len() * 8 {
        let mut altered = sealed.to_vec();
        altered[at / 8] ^= 1 << (at % 8);
        assert!(keys(1).open(b"context", &altered).is_err(), "bit {at}");
    }
    for end in 0..sealed.len() {
        assert!(keys(1).open(b"context", &sealed[..end]).is_err(), "{end} bytes");
    }
}

#[test]
fn what_is_not_sealed_and_what_is_newer_are_told_apart() {
    assert_eq!(keys(1).open(b"", b"paid"), Err(Unopened::Unsealed));
    let mut newer = keys(1).seal(b"", b"paid").unwrap().to_vec();
    newer[4] = 2;
    assert_eq!(keys(1).open(b"", &newer), Err(Unopened::Newer(keys(1).id())));
}

#[test]
fn a_former_key_opens_and_no_longer_seals() {
    let (old, new) = (keys(1), keys(2));
    let both = keys(2).accept([1; 32]).unwrap();
    assert_eq!(both.id(), new.id());
    assert!(both.open(b"", &old.seal(b"", b"a").unwrap()).is_ok());
    assert!(old.open(b"", &both.seal(b"", b"a").unwrap()).is_err());
    assert!(new.open(b"", &both.seal(b"", b"a").unwrap()).is_ok());
}

#[test]
fn a_short_key_is_refused_and_debug_shows_numbers_only() {
    assert_eq!(SealingKeys::new([1; 31]).unwrap_err().length, 31);
    assert!(keys(1).accept("").is_err());
    let shown = format!("{:?}", SealingKeys::new("correct horse battery staple, four times over").unwrap());
    assert!(!shown.contains("horse") && shown.starts_with("[SealingKeyId("), "{shown}");
    assert_ne!(keys(1).id(), SealingKeyId::NONE);
}
