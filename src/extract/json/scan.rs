use std::borrow::Cow;

use super::{DEPTH, MOST_VALUES, Node};

/// Reads JSON text that is known to be well-formed, but for its depth, its size and the escapes of its strings.
pub(super) fn scan(text: &str) -> Option<Node<'_>> {
    Scanner { text, at: 0, values: 0 }.value(0)
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    values: usize,
}

impl<'a> Scanner<'a> {
    fn value(&mut self, depth: usize) -> Option<Node<'a>> {
        self.values += 1;
        if self.values > MOST_VALUES {
            return None;
        }
        match self.peek()? {
            b'{' => self.object(depth + 1),
            b'[' => self.array(depth + 1),
            b'"' => self.string().map(Node::String),
            b't' => Some(self.word("true", Node::Bool(true))),
            b'f' => Some(self.word("false", Node::Bool(false))),
            b'n' => Some(self.word("null", Node::Null)),
            _ => Some(self.number()),
        }
    }

    fn object(&mut self, depth: usize) -> Option<Node<'a>> {
        let mut members = Vec::new();
        self.items(depth, b'}', |this| {
            let name = this.string()?;
            this.take(b':')?;
            members.push((name, this.value(depth)?));
            Some(())
        })?;
        Some(Node::Object(members))
    }

    fn array(&mut self, depth: usize) -> Option<Node<'a>> {
        let mut elements = Vec::new();
        self.items(depth, b']', |this| {
            elements.push(this.value(depth)?);
            Some(())
        })?;
        Some(Node::Array(elements))
    }

    fn items(&mut self, depth: usize, end: u8, mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        if depth > DEPTH {
            return None;
        }
        self.at += 1;
        if self.peek()? == end {
            self.at += 1;
            return Some(());
        }
        loop {
            item(self)?;
            if self.peek()? == end {
                self.at += 1;
                return Some(());
            }
            self.take(b',')?;
        }
    }

    fn string(&mut self) -> Option<Cow<'a, str>> {
        self.take(b'"')?;
        let rest = &self.text.as_bytes()[self.at..];
        let mut length = 0;
        let mut escaped = false;
        while rest.get(length)? != &b'"' {
            let escape = rest[length] == b'\\';
            escaped |= escape;
            length += 1 + usize::from(escape);
        }
        let start = self.at;
        self.at += length + 1;
        if escaped {
            serde_json::from_str(self.text.get(start - 1..self.at)?).ok().map(Cow::Owned)
        } else {
            self.text.get(start..start + length).map(Cow::Borrowed)
        }
    }

    fn number(&mut self) -> Node<'a> {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E')).unwrap_or(rest.len());
        self.at += end;
        Node::Number(&rest[..end])
    }

    fn word(&mut self, word: &str, node: Node<'a>) -> Node<'a> {
        self.at += word.len();
        node
    }

    fn take(&mut self, expected: u8) -> Option<()> {
        (self.peek()? == expected).then(|| self.at += 1)
    }

    /// Returns the next byte behind white space.
    fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.text.as_bytes().get(self.at)?;
            if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                return Some(byte);
            }
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_value() {
        let text = " { \"a\" : [ 1 , -2.5e+3 , true , false , null , \"x\\n\\u00e9\" , [ ] , { } ] , \"a\" : \"\" } ";
        let string = |text: &'static str| Node::String(Cow::Borrowed(text));
        let array = Node::Array(vec![
            Node::Number("1"),
            Node::Number("-2.5e+3"),
            Node::Bool(true),
            Node::Bool(false),
            Node::Null,
            string("x\né"),
            Node::Array(vec![]),
            Node::Object(vec![]),
        ]);
        assert_eq!(scan(text), Some(Node::Object(vec![("a".into(), array), ("a".into(), string(""))])));
    }
}
