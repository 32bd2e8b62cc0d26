use std::fmt;

use super::Node;

/// A JSON pointer (RFC 6901).
#[derive(Clone, PartialEq, Eq)]
pub(in crate::extract) struct Pointer {
    text: Box<str>,
    tokens: Box<[Box<str>]>,
}

/// The error for a member that occurs more than once on the way: it is not clear which one is meant.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ambiguous;

impl Pointer {
    /// Parses a pointer. `Err` states what is wrong.
    pub(in crate::extract) fn parse(text: &str) -> Result<Self, &'static str> {
        let Some(tokens) = text.strip_prefix('/') else {
            return if text.is_empty() {
                Ok(Self { text: "".into(), tokens: Box::new([]) })
            } else {
                Err("a JSON pointer begins with a slash")
            };
        };
        let tokens: Option<Box<[_]>> = tokens.split('/').map(unescape).collect();
        let tokens = tokens.ok_or("in a JSON pointer, `~` is followed by 0 or 1")?;
        Ok(Self { text: text.into(), tokens })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn tokens(&self) -> &[Box<str>] {
        &self.tokens
    }

    pub(super) fn find<'n, 'a>(&self, root: &'n Node<'a>) -> Result<Option<&'n Node<'a>>, Ambiguous> {
        let mut node = root;
        for token in &self.tokens {
            let next = match node {
                Node::Object(members) => {
                    let mut named = members.iter().filter(|(name, _)| name == &**token);
                    let first = named.next();
                    if named.next().is_some() {
                        return Err(Ambiguous);
                    }
                    first.map(|(_, value)| value)
                }
                Node::Array(elements) => index(token).and_then(|index| elements.get(index)),
                _ => None,
            };
            let Some(next) = next else { return Ok(None) };
            node = next;
        }
        Ok(Some(node))
    }
}

impl fmt::Debug for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

/// Replaces `~1` with a slash and `~0` with a tilde (section 4).
fn unescape(token: &str) -> Option<Box<str>> {
    let mut out = String::with_capacity(token.len());
    let mut characters = token.chars();
    while let Some(character) = characters.next() {
        out.push(match character {
            '~' => match characters.next()? {
                '0' => '~',
                '1' => '/',
                _ => return None,
            },
            other => other,
        });
    }
    Some(out.into())
}

/// Reads an index: digits without leading zeros (section 4). `-`, the element behind the last, is never there.
pub(super) fn index(token: &str) -> Option<usize> {
    let plain = token == "0" || (token.bytes().all(|byte| byte.is_ascii_digit()) && !token.starts_with('0'));
    plain.then(|| token.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::{super::parse, *};

    /// The document and the table of RFC 6901, section 5.
    #[test]
    fn the_examples_of_the_rfc() {
        let text = r#"{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8}"#;
        let root = parse(text.as_bytes()).unwrap();
        let find = |pointer: &str| Pointer::parse(pointer).unwrap().find(&root).unwrap();
        assert_eq!(find(""), Some(&root));
        assert_eq!(find("/foo/0"), Some(&Node::String("bar".into())));
        for (pointer, value) in [
            ("/", "0"),
            ("/a~1b", "1"),
            ("/c%d", "2"),
            ("/e^f", "3"),
            ("/g|h", "4"),
            ("/i\\j", "5"),
            ("/k\"l", "6"),
            ("/ ", "7"),
            ("/m~0n", "8"),
        ] {
            assert_eq!(find(pointer), Some(&Node::Number(value)), "{pointer}");
        }
    }

    #[test]
    fn bad_pointers() {
        for bad in ["foo", "/~", "/~2", "/a~"] {
            assert!(Pointer::parse(bad).is_err(), "{bad}");
        }
    }
}
