//! The sources keep to the plan of the house: a room uses what stands above it, never what stands below, never its
//! neighbour.
#![allow(clippy::expect_used)]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// From top to bottom; rooms of one line are neighbours.
const ROOMS: &[&[&str]] = &[
    &["value"],
    &["store"],
    &["engine"],
    &["sql"],
    &["extract", "problem", "body", "cors"],
    &["token"],
    &["http"],
    &["layer", "consumer", "run"],
    &["preset", "reconcile", "testing"],
];

/// Families of crates that a room must not name: `http` is also `http_body`.
const FOREIGN: &[(&str, &[&str])] = &[("store", &["http", "tower"]), ("engine", &["http", "axum", "sqlx", "redis"])];

const LONGEST_FILE: usize = 400;

/// What README promises and is not there yet. Whoever builds it strikes it out.
const NOT_YET: &[&str] = &[];

#[test]
fn rooms_use_only_what_stands_above_them() {
    assert_none(sources().iter().filter(|file| file.name != "lib.rs").flat_map(steps_up));
}

#[test]
fn files_are_short() {
    assert_none(sources().iter().filter_map(|file| {
        let lines = lines_before_tests(&file.text);
        (lines > LONGEST_FILE).then(|| format!("src/{}: {lines} lines before its tests", file.name))
    }));
}

#[test]
fn nothing_panics_by_unwrap_or_expect() {
    assert_none(sources().iter().flat_map(panics));
}

#[test]
fn what_the_readme_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("README.md")).expect("README.md is readable");
    assert_none(files_named_in(&readme).into_iter().filter_map(|name| {
        // An example may be a folder.
        let folder = root.join(name.trim_end_matches(".rs")).join("main.rs");
        match (root.join(&name).is_file() || folder.is_file(), NOT_YET.contains(&&*name)) {
            (false, false) => Some(format!("README.md names {name}, which is not there")),
            (true, true) => Some(format!("{name} is there: strike it out of NOT_YET")),
            _ => None,
        }
    }));
}

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
    let lines: Vec<_> = of_room.flat_map(|file| file.text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    let calls = lines.iter().filter_map(|line| line.trim().strip_prefix("pub fn "));
    let calls = calls.filter(|call| call.contains("(self") || call.contains("(mut self"));
    calls.map(|call| call.split(['<', '(']).next().unwrap_or_default().to_owned()).collect()
}

#[track_caller]
fn assert_none(complaints: impl IntoIterator<Item = String>) {
    let complaints: Vec<_> = complaints.into_iter().collect();
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

/// A file of `src` that is no test, with its name from there on.
struct Source {
    name: String,
    text: String,
}

impl Source {
    /// `store/redis/mod.rs` is `["store", "redis"]`.
    fn module(&self) -> Vec<&str> {
        let path = self.name.trim_end_matches(".rs");
        path.strip_suffix("/mod").unwrap_or(path).split('/').collect()
    }

    fn room(&self) -> &str {
        self.module()[0]
    }
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![root.clone()];
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("src is readable") {
            let path: PathBuf = entry.expect("src is readable").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(&root).expect("it was found there").components();
                let name: Vec<_> = name.map(|part| part.as_os_str().to_string_lossy()).collect();
                if name.iter().any(|part| part == "tests") {
                    continue;
                }
                let text = fs::read_to_string(&path).expect("sources are readable");
                sources.push(Source { name: name.join("/"), text });
            }
        }
    }
    sources.sort_by(|a, b| a.name.cmp(&b.name));
    sources
}

fn steps_up(file: &Source) -> Vec<String> {
    let tokens = without_tests(&tokens(&file.text));
    let mut complaints = Vec::new();
    for found in paths(&tokens) {
        let mut module = file.module();
        module.extend(&found.inside);
        let complaint = match way_out(&module, &found.path) {
            Some(target) => objection(file.room(), target),
            None => foreigner(file.room(), &found.path),
        };
        complaints.extend(complaint.map(|why| format!("src/{}:{}: {why}", file.name, found.line)));
    }
    complaints
}

/// What `path`, written in `module`, asks for at the root of the crate, if it goes there.
fn way_out<'a>(module: &[&str], path: &[&'a str]) -> Option<&'a str> {
    let path = if path[0] == "self" { &path[1..] } else { path };
    let steps = path.iter().take_while(|name| **name == "super").count();
    match path.first() {
        Some(&"crate") => path.get(1).copied(),
        Some(&"super") if steps >= module.len() => Some(path.get(steps).copied().unwrap_or("self")),
        _ => None,
    }
}

