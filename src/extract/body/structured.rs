//! The two forms of a key in a header: a Structured Field string (RFC 9651, section 4.2) and bare text.

use std::borrow::Cow;

use crate::value::KeyError;

const NOT_A_STRING: &str = "the key is not a Structured Field string (RFC 9651)";
const NEITHER: &str = "the key is neither a quoted string nor visible ASCII without any of `\"`, `,`, `;`, `\\`";

/// Reads a key: `"abc"`, or bare `abc` unless `strict`.
pub(crate) fn parse(field: &[u8], strict: bool) -> Result<Cow<'_, str>, KeyError> {
    let item = trim(field);
    if strict || item.first() == Some(&b'"') {
        return string_item(item).ok_or(KeyError::Malformed(NOT_A_STRING.into()));
    }
    if item.is_empty() {
        return Err(KeyError::Empty);
    }
    // Without an early end, so that many bytes are looked at in one step.
    let visible = |all, byte: &u8| all & matches!(byte, 0x21..=0x7e) & !matches!(byte, b'"' | b',' | b';' | b'\\');
    match std::str::from_utf8(item) {
        Ok(bare) if item.iter().fold(true, visible) => Ok(Cow::Borrowed(bare)),
        _ => Err(KeyError::Malformed(NEITHER.into())),
    }
}

fn trim(mut field: &[u8]) -> &[u8] {
    while let [b' ', rest @ ..] | [rest @ .., b' '] = field {
        field = rest;
    }
    field
}

/// Reads an Item that is a String; its parameters are checked for their form and otherwise ignored.
fn string_item(item: &[u8]) -> Option<Cow<'_, str>> {
    let (value, rest) = string(item)?;
    parameters(rest).then_some(value)
}

/// Reads a String (section 4.2.5).
fn string(input: &[u8]) -> Option<(Cow<'_, str>, &[u8])> {
    let input = input.strip_prefix(b"\"")?;
    let mut unescaped: Option<String> = None;
    let mut at = 0;
    loop {
        match *input.get(at)? {
            b'"' => break,
            b'\\' => {
                let escaped = *input.get(at + 1).filter(|byte| matches!(byte, b'"' | b'\\'))?;
                let text = unescaped.get_or_insert_with(|| ascii(&input[..at]).to_owned());
                text.push(char::from(escaped));
                at += 2;
            }
            byte @ 0x20..=0x7e => {
                if let Some(text) = &mut unescaped {
                    text.push(char::from(byte));
                }
                at += 1;
            }
            _ => return None,
        }
    }
    let value = unescaped.map_or_else(|| Cow::Borrowed(ascii(&input[..at])), Cow::Owned);
    Some((value, &input[at + 1..]))
}

fn ascii(checked: &[u8]) -> &str {
    std::str::from_utf8(checked).unwrap_or_default()
}

/// Returns whether only parameters follow (section 4.2.3.2).
fn parameters(mut input: &[u8]) -> bool {
    loop {
        let [b';', rest @ ..] = input else { return input.is_empty() };
        let rest = &rest[count(rest, |byte| byte == b' ')..];
        if !matches!(rest.first(), Some(b'a'..=b'z' | b'*')) {
            return false;
        }
        let name = count(rest, |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.' | b'*'));
        input = &rest[name..];
        if let [b'=', value @ ..] = input {
            let Some(rest) = bare_item(value) else { return false };
            input = rest;
        }
    }
}

/// Reads a bare item and returns what follows it (section 4.2.3.1).
fn bare_item(input: &[u8]) -> Option<&[u8]> {
    match input {
        [b'"', ..] => Some(string(input)?.1),
        [b'%', b'"', text @ ..] => display_string(text),
        [b':', bytes @ ..] => byte_sequence(bytes),
        [b'?', b'0' | b'1', rest @ ..] => Some(rest),
        [b'@', number @ ..] => integer(number, 15),
        [b'-' | b'0'..=b'9', ..] => {
            let whole = integer(input, 15)?;
            let Some(fraction) = whole.strip_prefix(b".") else { return Some(whole) };
            let digits = count(fraction, |byte| byte.is_ascii_digit());
            let before = input.len() - whole.len() - usize::from(input[0] == b'-');
            ((1..=3).contains(&digits) && before <= 12).then_some(&fraction[digits..])
        }
        [b'A'..=b'Z' | b'a'..=b'z' | b'*', ..] => {
            let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte);
            Some(&input[count(input, token)..])
        }
        _ => None,
    }
}

