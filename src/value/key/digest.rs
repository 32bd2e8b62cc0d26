use sha2::{Digest as _, Sha256};

/// SHA-256 over parts, each preceded by its length, so that no two lists of parts share an input.
#[derive(Clone)]
pub(crate) struct Digest(Sha256);

impl Digest {
    pub(crate) fn new() -> Self {
        Self(Sha256::new())
    }

    pub(crate) fn part(&mut self, bytes: &[u8]) {
        self.length(bytes.len());
        self.0.update(bytes);
    }

    pub(crate) fn length(&mut self, length: usize) {
        self.0.update((length as u64).to_be_bytes());
    }

    pub(crate) fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}

/// Returns what is kept of a credential that names something in a store. Nobody who reads the store can use it.
///
/// It is the plain digest, which an operator can compute in a shell. A name that depends on a secret would change when
/// the secret is replaced, and the operation would run again.
pub(crate) fn labelled_digest(credential: &[u8]) -> String {
    format!("sha256:{}", hex(&Sha256::digest(credential)))
}

/// Returns the lower-case hexadecimal digits of `bytes`.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(parts: &[&[u8]]) -> [u8; 32] {
        let mut digest = Digest::new();
        for part in parts {
            digest.part(part);
        }
        digest.finish()
    }

    #[test]
    fn parts_do_not_run_together() {
        assert_ne!(of(&[b"ab", b"c"]), of(&[b"a", b"bc"]));
        assert_ne!(of(&[b"ab"]), of(&[b"ab", b""]));
        assert_eq!(of(&[b"ab", b"c"]), of(&[b"ab", b"c"]));
    }

    #[test]
    fn hexadecimal() {
        assert_eq!(hex(&[0x00, 0x7f, 0xff]), "007fff");
    }
}
