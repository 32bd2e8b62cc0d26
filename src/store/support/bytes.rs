//! Reading and writing the parts of a record as bytes.

/// The reason why bytes cannot be read as a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum DecodeError {
    /// They are a record of a later version of this crate.
    Newer,
    /// They are not a record.
    Corrupt,
}

/// Takes the first `N` bytes off.
pub(in crate::store) fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(*taken)
}

/// Takes a text off that is preceded by its length.
pub(in crate::store) fn take_text<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = u32::from_be_bytes(take(rest)?);
    let (text, behind) = rest.split_at_checked(length as usize)?;
    *rest = behind;
    Some(text)
}

/// Writes a text behind its length.
pub(in crate::store) fn put_text(bytes: &mut Vec<u8>, text: &[u8]) {
    bytes.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes());
    bytes.extend(text);
}
