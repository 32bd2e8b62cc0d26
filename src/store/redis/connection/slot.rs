//! The slots of a cluster.
//!
//! A draft has to be in the slot of its record, or no script could rename it. The record's name has braces already, so
//! a tag of two bytes is computed whose checksum is that of the name.

/// Returns two bytes that, in braces, put a name into the same slot of a cluster as another name.
///
/// A cluster derives the slot from the CRC of a name, or of the text in its first braces. A record's name contains
/// braces already, so it cannot itself be put in braces.
pub(in crate::store::redis) fn tag(name: &[u8]) -> [u8; 2] {
    let slot = crc(name) & 0x3fff;
    // The slot is fourteen of the sixteen bits. A closing brace would end the tag early.
    let tags = (0..4).map(|rest| before(slot | rest << 14).to_be_bytes());
    tags.into_iter().find(|tag| !tag.contains(&b'}')).unwrap_or_default()
}

/// Returns the slot of one of this crate's names: of a record, or with a tag.
#[cfg(any(test, feature = "redis-cluster"))]
pub(in crate::store::redis) fn of(name: &[u8]) -> u16 {
    let slot = match name.strip_prefix(b"idem{") {
        Some(&[first, second, b'}', ..]) if first != b'}' => crc(&[first, second]),
        _ => crc(name),
    };
    slot & 0x3fff
}

/// Returns the CRC-16/XMODEM, as in the specification of Redis Cluster.
fn crc(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, &byte| {
        (0..8).fold(crc ^ u16::from(byte) << 8, |crc, _| if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 })
    })
}

/// Returns the two bytes that have this CRC: the same sixteen steps, backwards.
fn before(crc: u16) -> u16 {
    (0..16).fold(crc, |crc, _| if crc & 1 == 0 { crc >> 1 } else { (crc ^ 0x1021) >> 1 | 0x8000 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crc_is_that_of_the_specification() {
        assert_eq!(crc(b"123456789"), 0x31c3);
        assert!((0..=u16::MAX).all(|crc_of| crc(&before(crc_of).to_be_bytes()) == crc_of));
    }

    #[test]
    fn every_slot_has_a_tag() {
        let mut seen = std::collections::HashSet::new();
        for n in 0..200_000_u32 {
            let name = n.to_be_bytes();
            let tag = tag(&name);
            assert_eq!(crc(&tag) & 0x3fff, crc(&name) & 0x3fff);
            assert!(!tag.contains(&b'}'));
            let [record, draft] = [
                [b"idem{}:", &name[..]].concat(),
                [b"idem{", &super::tag(&[b"idem{}:", &name[..]].concat())[..], b"}:draft:"].concat(),
            ];
            assert_eq!(of(&record), of(&draft));
            seen.insert(crc(&tag) & 0x3fff);
        }
        assert_eq!(seen.len(), 16_384);
    }
}
