//! XML bodies: one element's text, and nothing that XML could do beyond that.

use quick_xml::{
    XmlVersion,
    events::{BytesDecl, BytesRef, BytesStart, Event},
    reader::Reader,
};

use crate::value::KeyError;

/// Returns the text of the one child `wanted` of the document element.
///
/// There is no DTD, and so no entity beyond XML's own five, and nothing external is loaded.
pub(in crate::extract) fn key(body: &[u8], wanted: &str) -> Result<Option<String>, KeyError> {
    let text = std::str::from_utf8(body).map_err(|_| KeyError::malformed("the body is not UTF-8"))?;
    if !text.chars().all(is_allowed) {
        return Err(not_xml());
    }
    let mut reader = Reader::from_str(text.strip_prefix('\u{feff}').unwrap_or(text));
    reader.config_mut().expand_empty_elements = true;
    reader.config_mut().check_comments = true;
    let mut found: Option<String> = None;
    let (mut depth, mut roots, mut inside) = (0_usize, 0, false);
    loop {
        let start = reader.buffer_position();
        match reader.read_event().map_err(|_| not_xml())? {
            Event::Start(element) => {
                check_attributes(&element)?;
                roots += usize::from(depth == 0);
                depth += 1;
                if inside {
                    return Err(KeyError::malformed("the key's element has elements in it"));
                }
                if depth == 2 && element.name().as_ref() == wanted {
                    inside = true;
                    if found.replace(String::new()).is_some() {
                        return Err(KeyError::Repeated);
                    }
                }
            }
            Event::End(_) => {
                depth = depth.checked_sub(1).ok_or_else(not_xml)?;
                inside = false;
            }
            Event::Text(text) if text.contains("]]>") => return Err(not_xml()),
            Event::Text(text) => add(&mut found, inside, depth, &text.xml10_content())?,
            Event::CData(text) if depth > 0 => add(&mut found, inside, depth, &text.xml10_content())?,
            Event::GeneralRef(reference) if depth > 0 => {
                add(&mut found, inside, depth, resolve(&reference)?.encode_utf8(&mut [0; 4]))?;
            }
            Event::Decl(declaration) if start == 0 => check_encoding(&declaration)?,
            Event::Comment(_) | Event::PI(_) => {}
            Event::Eof if depth == 0 && roots == 1 => return Ok(found),
            // A document type, or something that is not where it may be.
            _ => return Err(not_xml()),
        }
    }
}

fn add(found: &mut Option<String>, inside: bool, depth: usize, text: &str) -> Result<(), KeyError> {
    if depth == 0 && !text.chars().all(|character| matches!(character, ' ' | '\t' | '\r' | '\n')) {
        return Err(not_xml());
    }
    if let Some(found) = found.as_mut().filter(|_| inside) {
        found.push_str(text);
    }
    Ok(())
}

/// Checks attributes. They do not belong to a key, and must not contain entities either.
fn check_attributes(element: &BytesStart<'_>) -> Result<(), KeyError> {
    // Whether two have one name would be looked up one by one, which is slow if there are many.
    element.attributes().with_checks(false).try_for_each(|attribute| {
        let attribute = attribute.map_err(|_| not_xml())?;
        let value = attribute.normalized_value(XmlVersion::Implicit1_0).map_err(|_| not_xml())?;
        let is_sound = !attribute.value.contains('<') && value.chars().all(is_allowed);
        if is_sound { Ok(()) } else { Err(not_xml()) }
    })
}

/// Returns whether XML allows the character (XML 1.0, production 2).
fn is_allowed(character: char) -> bool {
    !matches!(character, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}')
}

fn resolve(reference: &BytesRef<'_>) -> Result<char, KeyError> {
    if let Some(character) = reference.resolve_char_ref().map_err(|_| not_xml())? {
        return if is_allowed(character) { Ok(character) } else { Err(not_xml()) };
    }
    Ok(match &*reference.xml10_content() {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        _ => return Err(not_xml()),
    })
}

fn check_encoding(declaration: &BytesDecl<'_>) -> Result<(), KeyError> {
    match declaration.encoding() {
        None => Ok(()),
        Some(Ok(encoding)) if encoding.eq_ignore_ascii_case("utf-8") => Ok(()),
        Some(_) => Err(KeyError::malformed("the body is XML in an encoding other than UTF-8")),
    }
}

fn not_xml() -> KeyError {
    KeyError::malformed("the body is not XML, or has a document type or entities of its own")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(body: &str) -> Result<Option<String>, KeyError> {
        key(body.as_bytes(), "id")
    }

    #[test]
    fn keys() {
        for (body, expected) in [
            ("<xml><a>1</a><id>7</id></xml>", Some("7")),
            ("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<xml>\n<id><![CDATA[a<b&c]]></id>\n</xml>\n", Some("a<b&c")),
            ("\u{feff}<r><id>a&amp;&#x62;&quot;<!-- no -->c<![CDATA[d]]></id></r>", Some("a&b\"cd")),
            ("<r><id/></r>", Some("")),
            ("<r><id a=\"1\">x</id></r>", Some("x")),
            ("<r><x><id>7</id></x></r>", None),
            ("<r><ID>7</ID><p:id>7</p:id></r>", None),
            ("<id>7</id>", None),
            ("<r/>", None),
        ] {
            assert_eq!(id(body), Ok(expected.map(Into::into)), "{body}");
        }
    }

    #[test]
    fn what_is_refused() {
        for body in [
            "",
            "7",
            "{}",
            "<r>",
            "<r><id>7</r>",
            "<r><id>7</id>",
            "</r>",
            "<r></r><r></r>",
            "<r></r>x",
            "x<r></r>",
            "<!DOCTYPE r><r><id>7</id></r>",
            "<!DOCTYPE r [<!ENTITY e SYSTEM \"file:///etc/passwd\">]><r><id>&e;</id></r>",
            "<r><id>&e;</id></r>",
            "<r>&nbsp;<id>7</id></r>",
            "<r><id>&#x0;</id></r>",
            "<r><id>&#xd800;</id></r>",
            "<?xml version=\"1.0\" encoding=\"GBK\"?><r><id>7</id></r>",
            "<r><id>7<b/></id></r>",
            "<r><id>7</id><id>7</id></r>",
            "<![CDATA[x]]><r/>",
            "<r><id>&",
            "<r><id><![CDATA[",
            "<r a=\"&e;\"><id>7</id></r>",
            "<r><x a='&#0;'/><id>7</id></r>",
            "<r a=\"<\"><id>7</id></r>",
            "<r a=b><id>7</id></r>",
            "<r><id>7]]></id></r>",
            "<r><!-- -- --><id>7</id></r>",
            "<r><?xml version=\"1.0\"?><id>7</id></r>",
            " <?xml version=\"1.0\"?><r><id>7</id></r>",
            "<r><id>7</id>\u{1}</r>",
            "<r><id>7&#xfffe;</id></r>",
        ] {
            assert!(id(body).is_err(), "{body}: {:?}", id(body));
        }
        assert!(key(b"<r><id>\xff</id></r>", "id").is_err());
    }

    #[test]
    fn deep_nesting_is_no_crash() {
        let body = format!("{}{}", "<a>".repeat(100_000), "</a>".repeat(100_000));
        assert_eq!(id(&body), Ok(None));
    }
}
