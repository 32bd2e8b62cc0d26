//! Keys and fingerprints of `multipart/form-data` bodies.

use http::HeaderValue;
use tower_idempotency::{fingerprint, key};

use super::{
    choices::Choices,
    probe::{Told, are_one, told, typed},
};

/// Any body: if a plain reader understands it, so does the layer, and to the same effect.
pub fn any_body(body: &[u8]) {
    let request = || typed("multipart/form-data; boundary=b0", body.to_vec());
    let told = told(key::form("id"), request());
    let read = read(body);
    if let Some(fields) = &read {
        assert_eq!(told, key_in(fields));
    }
    let one = are_one(fingerprint::form(), request(), request());
    assert!(one == Some(true) || (one.is_none() && read.is_none()), "{one:?} {read:?}");
    assert_eq!(are_one(fingerprint::bytes(), request(), request()), Some(true));
}

type Field<'a> = (&'a str, &'a [u8]);

fn key_in(fields: &[Field<'_>]) -> Told {
    let ids: Vec<_> = fields.iter().filter(|(name, _)| *name == "id").map(|(_, value)| *value).collect();
    match ids[..] {
        [] => Told::Missing,
        [id] => std::str::from_utf8(id).map_or(Told::Invalid, Told::of),
        _ => Told::Invalid,
    }
}

/// The fields, where each has one header, spelled in one way, and nothing else is there.
fn read(body: &[u8]) -> Option<Vec<Field<'_>>> {
    let mut fields = Vec::new();
    let mut rest = body.strip_prefix(b"--b0")?;
    while rest != b"--\r\n" {
        rest = rest.strip_prefix(b"\r\nContent-Disposition: form-data; name=\"")?;
        let name = rest.iter().take_while(|byte| byte.is_ascii_lowercase()).count();
        let data = rest[name..].strip_prefix(b"\"\r\n\r\n")?;
        let end = data.windows(6).position(|window| window == b"\r\n--b0")?;
        fields.push((std::str::from_utf8(&rest[..name]).ok()?, &data[..end]));
        rest = &data[end + 6..];
    }
    (fields.len() <= 1_000).then_some(fields)
}

/// The boundary that another parser reads in a media type is the one that the layer goes by.
pub fn media_type(content_type: &str) {
    let possible = content_type.parse::<HeaderValue>().is_ok();
    if let Some(boundary) = multer::parse_boundary(content_type).ok().filter(|_| possible) {
        let Sent { body, .. } = Sent::new(&boundary, &[("id", b"7")]);
        assert_eq!(told(key::form("id"), typed(content_type, body)), Told::Key("7".into()), "{boundary:?}");
    }
}

/// A form sent twice, with another boundary and its fields in another order, and then with another value.
pub fn sent_again(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let fields: Vec<Field<'_>> = (0..choices.below(5))
        .map(|_| (choices.one_of(&["id", "a", "b", "naïve name"]), choices.bytes(40)))
        .filter(|(_, value)| !value.windows(2).any(|window| window == b"--"))
        .collect();
    let first = Sent::new("b0", &fields);
    assert_eq!(told(key::form("id"), first.request()), key_in(&fields));
    let again = Sent::new("----another.boundary-7", &fields);
    assert_eq!(are_one(fingerprint::bytes(), first.request(), again.request()), Some(true));
    let mut reversed = fields.clone();
    reversed.reverse();
    let again = Sent::new("\"c d\"", &reversed);
    // The order counts between fields of one name.
    let by_name = |fields: &[Field<'_>]| {
        let mut fields: Vec<_> = fields.iter().map(|(name, value)| (name.to_string(), value.to_vec())).collect();
        fields.sort_by(|one, other| one.0.cmp(&other.0));
        fields
    };
    let same = by_name(&fields) == by_name(&reversed);
    assert_eq!(are_one(fingerprint::form(), first.request(), again.request()), Some(same));
    if let Some((name, value)) = fields.last() {
        let longer = [value, &b"x"[..]].concat();
        let changed = [&fields[..fields.len() - 1], &[(name, &longer)]].concat();
        let changed = Sent::new("b0", &changed);
        assert_eq!(are_one(fingerprint::bytes(), first.request(), changed.request()), Some(false));
        assert_eq!(are_one(fingerprint::form(), first.request(), changed.request()), Some(false));
    }
}

struct Sent {
    content_type: String,
    body: Vec<u8>,
}

impl Sent {
    fn new(boundary: &str, fields: &[Field<'_>]) -> Self {
        let content_type = format!("multipart/form-data; boundary={boundary}");
        let boundary = boundary.trim_matches('"');
        let mut body = Vec::new();
        for (name, value) in fields {
            let head = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n");
            body.extend_from_slice(head.as_bytes());
            body.extend_from_slice(value);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
        Self { content_type, body }
    }

    fn request(&self) -> http::Request<http_body_util::Full<bytes::Bytes>> {
        typed(&self.content_type, self.body.clone())
    }
}
