//! Keys out of XML bodies, against another parser.

use roxmltree::{Document, Error, Node};
use tower_idempotency::key;

use super::probe::{Told, post, told};

/// The other parser takes long for large documents of some kinds.
const LONGEST_COMPARED: usize = 64 * 1024;

/// To the other parser `:a` and `a` are one name, and `xml` is the name of an instruction unless a blank follows.
const MISREAD: &[&str] = &["<:", "</:", "<?xml\t", "<?xml\n", "<?xml\r", "<?xml?"];

pub fn check(body: &[u8]) {
    let told = told(key::xml("id"), post(body.to_vec()));
    let Ok(text) = std::str::from_utf8(body) else { return assert_eq!(told, Told::Invalid) };
    if body.len() > LONGEST_COMPARED || MISREAD.iter().any(|piece| text.contains(piece)) {
        return;
    }
    match Document::parse(text) {
        Ok(document) => {
            let expected = key_in(&document);
            // This layer takes UTF-8 only, and the other parser does not look at what the declaration says.
            let passed_over = text.contains("encoding") || has_impossible_reference(text);
            assert!(told == expected || (told == Told::Invalid && passed_over), "{told:?} {expected:?}");
        }
        // What this layer promises to see, whether or not the key itself is sound. It does not look at names.
        Err(
            Error::DtdDetected
            | Error::InvalidCharacterData(_)
            | Error::InvalidComment(_)
            | Error::MalformedEntityReference(_)
            | Error::NoRootNode
            | Error::NonXmlChar(..)
            | Error::UnclosedRootNode
            | Error::UnexpectedCloseTag(..)
            | Error::UnexpectedDeclaration(_)
            | Error::UnexpectedEndOfStream
            | Error::UnknownEntityReference(..),
        ) => assert_eq!(told, Told::Invalid),
        Err(_) => {}
    }
}

/// The other parser puts something else in place of a character that there is not.
fn has_impossible_reference(text: &str) -> bool {
    text.split("&#").skip(1).filter_map(|rest| rest.split(';').next()).any(|number| {
        let number = number.strip_prefix('x').map_or_else(|| number.parse(), |hex| u32::from_str_radix(hex, 16));
        number.ok().and_then(char::from_u32).is_none()
    })
}

fn key_in(document: &Document<'_>) -> Told {
    let ids: Vec<_> = document.root_element().children().filter(|child| is_id(document, *child)).collect();
    match ids[..] {
        [] => Told::Missing,
        [id] if id.children().any(|child| child.is_element()) => Told::Invalid,
        [id] => Told::of(&id.children().filter(Node::is_text).filter_map(|text| text.text()).collect::<String>()),
        _ => Told::Invalid,
    }
}

/// By its name as it is written: without a prefix.
fn is_id(document: &Document<'_>, node: Node<'_, '_>) -> bool {
    let written = &document.input_text()[node.range()];
    node.is_element() && node.tag_name().name() == "id" && !written.starts_with("<id:") && written.starts_with("<id")
}
