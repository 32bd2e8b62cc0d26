use sha2::{Digest as _, Sha256};

/// The most bytes that are collected before they are hashed: two blocks.
const COLLECTED: usize = 128;

/// The longest part whose length takes one byte.
const SHORT: usize = 250;
const MARKER: u8 = 251;
const LONG: u8 = 255;

/// SHA-256 over the parts of a request, for fingerprints and callers.
///
/// Each part follows its length, which takes one byte for a part of up to 250 bytes and nine for a longer one. What
/// many requests have in common is a [marker](Self::marker) of two bytes. So no two lists of parts share an
/// input, and a small request fits into one block of the hash, 55 bytes.
#[derive(Clone)]
pub(crate) struct CompactDigest {
    /// Parts are collected first: a call of the hash costs more than a copy.
    collected: [u8; COLLECTED],
    end: usize,
    hash: Option<Sha256>,
}

impl CompactDigest {
    pub(crate) fn new() -> Self {
        Self { collected: [0; COLLECTED], end: 0, hash: None }
    }

    /// Adds a part, preceded by its length.
    pub(crate) fn part(&mut self, bytes: &[u8]) {
        self.length(bytes.len());
        self.add(bytes);
    }

    /// Adds a number: a length, or a count of what follows.
    pub(crate) fn length(&mut self, length: usize) {
        match u8::try_from(length) {
            Ok(short) if length <= SHORT => self.add(&[short]),
            _ => self.add_long(length),
        }
    }

    /// Adds a marker that has a number of its own. It is unlike every part and every length.
    pub(crate) fn marker(&mut self, number: u8) {
        self.add(&[MARKER, number]);
    }

    pub(crate) fn finish(self) -> [u8; 32] {
        let last = &self.collected[..self.end];
        match self.hash {
            None => Sha256::digest(last).into(),
            Some(hash) => hash.chain_update(last).finalize().into(),
        }
    }

    #[cold]
    fn add_long(&mut self, length: usize) {
        self.add(&[LONG]);
        self.add(&(length as u64).to_be_bytes());
    }

    fn add(&mut self, bytes: &[u8]) {
        match self.collected.get_mut(self.end..self.end + bytes.len()) {
            Some(place) => {
                place.copy_from_slice(bytes);
                self.end += bytes.len();
            }
            None => self.flush(bytes),
        }
    }

    #[cold]
    fn flush(&mut self, bytes: &[u8]) {
        let hash = self.hash.get_or_insert_with(Sha256::new);
        hash.update(&self.collected[..self.end]);
        hash.update(bytes);
        self.end = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(parts: &[&[u8]]) -> [u8; 32] {
        let mut digest = CompactDigest::new();
        for part in parts {
            digest.part(part);
        }
        digest.finish()
    }

    /// The input of the hash, by its layout: every later version has to find the records of earlier ones.
    #[test]
    fn the_layout_is_pinned() {
        let long = [7; 300];
        let mut expected = vec![2, b'a', b'b', 0, 255, 0, 0, 0, 0, 0, 0, 1, 44];
        expected.extend(long);
        expected.extend([251, 9, 250]);
        let mut digest = CompactDigest::new();
        digest.part(b"ab");
        digest.part(b"");
        digest.part(&long);
        digest.marker(9);
        digest.length(250);
        assert_eq!(digest.finish(), <[u8; 32]>::from(Sha256::digest(&expected)));
    }

    #[test]
    fn parts_do_not_run_together() {
        assert_ne!(of(&[b"ab", b"c"]), of(&[b"a", b"bc"]));
        assert_ne!(of(&[b"ab"]), of(&[b"ab", b""]));
        for length in [0, 54, 55, 127, 128, 129, 250, 251, 255, 256, 1000] {
            let text = vec![b'x'; length];
            assert_ne!(of(&[&text]), of(&[&text, b""]), "{length}");
            assert_eq!(of(&[&text, &text]), of(&[&text, &text]), "{length}");
        }
    }

    #[test]
    fn a_marker_is_no_part() {
        let mut marker = CompactDigest::new();
        marker.marker(1);
        assert_ne!(marker.finish(), of(&[&[1]]));
        assert_ne!(of(&[&[0; 251]]), of(&[&[0; 250]]));
    }
}
