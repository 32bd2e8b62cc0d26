//! Namespaces: a prefix of the ids, and a name for people.
//!
//! The ids of a namespace are one range of the primary key, so listing and counting read no other rows.

use crate::value::{Digest, RecordKey};

/// The byte before the digest of a namespace. The first byte of a record key is less than 16.
const MARK: u8 = 0xff;
const RECORDS_END: u8 = 16;

/// The length of the column.
const READABLE_BYTES: usize = 255;

/// A namespace: the prefix of its records' ids, and its readable name.
///
/// An id is the prefix and the record key. The prefix is empty, or a mark and the digest of the path of names, so that
/// ids are bounded and no choice of names makes two namespaces collide.
#[derive(Clone, Default)]
pub(in crate::sql) struct Namespace {
    /// The first bytes of its ids; empty for the outermost namespace.
    prefix: Box<[u8]>,
    /// The names, with slashes between them, cut to the column.
    text: Box<str>,
}

impl Namespace {
    /// Returns a namespace inside this one.
    pub(in crate::sql) fn within(&self, name: &str) -> Self {
        let mut digest = Digest::new();
        digest.part(&self.prefix);
        digest.part(name.as_bytes());
        let shown = name.chars().filter(|character| !character.is_control());
        let slash = (!self.text.is_empty()).then_some('/');
        let mut text = String::new();
        for character in self.text.chars().chain(slash).chain(shown) {
            if text.len() + character.len_utf8() <= READABLE_BYTES {
                text.push(character);
            }
        }
        Self { prefix: [&[MARK][..], &digest.finish()].concat().into(), text: text.into() }
    }

    /// Returns the readable name, for the column `namespace`.
    pub(in crate::sql) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the id of a record.
    pub(in crate::sql) fn id(&self, key: &RecordKey) -> Vec<u8> {
        [&self.prefix, key.as_bytes()].concat()
    }

    /// Returns the key of a record of this namespace.
    pub(in crate::sql) fn key(&self, id: &[u8]) -> Option<RecordKey> {
        RecordKey::from_bytes(id.strip_prefix(&*self.prefix)?)
    }

    /// Returns bounds between which all ids of this namespace lie, and no others.
    pub(in crate::sql) fn bounds(&self) -> [Vec<u8>; 2] {
        [self.prefix.to_vec(), [&self.prefix, &[RECORDS_END][..]].concat()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_do_not_meet() {
        let root = Namespace::default();
        let spaces = [
            root.clone(),
            root.within(""),
            root.within("a"),
            root.within("a/b"),
            root.within("a").within("b"),
            root.within(&"x".repeat(300)),
            root.within(&"x".repeat(301)),
        ];
        let key = RecordKey::new("/orders", Some("ann"), "7f0c").unwrap();
        for (n, one) in spaces.iter().enumerate() {
            let id = one.id(&key);
            assert_eq!(one.key(&id).as_ref(), Some(&key));
            assert!(id.len() <= 1024 && one.text().len() <= READABLE_BYTES);
            for (m, other) in spaces.iter().enumerate() {
                let [before, behind] = other.bounds();
                assert_eq!(before < id && id < behind, n == m, "{n} {m}");
                assert_eq!(other.key(&id).is_some(), n == m, "{n} {m}");
            }
        }
    }

    #[test]
    fn the_name_stays_readable() {
        assert_eq!(Namespace::default().within("shop").within("a\0b").text(), "shop/ab");
        assert_eq!(Namespace::default().within(&"ä".repeat(200)).text().len(), 254);
    }
}
