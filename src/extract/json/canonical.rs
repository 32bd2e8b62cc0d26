use super::{Node, Pointer, number, pointer::index};
use crate::value::CompactDigest;

/// The parts of a body that count.
#[derive(Clone, Debug)]
pub(in crate::extract) enum Selection {
    All,
    Only(Box<[Pointer]>),
    Without(Box<[Pointer]>),
}

/// Feeds a body to `digest` by its meaning: the order of members, white space and the spelling of numbers and strings
/// do not matter. `Err` states that the body has no single meaning; then its bytes are compared.
pub(in crate::extract) fn digest(root: &Node<'_>, selection: &Selection, digest: &mut CompactDigest) -> Result<(), ()> {
    if !is_unambiguous(root) {
        return Err(());
    }
    match selection {
        Selection::All => put(root, &[], digest),
        Selection::Without(pointers) => {
            names(pointers, digest);
            let left_out: Vec<_> = pointers.iter().map(Pointer::tokens).collect();
            put(root, &left_out, digest)
        }
        Selection::Only(pointers) => {
            names(pointers, digest);
            pointers.iter().try_for_each(|pointer| match pointer.find(root) {
                Ok(Some(found)) => {
                    digest.length(1);
                    put(found, &[], digest)
                }
                Ok(None) => {
                    digest.length(0);
                    Ok(())
                }
                Err(_) => Err(()),
            })
        }
    }
}

/// Adds the pointers, so that another choice of parts gives another fingerprint.
fn names(pointers: &[Pointer], digest: &mut CompactDigest) {
    digest.length(pointers.len());
    for pointer in pointers {
        digest.part(pointer.text().as_bytes());
    }
}

fn is_unambiguous(node: &Node<'_>) -> bool {
    match node {
        Node::Array(elements) => elements.iter().all(is_unambiguous),
        Node::Object(members) => {
            let mut names: Vec<_> = members.iter().map(|(name, _)| name).collect();
            names.sort_unstable();
            names.windows(2).all(|pair| pair[0] != pair[1]) && members.iter().all(|(_, value)| is_unambiguous(value))
        }
        _ => true,
    }
}

/// Feeds a value. `left_out` holds the paths from here to what does not count.
fn put(node: &Node<'_>, left_out: &[&[Box<str>]], digest: &mut CompactDigest) -> Result<(), ()> {
    if left_out.iter().any(|way| way.is_empty()) {
        digest.part(b"-");
        return Ok(());
    }
    match node {
        Node::Null => digest.part(b"n"),
        Node::Bool(true) => digest.part(b"t"),
        Node::Bool(false) => digest.part(b"f"),
        Node::Number(text) => {
            digest.part(b"#");
            digest.part(number::canonical(text).ok_or(())?.as_bytes());
        }
        Node::String(text) => {
            digest.part(b"\"");
            digest.part(text.as_bytes());
        }
        Node::Array(elements) => {
            digest.part(b"[");
            digest.length(elements.len());
            for (at, element) in elements.iter().enumerate() {
                put(element, &further(left_out, |token| index(token) == Some(at)), digest)?;
            }
        }
        Node::Object(members) => {
            let is_left_out = |name: &str| left_out.iter().any(|way| matches!(way, [last] if **last == *name));
            let mut members: Vec<_> = members.iter().filter(|(name, _)| !is_left_out(name)).collect();
            members.sort_unstable_by_key(|(name, _)| name);
            digest.part(b"{");
            digest.length(members.len());
            for (name, value) in members {
                digest.part(name.as_bytes());
                put(value, &further(left_out, |token| *token == **name), digest)?;
            }
        }
    }
    Ok(())
}

