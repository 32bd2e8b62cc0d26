use std::fmt;

use super::Secret;
use super::digest::{Digest, hex};
use crate::value::KeyError;

/// The longest key, in bytes.
const MAX_KEY_BYTES: usize = 255;

/// How much of a route or scope that is too long to keep stays readable in front of its digest.
const READABLE_BYTES: usize = 160;

const HEAD: usize = 4;
/// The length up to which a record key is composed in a small buffer, in bytes.
const SHORT: usize = 128;
const SCOPED: u8 = 1;
const ROUTE_CUT: u8 = 2;
const SCOPE_CUT: u8 = 4;
const TOKEN: u8 = 8;

/// The name of one operation in a store: the route, the scope and the key that was extracted from the request.
///
/// Two record keys are equal if all three parts are. Each part follows its length, so that no delimiter in a part can
/// forge another operation. The whole is bounded: a route or scope that is longer than 255 bytes or has control
/// characters in it is kept as its readable beginning and its SHA-256.
///
/// The parts stay readable for operators ([`route`](Self::route), [`scope`](Self::scope), [`key`](Self::key)).
/// `Debug` shows the route only, since keys are not for logs; [`log_id`](Self::log_id) stands for a key there.
///
/// ```
/// use tower_idempotency::store::RecordKey;
///
/// let key = RecordKey::new("/orders", Some("ann"), "7f0c")?;
/// assert_eq!((key.route(), key.scope(), key.key()), ("/orders", Some("ann"), "7f0c"));
/// assert_ne!(key, RecordKey::new("/orders", Some("bob"), "7f0c")?);
/// # Ok::<_, tower_idempotency::key::KeyError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RecordKey(Box<[u8]>);

impl RecordKey {
    /// Creates a record key.
    ///
    /// # Errors
    ///
    /// Returns an error if `key` is empty or blank, longer than 255 bytes or has a control character in it.
    pub fn new(route: &str, scope: Option<&str>, key: &str) -> Result<Self, KeyError> {
        check_key(key)?;
        Ok(Self::compose(route, scope, key, 0))
    }

    /// Creates the record key of a quoted key: it may consist of blanks, since nothing has trimmed it.
    pub(crate) fn of_quoted(route: &str, scope: Option<&str>, key: &str) -> Result<Self, KeyError> {
        check_quoted(key)?;
        Ok(Self::compose(route, scope, key, 0))
    }

    /// Creates the record key of a token from its purpose and its digest, the only part of it that is ever kept. No
    /// client's key is equal to it.
    pub(crate) fn token(purpose: &str, digest: &[u8; 32]) -> Self {
        Self::compose(purpose, None, &hex(digest), TOKEN)
    }

    /// Composes a record key. The key was checked before.
    fn compose(route: &str, scope: Option<&str>, key: &str, kind: u8) -> Self {
        let length = HEAD + route.len() + scope.map_or(0, str::len) + key.len();
        let fits = |part: &str| part.len() <= MAX_KEY_BYTES && !has_control(part);
        if length <= SHORT && fits(route) && scope.is_none_or(fits) {
            return Self::of_plain(route, scope, key, kind);
        }
        let mut buffer = [0; HEAD + 3 * MAX_KEY_BYTES];
        let mut end = HEAD;
        let route_cut = put(&mut buffer, &mut end, 1, route);
        let scope_cut = scope.is_some_and(|scope| put(&mut buffer, &mut end, 2, scope));
        put(&mut buffer, &mut end, 3, key);
        buffer[0] = kind;
        for (flag, set) in [(SCOPED, scope.is_some()), (ROUTE_CUT, route_cut), (SCOPE_CUT, scope_cut)] {
            buffer[0] |= if set { flag } else { 0 };
        }
        Self(Box::from(&buffer[..end]))
    }

    /// Composes a record key of parts that need no cut, as those of most requests: all of it has at most [`SHORT`]
    /// bytes.
    fn of_plain(route: &str, scope: Option<&str>, key: &str, kind: u8) -> Self {
        let mut buffer = [0; SHORT];
        buffer[0] = kind | if scope.is_some() { SCOPED } else { 0 };
        let mut end = HEAD;
        for (length_at, part) in [(1, route), (2, scope.unwrap_or_default()), (3, key)] {
            buffer[end..end + part.len()].copy_from_slice(part.as_bytes());
            buffer[length_at] = u8::try_from(part.len()).unwrap_or(u8::MAX); // at most 255, since all of it is shorter
            end += part.len();
        }
        Self(Box::from(&buffer[..end]))
    }

