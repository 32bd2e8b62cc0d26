//! What one layer can be told, every layer can.

use std::collections::BTreeSet;

use syn::{FnArg, ImplItem, Item, ReceiverKind, Visibility};

use crate::sources::{assert_none, sources};

/// What a token says by itself, or what would let a request through that has no good one.
const NOT_OF_TOKENS: &[&str] = &[
    "preset",
    "key",
    "optional",
    "scope",
    "unscoped",
    "credentials",
    "route",
    "fail_open",
    "fail_open_when_full",
    "stream_body",
];

/// What is of no use to HTTP alone.
const OF_EVERY_EDGE: &[&str] = &[
    "policy",
    "while_running",
    "keep",
    "after_crash",
    "retention",
    "lease",
    "store_timeout",
    "cancel_on_disconnect",
    "background_tasks",
    "secret",
    "observer",
];

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
    assert_none(["layer/idempotency", "layer/token", "consumer", "run"].into_iter().flat_map(|room| {
        let calls = builder_calls(room);
        let lacks = OF_EVERY_EDGE.iter().filter(move |call| !calls.contains(**call));
        lacks.map(move |call| format!("`{room}` has no `{call}`"))
    }));
}

/// The public functions of a room that take `self`.
fn builder_calls(room: &str) -> BTreeSet<String> {
    let of_room = sources().into_iter().filter(|file| file.name.starts_with(room));
    let functions = of_room.flat_map(|file| file.syntax.items).filter_map(|item| match item {
        Item::Impl(item) => Some(item.items),
        _ => None,
    });
    let calls = functions.flatten().filter_map(|item| match item {
        ImplItem::Fn(function) if matches!(function.vis, Visibility::Public(_)) => Some(function.sig),
        _ => None,
    });
    let by_value = |call: &syn::Signature| matches!(call.inputs.first(), Some(FnArg::Receiver(receiver)) if matches!(receiver.kind, ReceiverKind::Value));
    calls.filter(by_value).map(|call| call.ident.to_string()).collect()
}