/// Returns the paths that go on through one child.
fn further<'w>(ways: &[&'w [Box<str>]], through: impl Fn(&str) -> bool) -> Vec<&'w [Box<str>]> {
    let step = |way: &&'w [Box<str>]| way.split_first().filter(|(token, _)| through(token)).map(|(_, rest)| rest);
    ways.iter().filter_map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::{super::parse, *};

    fn pointers(pointers: &[&str]) -> Box<[Pointer]> {
        pointers.iter().map(|pointer| Pointer::parse(pointer).unwrap()).collect()
    }

    fn of(body: &str, selection: &Selection) -> Option<[u8; 32]> {
        let mut out = CompactDigest::new();
        digest(&parse(body.as_bytes()).unwrap(), selection, &mut out).ok().map(|()| out.finish())
    }

    #[track_caller]
    fn assert_groups(selection: &Selection, groups: &[&[&str]]) {
        let digests: Vec<Vec<_>> =
            groups.iter().map(|group| group.iter().map(|body| of(body, selection).unwrap()).collect()).collect();
        for (i, group) in digests.iter().enumerate() {
            for (j, digest) in group.iter().enumerate() {
                assert_eq!(*digest, group[0], "{} and {}", groups[i][j], groups[i][0]);
            }
            for (k, other) in digests.iter().enumerate().skip(i + 1) {
                assert_ne!(group[0], other[0], "{} and {}", groups[i][0], groups[k][0]);
            }
        }
    }

    #[test]
    fn by_value() {
        assert_groups(
            &Selection::All,
            &[
                &[
                    r#"{"a":1,"b":{"c":[1,2],"d":null}}"#,
                    "{ \"b\": {\"d\": null, \"c\": [1.0, 2e0]},\n \"\\u0061\": 1 }",
                ],
                &[r#"{"a":1,"b":{"c":[2,1],"d":null}}"#],
                &[r#"{"a":1,"b":{"c":[1,2]}}"#],
                &[r#"{"a":"1","b":{"c":[1,2],"d":null}}"#],
                &["[]"],
                &["{}"],
                &["[[],[]]"],
                &["[[[]]]"],
                &["\"\""],
                &["0", "-0", "0e5"],
                &["false"],
                &["null"],
            ],
        );
    }

    #[test]
    fn only_some_parts() {
        assert_groups(
            &Selection::Only(pointers(&["/amount", "/order/id"])),
            &[
                &[r#"{"amount":5,"order":{"id":"o1"},"at":1}"#, r#"{"order":{"x":2,"id":"o1"},"amount":5.0,"at":2}"#],
                &[r#"{"amount":6,"order":{"id":"o1"}}"#],
                &[r#"{"amount":5,"order":{"id":null}}"#],
                &[r#"{"amount":5,"order":{}}"#, r#"{"amount":5}"#, r#"{"amount":5,"order":[]}"#],
                &["1", "[]"],
            ],
        );
    }

    #[test]
    fn all_but_some_parts() {
        assert_groups(
            &Selection::Without(pointers(&["/at", "/order/try", "/list/1"])),
            &[
                &[r#"{"a":1,"at":1,"order":{"id":1,"try":1}}"#, r#"{"a":1,"order":{"id":1}}"#],
                &[r#"{"a":1,"order":{"id":2,"try":1}}"#],
                &[r#"{"a":1,"order":{"id":1},"try":1}"#],
                &[r#"{"list":[1,2,3]}"#, r#"{"list":[1,{"x":1},3]}"#],
                &[r#"{"list":[1,2]}"#],
                &[r#"{"list":[1]}"#],
            ],
        );
    }

    #[test]
    fn other_choices_never_match() {
        let of = |selection| of("{}", &selection).unwrap();
        assert_ne!(of(Selection::Only(pointers(&["/a"]))), of(Selection::Only(pointers(&["/b"]))));
        assert_ne!(of(Selection::Without(pointers(&["/a"]))), of(Selection::Without(pointers(&["/b"]))));
    }

    #[test]
    fn what_has_no_single_meaning() {
        for body in [r#"{"a":1,"a":1}"#, r#"[{"a":1,"\u0061":2}]"#, "1e99999999999999999999"] {
            assert_eq!(of(body, &Selection::All), None, "{body}");
            let elsewhere = Selection::Only(pointers(&["/x"]));
            assert_eq!(of(body, &elsewhere).is_none(), body != "1e99999999999999999999", "{body}");
        }
    }
}