    /// Reads the bytes of [`as_bytes`](Self::as_bytes); returns `None` if they are malformed.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let lengths = bytes.get(1..HEAD)?;
        let whole: usize = lengths.iter().map(|&n| usize::from(n)).sum();
        let scoped = bytes[0] & SCOPED != 0;
        let known = bytes[0] & !(SCOPED | ROUTE_CUT | SCOPE_CUT | TOKEN) == 0;
        let sound = known && bytes.len() == HEAD + whole && (scoped || lengths[1] == 0);
        // Each part has to be text by itself: a cut inside a character would make `text` fail.
        let mut rest = &bytes[HEAD.min(bytes.len())..];
        for &length in lengths {
            let part = rest.get(..usize::from(length))?;
            std::str::from_utf8(part).ok()?;
            rest = &rest[usize::from(length)..];
        }
        let key = Self(Box::from(bytes));
        (sound && check_quoted(key.key()).is_ok()).then_some(key)
    }

    /// Returns the bytes that stand for this key in a store. They are unambiguous and at most 769 bytes long.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the route: the matched route, the path, or the name given with `.route("…")`.
    #[must_use]
    pub fn route(&self) -> &str {
        self.text(HEAD, self.length(1))
    }

    /// Returns the scope, if the layer has one.
    #[must_use]
    pub fn scope(&self) -> Option<&str> {
        (self.0[0] & SCOPED != 0).then(|| self.text(HEAD + self.length(1), self.length(2)))
    }

    /// Returns the key as it was extracted from the request.
    #[must_use]
    pub fn key(&self) -> &str {
        self.text(HEAD + self.length(1) + self.length(2), self.length(3))
    }

    /// Returns a short digest that stands for this key in logs: 16 hexadecimal digits.
    ///
    /// A reader of the log can test guesses at a key, such as an order number. The events of a layer with a
    /// [secret](crate::Secret) carry [`log_id_with`](Self::log_id_with) instead.
    #[must_use]
    pub fn log_id(&self) -> String {
        let mut digest = Digest::new();
        digest.part(&self.0);
        hex(&digest.finish()[..8])
    }

    /// Returns a short HMAC that stands for this key in logs, under the secret that is used: 16 hexadecimal digits.
    ///
    /// It changes when the secret is replaced.
    #[must_use]
    pub fn log_id_with(&self, secret: &Secret) -> String {
        let keyed = secret.mac(secret.number(), &[b"tower-idempotency: log id, 1", &self.0]);
        keyed.map_or_else(|| self.log_id(), |keyed| hex(&keyed[..8]))
    }

    fn length(&self, part: usize) -> usize {
        usize::from(self.0[part])
    }

    fn text(&self, from: usize, length: usize) -> &str {
        std::str::from_utf8(&self.0[from..from + length]).unwrap_or_default()
    }
}

impl fmt::Debug for RecordKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecordKey({:?})", self.route())
    }
}

/// Appends a part and its length, and returns whether the part had to be cut.
fn put(buffer: &mut [u8], end: &mut usize, length_at: usize, part: &str) -> bool {
    let cut = part.len() > MAX_KEY_BYTES || has_control(part);
    let short;
    let part = if cut {
        let mut digest = Digest::new();
        digest.part(part.as_bytes());
        let readable: String = beginning(part).chars().filter(|character| !character.is_control()).collect();
        short = format!("{readable}#{}", hex(&digest.finish()));
        short.as_bytes()
    } else {
        part.as_bytes()
    };
    buffer[*end..*end + part.len()].copy_from_slice(part);
    buffer[length_at] = u8::try_from(part.len()).unwrap_or(u8::MAX); // at most 255, see above
    *end += part.len();
    cut
}

fn has_control(text: &str) -> bool {
    // Without an early end, so that many bytes are looked at in one step; nearly all texts are plain.
    let plain = |plain, byte: &u8| plain & matches!(byte, b' '..=b'~');
    !text.as_bytes().iter().fold(true, plain) && text.chars().any(char::is_control)
}