fn objection(home: &str, target: &str) -> Option<String> {
    let floor = |room| ROOMS.iter().position(|rooms| rooms.contains(&room));
    match (floor(home), floor(target)) {
        (None, _) => Some(format!("`{home}` has no place in the table of rooms")),
        _ if home == target => None,
        (Some(here), Some(there)) if there < here => None,
        (Some(here), None) if here == ROOMS.len() - 1 => None,
        (Some(_), Some(_)) => Some(format!("`{home}` must not use `{target}`")),
        (Some(_), None) => Some(format!("`crate::{target}` does not say of which room it is")),
    }
}

fn foreigner(home: &str, path: &[&str]) -> Option<String> {
    let (_, families) = FOREIGN.iter().find(|(room, _)| *room == home)?;
    let of = |family: &&str| path[0].strip_prefix(family).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'));
    (path.len() > 1 && families.iter().any(of)).then(|| format!("`{home}` must not name `{}`", path[0]))
}

fn panics(file: &Source) -> Vec<String> {
    without_tests(&tokens(&file.text))
        .windows(3)
        .filter(|window| match [window[0].text, window[1].text, window[2].text] {
            [".", "unwrap", "("] => true,
            [".", "expect", "("] => file.room() != "testing",
            _ => false,
        })
        .map(|window| format!("src/{}:{}: `.{}(`", file.name, window[1].line, window[1].text))
        .collect()
}

fn lines_before_tests(text: &str) -> usize {
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    let tests = lines.windows(2).position(|pair| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod "));
    tests.unwrap_or(lines.len())
}

fn files_named_in(text: &str) -> Vec<String> {
    let of_a_name = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let words: Vec<_> = text.split(|c| !of_a_name(c)).map(|word| word.trim_end_matches('.')).collect();
    let named = |word: &str| match word.split_once('/') {
        Some(("scripts", name)) => !name.is_empty(),
        Some(("examples", name)) => Path::new(name).extension().is_some_and(|extension| extension == "rs"),
        _ => false,
    };
    let files = words.iter().filter(|word| named(word)).map(ToString::to_string);
    let run = words.windows(2).filter(|pair| pair[0] == "--example").map(|pair| format!("examples/{}.rs", pair[1]));
    files.chain(run).collect()
}

#[derive(Clone, Copy)]
struct Token<'a> {
    text: &'a str,
    line: usize,
}

/// Words, `::`, arrows and single signs. Comments, literals in quotes and lifetimes are left out.
fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let (mut rest, mut line) = (source, 1);
    while let Some(first) = rest.chars().next() {
        let length = blank(rest).or_else(|| quoted(rest)).unwrap_or_else(|| {
            let length = match word(rest) {
                0 if ["::", "->", "=>"].iter().any(|sign| rest.starts_with(sign)) => 2,
                0 => first.len_utf8(),
                length => length,
            };
            tokens.push(Token { text: rest[..length].trim_start_matches("r#"), line });
            length
        });
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    tokens
}

fn word(text: &str) -> usize {
    let raw = if text.starts_with("r#") { 2 } else { 0 };
    let length = text[raw..].find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len() - raw);
    if length == 0 { 0 } else { raw + length }
}

