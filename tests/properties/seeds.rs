//! What the fuzzer found worth keeping holds too: `fuzz/seeds`, with the rules that the targets share with these tests.

use std::{fs, path::Path};

use super::rules::{form, header, json_fingerprint, json_key, multipart, verbs, xml};

/// Tries each input of a target: one a line, in hexadecimal digits.
fn each(target: &str, check: impl Fn(&[u8])) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../fuzz/seeds/{target}.hex"));
    let lines = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(lines.lines().count() > 10, "{target} has hardly any");
    for line in lines.lines() {
        let digits = line.as_bytes().chunks(2).map(|digits| str::from_utf8(digits).unwrap());
        check(&digits.map(|digits| u8::from_str_radix(digits, 16).unwrap()).collect::<Vec<_>>());
    }
}

#[test]
fn keys_in_forms() {
    each("form_key", |bytes| {
        form::key(bytes);
        form::fingerprint(bytes);
        multipart::any_body(bytes);
        multipart::media_type(&format!("multipart/form-data;{}", String::from_utf8_lossy(bytes)));
        multipart::sent_again(bytes);
    });
}

#[test]
fn keys_in_headers() {
    each("header_key", header::check);
}

#[test]
fn keys_in_json() {
    each("json_key", |bytes| {
        json_key::any_body(bytes);
        json_key::drawn(bytes);
    });
}

#[test]
fn keys_in_xml() {
    each("xml_key", xml::check);
}

#[test]
fn fingerprints_of_json() {
    each("json_fingerprint", |bytes| {
        json_fingerprint::by_value(bytes);
        json_fingerprint::any_body(bytes);
    });
}

#[test]
fn verbs_of_stores() {
    each("store_verbs", verbs::by_slots);
    each("database_verbs", verbs::by_statements);
}
