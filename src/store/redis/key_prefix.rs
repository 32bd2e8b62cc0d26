//! Names in Redis.
//!
//! ```text
//! idem{}:            the root 4:shop:          a namespace: its length, its name
//!     <record key>   a record; the first byte of a key is less than 16, a digit is not
//!     wake           the channel of a namespace
//! idem{xx}:draft:    a draft, in the slot of its record
//! ```
//!
//! The braces are empty, so that a cluster derives the slot from the whole name and not from the braces of a route such
//! as `/orders/{id}`. No name belongs to two namespaces, since a length precedes each name and a record key begins with
//! a byte that is not a digit.

use crate::value::RecordKey;

use super::connection::slot;

/// The prefix of every name in Redis. Because of the empty braces, a cluster does not take the braces of a route, such
/// as `/orders/{id}`, for a hash tag, which would put all records of the route into one slot.
const ROOT: &[u8] = b"idem{}:";

/// A namespace: the prefix of the names of its records.
///
/// The prefix is followed either by a record key, whose first byte is less than 16, or by the length of a further
/// namespace in digits. So no name belongs to two namespaces.
#[derive(Clone)]
pub(super) struct KeyPrefix {
    prefix: Box<[u8]>,
    /// The channel on which the ends of claims of this namespace are published, if there are waiters.
    channel: Box<[u8]>,
}

impl KeyPrefix {
    /// Returns the outermost namespace.
    pub(super) fn root() -> Self {
        Self::new(ROOT.into())
    }

    /// Returns a namespace inside this one.
    pub(super) fn within(&self, name: &str) -> Self {
        Self::new([&self.prefix, format!("{}:{name}:", name.len()).as_bytes()].concat())
    }

    fn new(prefix: Vec<u8>) -> Self {
        Self { channel: [&prefix[..], b"wake"].concat().into(), prefix: prefix.into() }
    }

    /// Returns the two parts of the name of a record.
    pub(super) fn parts<'a>(&'a self, key: &'a RecordKey) -> [&'a [u8]; 2] {
        [&self.prefix, key.as_bytes()]
    }

    /// Returns the name of a record.
    pub(super) fn name(&self, key: &RecordKey) -> Vec<u8> {
        self.parts(key).concat()
    }

    /// Returns the key of a record of this namespace.
    pub(super) fn key(&self, name: &[u8]) -> Option<RecordKey> {
        RecordKey::from_bytes(name.strip_prefix(&*self.prefix)?)
    }

    /// Returns the glob that matches the names of this namespace, and of those within it.
    pub(super) fn pattern(&self) -> Vec<u8> {
        let mut pattern = Vec::with_capacity(self.prefix.len() + 1);
        for &byte in &self.prefix {
            if matches!(byte, b'*' | b'?' | b'[' | b']' | b'^' | b'\\') {
                pattern.push(b'\\');
            }
            pattern.push(byte);
        }
        pattern.push(b'*');
        pattern
    }

    /// Returns the channel on which the ends of claims of this namespace are published, if there are waiters.
    pub(super) fn channel(&self) -> &[u8] {
        &self.channel
    }

    /// Returns the channel in the slot of a record. The scripts distinguish the two by what is in the braces.
    pub(super) fn channel_beside(&self, name: &[u8]) -> Vec<u8> {
        [b"idem{", &slot::tag(name)[..], &self.prefix[ROOT.len() - 2..], b"wake"].concat()
    }

    /// Returns the prefix for logs.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.prefix).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_do_not_run_together() {
        let root = KeyPrefix::root();
        let key = RecordKey::new("/orders/{id}", None, "k").unwrap();
        let spaces =
            [root.clone(), root.within("a"), root.within("a").within("b"), root.within("a:1:b"), root.within("")];
        for (n, one) in spaces.iter().enumerate() {
            let name = one.name(&key);
            for (m, other) in spaces.iter().enumerate() {
                assert_eq!(other.key(&name).is_some(), n == m, "{} in {}", one.text(), other.text());
            }
        }
    }

    #[test]
    fn a_pattern_takes_names_literally() {
        assert_eq!(KeyPrefix::root().within("a*[b]").pattern(), b"idem{}:5:a\\*\\[b\\]:*");
    }
}
