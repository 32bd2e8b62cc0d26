//! The page as HTML.

use std::fmt::Write;

use axum::{
    body::Bytes,
    http::{HeaderValue, Response, header},
    response::Html,
};
use tower_idempotency::{Refusal, token::Token};

use crate::{
    shop::{Guard, Order, Placed, Shop},
    words::{Told, Words},
};

/// All four forms.
pub(crate) fn front(words: &Words, shop: &Shop, token: &Token, key: &str, placed: Placed) -> Html<String> {
    let mut cards = String::new();
    for guard in Guard::ALL {
        let action = match guard {
            Guard::Key => format!("/{}/key?key={key}", words.code),
            _ => format!("/{}/{}", words.code, guard.name()),
        };
        let notice = placed.number.filter(|_| placed.form == Some(guard)).map(|number| words.placed(number));
        let form = Form {
            guard,
            action: &action,
            token: Some(token.as_str()).filter(|_| guard == Guard::Token),
            life: token.lifetime().as_secs(),
            item: "tea",
            amount: "1",
            error: None,
        };
        let counts = shop.counts(guard);
        let counts = format!(
            r#"<dl class="counts" data-counts="{}"><div><dt>{}</dt><dd data-sent>{}</dd></div><div><dt>{}</dt><dd data-orders>{}</dd></div></dl>"#,
            guard.name(),
            words.sent,
            counts.sent,
            words.orders,
            counts.orders,
        );
        cards += &card(words, &form, notice.as_deref(), &counts);
    }
    let body = format!(
        r#"<p class="lead">{}</p><div class="cards">{cards}</div><p class="note">{}</p><script src="/token.js"></script><script src="/counts.js"></script>"#,
        words.lead, words.note
    );
    html(words, words.title, &body)
}

/// One form again, with what is wrong with it, and with the token that it came with.
pub(crate) fn correction(words: &Words, guard: Guard, action: &str, order: &Order) -> Html<String> {
    let form = Form {
        guard,
        action,
        token: order.token.as_deref(),
        life: 0,
        item: &order.item,
        amount: &order.amount,
        error: Some(words.wrong_amount),
    };
    html(
        words,
        words.title,
        &format!(r#"<div class="cards one">{}</div>{}"#, card(words, &form, None, ""), again(words)),
    )
}

/// What the layers say, for people.
pub(crate) fn refusal(words: &Words, refusal: &Refusal) -> Response<Bytes> {
    let Told(heading, text) = words.told(refusal);
    let body = format!(r#"<div class="told" role="alert"><h2>{heading}</h2><p>{text}</p></div>{}"#, again(words));
    let Html(page) = html(words, heading, &body);
    let mut response = Response::new(Bytes::from(page));
    *response.status_mut() = refusal.status();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

struct Form<'a> {
    guard: Guard,
    action: &'a str,
    token: Option<&'a str>,
    /// How long the token is good, in seconds.
    life: u64,
    item: &'a str,
    amount: &'a str,
    error: Option<&'a str>,
}

fn card(words: &Words, form: &Form<'_>, notice: Option<&str>, counts: &str) -> String {
    let (name, about) = (form.guard.name(), words.guarded(form.guard));
    let mut items = String::new();
    for (value, item) in words.items {
        let selected = if value == form.item { " selected" } else { "" };
        let _ = write!(items, r#"<option value="{value}"{selected}>{item}</option>"#);
    }
    let token = form.token.map_or_else(String::new, |token| {
        let (token, code, life) = (escaped(token), words.code, form.life);
        format!(
            r#"<input type="hidden" name="_token" value="{token}" data-from="/{code}/token/new" data-life="{life}">"#
        )
    });
    let (invalid, error) = match form.error {
        Some(error) => (
            format!(r#" aria-invalid="true" aria-describedby="{name}-error" autofocus"#),
            format!(r#"<p class="error" id="{name}-error">{error}</p>"#),
        ),
        None => Default::default(),
    };
    let once = if matches!(form.guard, Guard::Token | Guard::Key) { " data-once" } else { "" };
    let notice = notice.map_or_else(String::new, |notice| format!(r#"<p class="notice" role="status">{notice}</p>"#));
    format!(
        r#"<section class="card" id="{name}" aria-labelledby="{name}-title">
<h2 id="{name}-title">{title}</h2>
<p>{text}</p>
<form id="{name}-form" method="post" action="{action}"{once}>{token}
<div class="fields">
<div><label for="{name}-item">{item_label}</label><select id="{name}-item" name="item">{items}</select></div>
<div><label for="{name}-amount">{amount_label}</label><input id="{name}-amount" name="amount" inputmode="numeric" autocomplete="off" maxlength="3" value="{amount}"{invalid}></div>
</div>{error}
<button>{submit}</button>
</form>{notice}{counts}
</section>"#,
        title = about.title,
        text = about.text,
        action = escaped(form.action),
        item_label = words.item,
        amount_label = words.amount,
        amount = escaped(form.amount),
        submit = words.submit,
    )
}

fn again(words: &Words) -> String {
    format!(r#"<p class="again"><a href="/{}">{}</a></p>"#, words.code, words.again)
}

fn html(words: &Words, title: &str, body: &str) -> Html<String> {
    let Words { tag, other_tag, other_code, other_language, title: name, .. } = words;
    Html(format!(
        r#"<!doctype html>
<html lang="{tag}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/page.css">
</head>
<body>
<header><h1>{name}</h1><a class="language" href="/{other_code}" hreflang="{other_tag}" lang="{other_tag}">{other_language}</a></header>
<main>{body}</main>
</body>
</html>
"#
    ))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}
