//! What holds for any input: keys and fingerprints by rules, and an answer that fits it to whatever comes.

#[allow(unreachable_pub)]
mod common;
mod hostile_input;
mod rules;
mod seeds;

use proptest::{
    collection::vec,
    option::weighted,
    prelude::*,
    sample::{Index, select},
};

use rules::{form, header, json_fingerprint, json_key, multipart, verbs, xml};

/// How many cases a property is tried with, unless `PROPTEST_CASES` says so.
fn cases(cases: u32) -> ProptestConfig {
    // Nothing is written beside the sources.
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    if std::env::var_os("PROPTEST_CASES").is_some() { config } else { ProptestConfig { cases, ..config } }
}

/// What a rule makes its own choices of.
fn choices() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..400)
}

/// Some of these, one behind the other.
fn some_of(pieces: &'static [&'static str], most: usize) -> impl Strategy<Value = String> {
    vec(select(pieces), 0..=most).prop_map(|pieces| pieces.concat())
}

fn urlencoded() -> impl Strategy<Value = String> {
    some_of(&["id", "a", "=", "&", "%69d", "%", "%ff", "%c3%a9", "+", "é", "id=7", "&id=", "%26", "%3d", "%0"], 12)
}

fn multipart_body() -> impl Strategy<Value = String> {
    some_of(
        &[
            "--b0\r\nContent-Disposition: form-data; name=\"id\"\r\n\r\n7\r\n",
            "--b0\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\r\n",
            "--b0\r\nContent-Disposition: form-data; name=\"a\"; filename=\"x\"\r\nContent-Type: a/b\r\n\r\n--b\r\n",
            "--b0--\r\n",
            "--b0",
            "\r\n",
            "--",
        ],
        5,
    )
}

fn media_type() -> impl Strategy<Value = String> {
    some_of(
        &["; boundary=b", "; a=b", "; a=\"x\\\"; boundary=y\"", "; Boundary=\"c d\"", ";", " ", "; charset=utf-8"],
        4,
    )
    .prop_map(|parameters| format!("multipart/form-data{parameters}"))
}

/// Most of it is sound, so that what is not decides.
fn document() -> impl Strategy<Value = String> {
    let prolog = select(&["", "\u{feff}", "<?xml version='1.0'?>\n", "<!-- c -->", " "][..]);
    let content = some_of(&["7", "<a><id>9</id></a>", "<p:id xmlns:p='u'>7</p:id>", "<id/>", "<a b='&lt;'/>"], 2);
    let text = || some_of(&["7", "&amp;&#x37;", "<![CDATA[<a>&e;]]>", "<!-- <id> -->", "<?p <id>?>", "<b/>", "\n"], 3);
    let epilog = select(&["", "\n", "<!-- c -->"][..]);
    let outside = weighted(0.1, select(&["<!DOCTYPE r>", "x", "<r/>", "&amp;", "<![CDATA[]]>"][..]));
    let inside = || {
        let not_sound = ["&#x0;", "&e;", "<b a='&e;'/>", "]]>", "<id>", "</id>", "<?xml version='1.0'?>", "<b a=7/>"];
        weighted(0.2, select(not_sound.to_vec()))
    };
    ((prolog, outside), (content, inside()), (text(), inside(), text()), epilog).prop_map(
        |((before, outside), (content, inside), (id, in_id, more), after)| {
            let [outside, inside, in_id] = [outside, inside, in_id].map(Option::unwrap_or_default);
            format!("{before}{outside}<r>{content}{inside}<id>{id}{in_id}{more}</id></r>{after}")
        },
    )
}

/// With at most one character of it changed.
fn almost(text: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    (
        text,
        weighted(0.5, (any::<Index>(), select(&['<', '>', '&', ';', '/', '!', '?', '-', '\'', ' ', 'x', '\u{1}'][..]))),
    )
        .prop_map(|(text, change)| match change {
            Some((at, with)) if !text.is_empty() => {
                let at = at.index(text.chars().count());
                text.chars().enumerate().map(|(n, is)| if n == at { with } else { is }).collect()
            }
            _ => text,
        })
}

fn field() -> impl Strategy<Value = String> {
    let parameters = some_of(
        &[
            "; a",
            ";b=?1",
            ";c=:aGk=:",
            ";d=@-7",
            ";e=%\"f%c3%bc\"",
            ";f=-1.125",
            ";g=\"x;\\\"\"",
            ";*=a/b",
            ";h=:aG=k:",
            ";i=:a:",
            ";j=%\"%C3\"",
            ";",
            "=",
            "1",
        ],
        4,
    );
    let quoted = ("\"([ !#-\\[\\]-~]|\\\\[\"\\\\]){0,20}\"", parameters).prop_map(|(text, rest)| text + &rest);
    prop_oneof![quoted, "[ -~]{0,20}", "[\\t -~é]{0,20}"]
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn json_is_compared_by_value(choices in choices()) {
        json_fingerprint::by_value(&choices);
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn stores_answer_a_sequence_of_verbs_alike(choices in choices()) {
        verbs::by_slots(&choices);
    }

    #[test]
    fn a_database_answers_a_sequence_of_verbs_as_memory_does(choices in choices()) {
        verbs::by_statements(&choices);
    }
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn a_json_key_is_what_stands_there(choices in choices()) {
        json_key::drawn(&choices);
    }

    #[test]
    fn a_form_key_is_what_stands_there(body in urlencoded()) {
        form::key(body.as_bytes());
    }

    #[test]
    fn forms_are_compared_by_their_fields(body in urlencoded()) {
        form::fingerprint(body.as_bytes());
    }

    #[test]
    fn multipart_is_read_where_it_is_sound(body in multipart_body()) {
        multipart::any_body(body.as_bytes());
    }

    #[test]
    fn the_boundary_is_found(content_type in media_type()) {
        multipart::media_type(&content_type);
    }

    #[test]
    fn multipart_is_compared_without_its_boundary(choices in choices()) {
        multipart::sent_again(&choices);
    }

    #[test]
    fn an_xml_key_is_what_stands_there(body in almost(document())) {
        xml::check(body.as_bytes());
    }

    #[test]
    fn a_header_key_is_what_stands_there(field in field()) {
        header::check(field.as_bytes());
    }
}
