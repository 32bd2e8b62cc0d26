#[cfg(feature = "gzip")]
use std::io::Read;

use bytes::Bytes;
use http::HeaderValue;

use crate::call::Trouble;

/// The codings that are known here, as a client receives them.
pub(crate) const KNOWN: &str = if cfg!(feature = "gzip") { "identity,gzip,deflate" } else { "identity" };

/// The coding of the compressed messages of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Identity,
    #[cfg(feature = "gzip")]
    Gzip,
    #[cfg(feature = "gzip")]
    Deflate,
    Unknown,
}

impl Encoding {
    /// Returns the coding that a request names.
    pub(crate) fn of(value: Option<&HeaderValue>) -> Self {
        match value.map(HeaderValue::as_bytes) {
            None | Some(b"identity") => Self::Identity,
            #[cfg(feature = "gzip")]
            Some(b"gzip") => Self::Gzip,
            #[cfg(feature = "gzip")]
            Some(b"deflate") => Self::Deflate,
            Some(_) => Self::Unknown,
        }
    }

    /// Returns a message decompressed.
    ///
    /// # Errors
    ///
    /// Returns an error if the coding is not known, the bytes are not of it, or the message is longer than `limit`.
    pub(crate) fn decompress(self, message: &[u8], limit: usize) -> Result<Bytes, Trouble> {
        match self {
            // A message that says that it is compressed, of a request that does not say how.
            Self::Identity => Err(Trouble::Malformed),
            #[cfg(feature = "gzip")]
            Self::Gzip => read(flate2::read::MultiGzDecoder::new(message), limit),
            #[cfg(feature = "gzip")]
            Self::Deflate => read(flate2::read::ZlibDecoder::new(message), limit),
            Self::Unknown => {
                let _ = (message, limit);
                Err(Trouble::UnknownEncoding)
            }
        }
    }
}

/// Reads up to `limit` bytes.
#[cfg(feature = "gzip")]
fn read(decoder: impl Read, limit: usize) -> Result<Bytes, Trouble> {
    let mut out = Vec::new();
    let limit = u64::try_from(limit).unwrap_or(u64::MAX);
    let read = decoder.take(limit.saturating_add(1)).read_to_end(&mut out).map_err(|_| Trouble::Malformed)?;
    if u64::try_from(read).unwrap_or(u64::MAX) > limit {
        return Err(Trouble::TooLarge);
    }
    Ok(out.into())
}

#[cfg(all(test, feature = "gzip"))]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_message_comes_back() {
        assert_eq!(Encoding::Gzip.decompress(&gzip(b"abc"), 3).unwrap(), "abc");
    }

    #[test]
    fn a_short_message_that_becomes_a_long_one_is_refused() {
        let bomb = gzip(&vec![0; 1024 * 1024]);
        assert!(bomb.len() < 2048);
        assert_eq!(Encoding::Gzip.decompress(&bomb, 1024 * 1024 - 1), Err(Trouble::TooLarge));
    }

    #[test]
    fn what_is_not_compressed_as_it_says() {
        assert_eq!(Encoding::Gzip.decompress(b"abc", 3), Err(Trouble::Malformed));
        assert_eq!(Encoding::Gzip.decompress(&gzip(b"abc")[..12], 3), Err(Trouble::Malformed));
        assert_eq!(Encoding::of(Some(&HeaderValue::from_static("zstd"))), Encoding::Unknown);
    }
}
