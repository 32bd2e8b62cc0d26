//! Every layer has the same settings.

use std::collections::{BTreeMap, BTreeSet};

use syn::{
    Attribute, FnArg, Ident, ImplItem, Item, Macro, ReceiverKind, Token, Visibility, parse::ParseStream,
    punctuated::Punctuated,
};

use crate::sources::{assert_none, sources};

const EDGES: &[&str] = &["layer/idempotency", "layer/token", "consumer", "run"];

/// What a token says by itself, or what would let a request through that has no good one.
const NOT_OF_TOKENS: &[&str] = &[
    "preset",
    "key",
    "key_optional",
    "scope",
    "unscoped",
    "credentials",
    "route",
    "route_by_path",
    "fail_open",
    "fail_open_when_full",
    "stream_body",
];

/// What is of no use to HTTP alone.
const OF_EVERY_EDGE: &[&str] = &[
    "policy",
    "after_crash",
    "retention",
    "lease",
    "store_timeout",
    "cancel_on_disconnect",
    "background_tasks",
    "secret",
    "observer",
];

/// What requests have for answers, and messages and functions for outcomes.
const IN_OTHER_WORDS: &[(&[&str], &[&str])] = &[
    (&["layer/idempotency", "layer/token"], &["while_running", "keep"]),
    (&["consumer", "run"], &["wait", "keep_errors"]),
];

/// What has one name on several builders and is another thing on each.
const OF_THEIR_OWN: &[&str] = &["fingerprint", "scope"];

#[test]
fn what_one_layer_can_be_told_every_layer_can() {
    let of_requests = builder_calls("layer/idempotency");
    let of_tokens = builder_calls("layer/token");
    assert_none(NOT_OF_TOKENS.iter().filter_map(|call| {
        let (there, here) = (of_requests.contains(*call), of_tokens.contains(*call));
        (!there || here).then(|| format!("`{call}` is not one that tokens lack"))
    }));
    let wanted = of_requests.iter().filter(|call| !NOT_OF_TOKENS.contains(&&***call));
    assert_none(wanted.filter(|call| !of_tokens.contains(*call)).map(|call| format!("`TokenLayer` has no `{call}`")));
    for room in EDGES {
        assert_has(room, OF_EVERY_EDGE);
    }
    for (rooms, calls) in IN_OTHER_WORDS {
        rooms.iter().for_each(|room| assert_has(room, calls));
    }
}

#[track_caller]
fn assert_has(room: &str, wanted: &[&str]) {
    let calls = builder_calls(room);
    let lacks = wanted.iter().filter(|call| !calls.contains(**call));
    assert_none(lacks.map(|call| format!("`{room}` has no `{call}`")));
}

/// A setter that several builders have is written by a macro.
#[test]
fn no_setter_is_written_twice() {
    let mut written: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for room in EDGES {
        for call in written_by_hand(room) {
            written.entry(call).or_default().push(room);
        }
    }
    written.retain(|call, rooms| rooms.len() > 1 && !OF_THEIR_OWN.contains(&&**call));
    assert_none(written.into_iter().map(|(call, rooms)| format!("`{call}` is written by hand in {rooms:?}")));
}

/// The public functions of a room that take `self`, also those that macros write.
fn builder_calls(room: &str) -> BTreeSet<String> {
    let mut calls = written_by_hand(room);
    calls.extend(
        impl_items(room)
            .filter_map(|item| match item {
                ImplItem::Macro(item) if is_of_setters(&item.mac) => Some(names_in(&item.mac)),
                _ => None,
            })
            .flatten(),
    );
    calls
}

fn written_by_hand(room: &str) -> BTreeSet<String> {
    let calls = impl_items(room).filter_map(|item| match item {
        ImplItem::Fn(function) if matches!(function.vis, Visibility::Public(_)) => Some(function.sig),
        _ => None,
    });
    let by_value = |call: &syn::Signature| matches!(call.inputs.first(), Some(FnArg::Receiver(receiver)) if matches!(receiver.kind, ReceiverKind::Value));
    calls.filter(by_value).map(|call| call.ident.to_string()).collect()
}

fn impl_items(room: &str) -> impl Iterator<Item = ImplItem> {
    let of_room = sources().into_iter().filter(move |file| file.name.starts_with(room));
    let items = of_room.flat_map(|file| file.syntax.items).filter_map(|item| match item {
        Item::Impl(item) => Some(item.items),
        _ => None,
    });
    items.flatten()
}

fn is_of_setters(called: &Macro) -> bool {
    called.path.segments.last().is_some_and(|name| name.ident.to_string().ends_with("_setters"))
}

/// The names in `policy_setters! { Policy => .. }` and its like.
fn names_in(called: &Macro) -> Vec<String> {
    let name = |input: ParseStream<'_>| {
        Attribute::parse_outer(input)?;
        input.parse::<Ident>()
    };
    let names = called.parse_body_with(|input: ParseStream<'_>| {
        if input.peek2(Token![=>]) {
            input.parse::<Ident>()?;
            input.parse::<Token![=>]>()?;
        }
        Punctuated::<Ident, Token![,]>::parse_terminated_with(input, name)
    });
    names.expect("a list of setters").iter().map(ToString::to_string).collect()
}