/// The length of the white space or the comment at the start of `text`.
fn blank(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if !text.starts_with("/*") {
        let length = text.len() - text.trim_start().len();
        return (length > 0).then_some(length);
    }
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        match &text.as_bytes()[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    Some(at)
}

/// The length of the string, the character or the lifetime at the start of `text`.
fn quoted(text: &str) -> Option<usize> {
    if let Some(rest) = text.strip_prefix('\'') {
        let mut chars = rest.chars();
        let (first, second) = (chars.next()?, chars.next());
        return Some(1 + if first == '\\' || second == Some('\'') { end_of_quote(rest, '\'') } else { word(rest) });
    }
    let prefix = text.len() - text.trim_start_matches(['b', 'c', 'r']).len();
    if prefix > 2 {
        return None;
    }
    let body = &text[prefix..];
    let hashes = body.len() - body.trim_start_matches('#').len();
    let inner = body[hashes..].strip_prefix('"')?;
    let start = prefix + hashes + 1;
    if text[..prefix].contains('r') {
        let end = format!("\"{}", "#".repeat(hashes));
        return Some(start + inner.find(&end).map_or(inner.len(), |at| at + end.len()));
    }
    (hashes == 0).then(|| start + end_of_quote(inner, '"'))
}

fn end_of_quote(inner: &str, quote: char) -> usize {
    let mut escaped = false;
    let end = inner.find(|c| {
        let ends = c == quote && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    end.map_or(inner.len(), |at| at + 1)
}

/// Leaves out every item that only tests are compiled with.
fn without_tests<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let mut rest = tokens;
    let mut kept = Vec::new();
    while let Some(&first) = rest.first() {
        if is_attribute(rest) && for_tests_only(&rest[..attribute(rest)]) {
            rest = &rest[item(rest)..];
        } else {
            kept.push(first);
            rest = &rest[1..];
        }
    }
    kept
}

fn is_attribute(tokens: &[Token<'_>]) -> bool {
    matches!(tokens, [hash, open, ..] if hash.text == "#" && open.text == "[")
}

fn for_tests_only(attribute: &[Token<'_>]) -> bool {
    let says = |word| attribute.iter().any(|token| token.text == word);
    attribute[2].text == "cfg" && says("test") && !says("not") && !says("any")
}

fn attribute(tokens: &[Token<'_>]) -> usize {
    tokens.iter().position(|token| token.text == "]").map_or(tokens.len(), |at| at + 1)
}

/// The length of the item at the start of `tokens`, its attributes included.
fn item(tokens: &[Token<'_>]) -> usize {
    let mut at = 0;
    while is_attribute(&tokens[at..]) {
        at += attribute(&tokens[at..]);
    }
    let mut depth = 0;
    while let Some(token) = tokens.get(at) {
        match token.text {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" if depth == 0 => return at,
            "}" | ")" | "]" => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 && matches!(token.text, "}" | ";") {
            break;
        }
    }
    at
}

struct Found<'a> {
    /// The modules of this file around it.
    inside: Vec<&'a str>,
    path: Vec<&'a str>,
    line: usize,
}

/// Every path, in `use` and anywhere else, with its groups spread out.
fn paths<'a>(tokens: &[Token<'a>]) -> Vec<Found<'a>> {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text);
    let mut found = Vec::new();
    let mut modules: Vec<(&str, usize)> = Vec::new();
    let (mut depth, mut at) = (0, 0);
    while at < tokens.len() {
        match text(at) {
            "mod" if text(at + 2) == "{" => {
                depth += 1;
                modules.push((text(at + 1), depth));
                at += 3;
            }
            "{" => (depth, at) = (depth + 1, at + 1),
            "}" => {
                modules.retain(|(_, opened)| *opened < depth);
                (depth, at) = (depth.saturating_sub(1), at + 1);
            }
            "." => at += 2,
            "::" if at > 0 && text(at - 1) == ">" => at += 2,
            name if word(name) > 0 => {
                let mut spread = Vec::new();
                at = spread_out(tokens, at, &[], &mut spread);
                let inside: Vec<_> = modules.iter().map(|(name, _)| *name).collect();
                found.extend(spread.into_iter().map(|(path, line)| Found { inside: inside.clone(), path, line }));
            }
            _ => at += 1,
        }
    }
    found
}

/// Reads the path, or the group of paths, at `at`; gives where it ends.
fn spread_out<'a>(
    tokens: &[Token<'a>],
    mut at: usize,
    before: &[&'a str],
    found: &mut Vec<(Vec<&'a str>, usize)>,
) -> usize {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text);
    if text(at) == "{" {
        at += 1;
        while !matches!(text(at), "}" | "") {
            at = match text(at) {
                "," => at + 1,
                "as" => at + 2,
                _ => spread_out(tokens, at, before, found),
            };
        }
        return at + 1;
    }
    let path = [before, &[text(at)]].concat();
    let next = text(at + 2);
    if text(at + 1) == "::" && (word(next) > 0 || matches!(next, "{" | "*")) {
        return spread_out(tokens, at + 2, &path, found);
    }
    found.push((path, tokens[at].line));
    at + 1
}

mod finder {
    use super::*;

    fn file(name: &str, text: &str) -> Source {
        Source { name: name.into(), text: text.into() }
    }

    #[track_caller]
    fn objects(name: &str, text: &str, to: &str) {
        let complaints = steps_up(&file(name, text));
        assert!(complaints.iter().any(|complaint| complaint.contains(to)), "{text}: {complaints:?}");
    }

    #[track_caller]
    fn agrees(name: &str, text: &str) {
        assert_eq!(steps_up(&file(name, text)), Vec::<String>::new(), "{text}");
    }

    #[test]
    fn a_step_up_is_found() {
        objects("store/memory.rs", "use crate::engine::Run;", "src/store/memory.rs:1: `store` must not use `engine`");
        objects("engine.rs", "\nfn f() -> crate::http::Answer {}", "engine.rs:2: `engine` must not use `http`");
        objects("value/key.rs", "impl crate::store::Store for X {}", "`store`");
        objects("http/mod.rs", "pub(crate) use crate::preset::alipay as a;", "`preset`");
        objects("engine.rs", "fn f(x: Vec<crate::http::A>) {}", "`http`");
        objects("store/mod.rs", "macro_rules! m { () => { $crate::engine::run() } }", "`engine`");
    }

    #[test]
    fn so_is_a_neighbour() {
        objects("problem.rs", "use crate::body::Collected;", "`problem` must not use `body`");
        objects("consumer/layer.rs", "use crate::run::Future;", "`run`");
        objects("preset/api.rs", "use crate::reconcile::list;", "`reconcile`");
    }

    #[test]
    fn groups_are_spread_out() {
        objects("engine.rs", "use crate::{value::{Claim, RecordKey}, store::Store, body as b, http};", "`http`");
        objects("engine.rs", "use {std::fmt, crate::{value::Claim, problem::{self, render}}};", "`problem`");
        agrees("engine.rs", "use crate::{value::{Claim, http}, store::{Store, body}};");
    }

    #[test]
    fn super_that_leaves_the_room_is_found() {
        objects("engine.rs", "use super::http::Answer;", "`http`");
        objects("store/redis/verb.rs", "use super::super::super::engine::Run;", "`engine`");
        objects("store/mod.rs", "use self::super::{value::Claim, engine};", "`engine`");
        objects("store/mod.rs", "mod sealed { use super::super::engine; }", "`engine`");
        objects("store/mod.rs", "mod sealed { mod a {} } use super::engine::A;", "`engine`");
        objects("engine.rs", "use super::*;", "`crate::*`");
        agrees("store/redis/verb.rs", "use super::super::engine::Run;");
        agrees("store/mod.rs", "mod sealed { use super::engine; }");
    }

    #[test]
    fn the_root_is_for_leaves() {
        objects("engine.rs", "use crate::RecordKey;", "`crate::RecordKey`");
        objects("engine.rs", "use crate::*;", "`crate::*`");
        agrees("testing/clock.rs", "use crate::{RecordKey, store::Store};");
        agrees("preset/x.rs", "use tower_idempotency::RecordKey;");
    }

    #[test]
    fn a_room_without_a_place_is_found() {
        objects("attic.rs", "use crate::value::Claim;", "`attic`");
    }

    #[test]
    fn foreign_crates_are_found() {
        objects("store/memory.rs", "use http::StatusCode;", "`http`");
        objects("store/memory.rs", "use {std::fmt, tower_layer::Layer};", "`tower_layer`");
        objects("engine.rs", "fn f() -> ::http_body::Frame<B> {}", "`http_body`");
        objects("engine.rs", "let x = redis::cmd();", "`redis`");
        agrees("store/redis/mod.rs", "use redis::Script; let http = tower.http; x.http::<u8>();");
        agrees("engine.rs", "use httpdate::now; let x = <T>::http::y;");
        agrees("exchange.rs", "use http::StatusCode;");
    }

    #[test]
    fn comments_literals_and_tests_do_not_count() {
        agrees("engine.rs", "//! [`x`](crate::exchange)\n/* a /* b */ crate::exchange */ /// crate::body::B\n");
        agrees("engine.rs", r##"let x = ["crate::body", r#"" crate::body"#, b"\" crate::body", '"', '\'', '\\'];"##);
        agrees(
            "engine.rs",
            "#[cfg(test)]\nmod tests { use crate::testing::Clock; fn f() { {} } }\nuse crate::value::A;",
        );
        agrees("engine.rs", "#[cfg(all(test, feature = \"x\"))] #[allow(dead_code)] use crate::testing::{A, B};");
        objects("engine.rs", "#[cfg(test)] mod tests;\nfn f<'a>(x: &'a str) { crate::body::f('\"') }", "engine.rs:2:");
        objects("engine.rs", "#[cfg(not(test))] use crate::body::B;", "`body`");
        objects("engine.rs", "#[cfg(any(test, unix))] use crate::body::B;", "`body`");
        objects("engine.rs", "let r#type = 1; let y = \"\"; use crate::r#body::B;", "`body`");
    }

    #[test]
    fn panics_are_found_outside_tests() {
        let text = "/// x.unwrap()\nfn f() { x.unwrap_or(1); x\n.unwrap(); y.expect(\"\"); }\n#[cfg(test)] mod tests { z.unwrap() }";
        assert_eq!(panics(&file("engine.rs", text)), ["src/engine.rs:3: `.unwrap(`", "src/engine.rs:3: `.expect(`"]);
        assert_eq!(panics(&file("testing/mod.rs", text)), ["src/testing/mod.rs:3: `.unwrap(`"]);
    }

    #[test]
    fn tests_do_not_count_as_length() {
        assert_eq!(lines_before_tests("a\n#[cfg(test)]\nuse x;\n\n#[cfg(test)]\nmod tests {\n}\n"), 4);
        assert_eq!(lines_before_tests("a\nb\n"), 2);
    }

    #[test]
    fn files_in_prose_and_in_commands_are_found() {
        let text = "Run `cargo run --example quickstart`, then scripts/test. See [this](examples/a-b.rs); examples/ is a folder.";
        assert_eq!(files_named_in(text), ["scripts/test", "examples/a-b.rs", "examples/quickstart.rs"]);
    }
}