/// Reads a byte sequence (section 4.2.7). Padding may be left out, as that section advises.
fn byte_sequence(input: &[u8]) -> Option<&[u8]> {
    let digits = count(input, |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'));
    let padding = count(&input[digits..], |byte| byte == b'=');
    let is_base64 = digits % 4 != 1 && padding <= (4 - digits % 4) % 4;
    input[digits + padding..].strip_prefix(b":").filter(|_| is_base64)
}

/// Reads a display string, behind the opening quote (section 4.2.10).
fn display_string(input: &[u8]) -> Option<&[u8]> {
    let hex = |digit: u8| char::from(digit).to_digit(16).filter(|_| !digit.is_ascii_uppercase());
    let mut text = Vec::new();
    let mut rest = input;
    loop {
        let (byte, length) = match rest {
            [b'"', rest @ ..] => return std::str::from_utf8(&text).is_ok().then_some(rest),
            [b'%', high, low, ..] => (u8::try_from(hex(*high)? * 16 + hex(*low)?).ok()?, 3),
            [byte @ (b' '..=b'$' | b'&'..=b'~'), ..] => (*byte, 1),
            _ => return None,
        };
        text.push(byte);
        rest = &rest[length..];
    }
}

fn integer(input: &[u8], most: usize) -> Option<&[u8]> {
    let digits = input.strip_prefix(b"-").unwrap_or(input);
    let length = count(digits, |byte| byte.is_ascii_digit());
    (1..=most).contains(&length).then_some(&digits[length..])
}

fn count(input: &[u8], is: impl Fn(u8) -> bool) -> usize {
    input.iter().take_while(|&&byte| is(byte)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lenient(field: &str) -> Option<String> {
        parse(field.as_bytes(), false).ok().map(Cow::into_owned)
    }

    fn strict(field: &str) -> Option<String> {
        parse(field.as_bytes(), true).ok().map(Cow::into_owned)
    }

    #[test]
    fn quoted_and_bare_are_one() {
        assert_eq!(lenient("abc").as_deref(), Some("abc"));
        assert_eq!(lenient("\"abc\"").as_deref(), Some("abc"));
        assert_eq!(strict("\"abc\"").as_deref(), Some("abc"));
        assert_eq!(strict("abc"), None);
        assert_eq!(lenient("  \"a b\"  ").as_deref(), Some("a b"));
    }

    #[test]
    fn escapes() {
        assert_eq!(strict(r#""a\"b\\c""#).as_deref(), Some(r#"a"b\c"#));
        assert_eq!(strict(r#""\\""#).as_deref(), Some("\\"));
        for bad in [r#""a\b""#, r#""a\"#, r#""a"#, r#"""""#, "\"caf\u{e9}\"", "\"\t\"", "'a'", "\"a\" \"b\"", ""] {
            assert_eq!(strict(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn parameters_are_checked_and_ignored() {
        for good in [
            ";v=1",
            "; v=1;x",
            ";a=-1.125",
            ";*a_-.*=tok/en",
            ";s=\"x;y\"",
            ";b=?0",
            ";c=:aGk=:",
            ";d=@-7",
            ";e=%\"f%c3%bc\"",
            ";c=:aGk:",
            ";c=::",
        ] {
            assert_eq!(strict(&format!("\"k\"{good}")).as_deref(), Some("k"), "{good}");
        }
        for bad in [
            ";",
            ";V=1",
            ";v=",
            "; ",
            " ;v",
            ";v=1.",
            ";v=1.2345",
            ";v=?2",
            ";v=:a",
            ";v=\"x",
            ",",
            ";v= 1",
            ";v=@1.5",
            ";v=:a:",
            ";v=:aG=k:",
            ";v=:aGk==:",
            ";v=%\"f%c3\"",
            ";v=%\"f%C3%BC\"",
            ";v=%\"f%c\"",
            ";v=%\"f%zz\"",
        ] {
            assert_eq!(strict(&format!("\"k\"{bad}")), None, "{bad}");
        }
    }

    #[test]
    fn bare_text_is_visible_ascii() {
        for bad in ["a,b", "a;b", "a\\b", "a\"b", "a b", "a\tb", "caf\u{e9}", "", " ", "a\u{7f}"] {
            assert_eq!(lenient(bad), None, "{bad:?}");
        }
        assert_eq!(lenient("order:7/!~").as_deref(), Some("order:7/!~"));
    }
}
