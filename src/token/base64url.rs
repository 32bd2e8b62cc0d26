//! RFC 4648, section 5, without padding.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0_u32, |word, &byte| (word << 8) | u32::from(byte)) << (8 * (3 - chunk.len()));
        for place in 0..=chunk.len() {
            text.push(char::from(ALPHABET[(word >> (18 - 6 * place)) as usize & 63]));
        }
    }
    text
}

/// Decodes exactly `N` bytes, a multiple of three, so that each value has only one text.
#[cfg(feature = "signed-tokens")]
pub(crate) fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    const { assert!(N.is_multiple_of(3)) };
    let mut bytes = [0; N];
    if text.len() != N / 3 * 4 {
        return None;
    }
    for (four, three) in text.as_bytes().chunks(4).zip(bytes.chunks_mut(3)) {
        let mut word = 0;
        for &letter in four {
            word = (word << 6) | digit(letter)?;
        }
        three.copy_from_slice(&word.to_be_bytes()[1..]);
    }
    Some(bytes)
}

#[cfg(feature = "signed-tokens")]
fn digit(letter: u8) -> Option<u32> {
    Some(u32::from(match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'-' => 62,
        b'_' => 63,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4648, section 10, in the other alphabet and without padding.
    #[test]
    fn text() {
        for (bytes, text) in
            [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg"), ("fooba", "Zm9vYmE")]
        {
            assert_eq!(encode(bytes.as_bytes()), text);
        }
        assert_eq!(encode(&[0xfb, 0xff]), "-_8");
    }

    #[cfg(feature = "signed-tokens")]
    #[test]
    fn and_back() {
        assert_eq!(decode(""), Some([]));
        assert_eq!(decode("Zm9v"), Some(*b"foo"));
        assert_eq!(decode("-__-"), Some([0xfb, 0xff, 0xfe]));
        for byte in 0..=255_u8 {
            let bytes = [byte, !byte, byte.rotate_left(3), 0, byte, 255];
            assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }
        for odd in ["Zm9", "Zm9vZ", "Zm9v ", "Zm9+", "Zm9/", "Zm9=", "Zm9v\n", "Zmé", "Zm9vZm9v"] {
            assert_eq!(decode::<3>(odd), None, "{odd}");
        }
    }
}