fn beginning(text: &str) -> &str {
    let mut end = READABLE_BYTES.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Checks the rules for a key wherever it came from: 1 to 255 bytes, no control characters, not blank.
pub(crate) fn check_key(key: &str) -> Result<(), KeyError> {
    if key.len() > MAX_KEY_BYTES {
        return Err(KeyError::TooLong);
    }
    check_name(key)
}

/// Checks the rules for a quoted key, whose blanks are part of it.
fn check_quoted(key: &str) -> Result<(), KeyError> {
    if is_blank(key) && !key.is_empty() && key.len() <= MAX_KEY_BYTES && !has_control(key) {
        return Ok(());
    }
    check_key(key)
}

/// Checks the rules for a name, of whatever length: no control characters, not blank.
pub(crate) fn check_name(name: &str) -> Result<(), KeyError> {
    if is_blank(name) {
        Err(KeyError::Empty)
    } else if has_control(name) {
        Err(KeyError::ControlCharacter)
    } else {
        Ok(())
    }
}

/// Returns whether a text is blank: two texts that differ in their blanks look alike to everybody.
pub(crate) fn is_blank(text: &str) -> bool {
    text.trim_start().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(route: &str, scope: Option<&str>, key: &str) -> RecordKey {
        RecordKey::new(route, scope, key).unwrap()
    }

    #[test]
    fn parts_cannot_be_forged() {
        assert_ne!(key("/a", Some("b"), "c"), key("/ab", Some(""), "c"));
        assert_ne!(key("/a", Some("b"), "c"), key("/a", None, "bc"));
        assert_ne!(key("/a", Some(""), "c"), key("/a", None, "c"));
        assert_ne!(key("/a:b", None, "c"), key("/a", Some("b"), "c"));
    }

    #[test]
    fn long_parts_are_cut_and_stay_apart() {
        let (one, two) = ("/é".repeat(300), format!("{}x", "/é".repeat(300)));
        let (a, b) = (key(&one, None, "k"), key(&two, None, "k"));
        assert_ne!(a, b);
        assert!(a.route().starts_with("/é/é") && a.route().len() <= 255);
        // A route that spells out the short form of another is still another route.
        assert_ne!(key(a.route(), None, "k"), a);
        assert_eq!(RecordKey::from_bytes(a.as_bytes()), Some(a));
    }

    #[test]
    fn parts_are_text_that_any_store_can_keep() {
        let odd = key("/a\0b", Some("an\nn"), "k");
        assert!(odd.route().starts_with("/ab#") && odd.scope().unwrap().starts_with("ann#"));
        assert_ne!(odd, key("/ab", Some("ann"), "k"));
        assert_ne!(odd, key("/a\u{1}b", Some("an\nn"), "k"));
        assert_eq!(RecordKey::from_bytes(odd.as_bytes()), Some(odd));
    }

    #[test]
    fn no_key_is_a_token() {
        let token = RecordKey::token("order", &[7; 32]);
        assert_ne!(token, key("order", None, token.key()));
        assert_eq!((token.route(), token.key().len()), ("order", 64));
        assert_eq!(RecordKey::from_bytes(token.as_bytes()), Some(token));
    }

    #[test]
    fn keys_are_checked() {
        for blank in ["", " ", "  ", "\t", "\u{a0}\u{3000}"] {
            assert_eq!(RecordKey::new("/", None, blank), Err(KeyError::Empty), "{blank:?}");
        }
        let quoted = RecordKey::of_quoted("/", None, "  ").unwrap();
        assert_eq!((quoted.key(), RecordKey::from_bytes(quoted.as_bytes())), ("  ", Some(quoted.clone())));
        assert_ne!(quoted, RecordKey::of_quoted("/", None, " ").unwrap());
        for bad in ["", "\t", &" ".repeat(256)] {
            assert!(RecordKey::of_quoted("/", None, bad).is_err(), "{bad:?}");
        }
        assert_eq!(RecordKey::new("/", None, &"k".repeat(256)), Err(KeyError::TooLong));
        assert_eq!(RecordKey::new("/", None, "a\u{85}"), Err(KeyError::ControlCharacter));
        assert_eq!(key("/", None, &"k".repeat(255)).key().len(), 255);
    }

    #[test]
    fn bytes_are_read_back_or_refused() {
        let whole = key("/orders", Some("ann"), "schlüssel");
        assert_eq!(RecordKey::from_bytes(whole.as_bytes()), Some(whole.clone()));
        for end in 0..whole.as_bytes().len() {
            assert_eq!(RecordKey::from_bytes(&whole.as_bytes()[..end]), None);
        }
        let mut torn = whole.as_bytes().to_vec();
        torn[2] += 1;
        torn[3] -= 1;
        let _ = RecordKey::from_bytes(&torn);
        assert_eq!(RecordKey::from_bytes(&[255; 12]), None);
    }

    #[test]
    fn debug_hides_the_key() {
        let shown = format!("{:?}", key("/orders", Some("ann"), "secret"));
        assert_eq!(shown, "RecordKey(\"/orders\")");
    }
}
