use crate::value::{Digest, RecordKey};

/// Stands in front of the digest of a namespace. The first byte of a record key is less than 16.
const MARK: u8 = 0xff;
const RECORDS_END: u8 = 16;

/// As much as the column takes.
const READABLE_BYTES: usize = 255;

/// A namespace: what the ids of its records begin with, and its name for those who look.
///
/// An id is that beginning and the record key. The beginning is nothing, or a mark and the digest of the names that led
/// here, so that ids are bounded and no choice of names makes two namespaces meet.
#[derive(Clone, Default)]
pub(super) struct Space {
    prefix: Box<[u8]>,
    text: Box<str>,
}

impl Space {
    pub(super) fn within(&self, name: &str) -> Self {
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

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The id of a record.
    pub(super) fn id(&self, key: &RecordKey) -> Vec<u8> {
        [&self.prefix, key.as_bytes()].concat()
    }

    /// The key of a record of this namespace.
    pub(super) fn key(&self, id: &[u8]) -> Option<RecordKey> {
        RecordKey::from_bytes(id.strip_prefix(&*self.prefix)?)
    }

    /// What lies before and behind all ids of this namespace, and no other's.
    pub(super) fn bounds(&self) -> [Vec<u8>; 2] {
        [self.prefix.to_vec(), [&self.prefix, &[RECORDS_END][..]].concat()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_do_not_meet() {
        let root = Space::default();
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
        assert_eq!(Space::default().within("shop").within("a\0b").text(), "shop/ab");
        assert_eq!(Space::default().within(&"ä".repeat(200)).text().len(), 254);
    }
}
