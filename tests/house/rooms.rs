//! Which room uses which.

use crate::{
    known::EXCEPTIONS,
    paths::read,
    sources::{Source, assert_known, assert_none, sources},
};

/// From top to bottom, what each room may use. A leaf may use what is public.
const ROOMS: &[(&str, May)] = &[
    ("value", May::Use(&[])),
    ("store", May::Use(&["value"])),
    ("engine", May::Use(&["value", "store"])),
    ("sql", May::Use(&["value", "store", "engine"])),
    ("builder", May::Use(&["value", "engine"])),
    ("extract", May::Use(&["value"])),
    ("body", May::Use(&["value"])),
    ("problem", May::Use(&["value"])),
    ("cors", May::Use(&[])),
    ("token", May::Use(&["value", "store", "extract"])),
    ("http", May::Use(&["value", "store", "engine", "sql", "extract", "body", "problem", "cors", "token"])),
    (
        "layer",
        May::Use(&[
            "value", "store", "engine", "builder", "sql", "extract", "body", "problem", "cors", "token", "http",
        ]),
    ),
    ("consumer", May::Use(&["value", "store", "engine", "builder", "sql"])),
    ("run", May::Use(&["value", "store", "engine", "builder", "sql"])),
    ("preset", May::UsePublic),
    ("reconcile", May::UsePublic),
    ("metrics", May::UsePublic),
    ("testing", May::UsePublic),
    ("guide", May::UsePublic),
];

pub(crate) enum May {
    Use(&'static [&'static str]),
    UsePublic,
}

/// What `sql` takes from the engine: the operation, which carries the transaction.
const HOOKS_OF_THE_ENGINE: &[&str] = &["Operation"];

/// Families of crates, and the rooms that must not name them: `http` is also `http_body`.
const FOREIGN: &[(&str, &[&str])] = &[
    ("http", &["store", "engine", "sql", "consumer", "run"]),
    ("tower", &["value", "store", "engine", "sql", "run"]),
    ("axum", &["value", "store", "engine", "body", "problem", "cors", "token", "consumer", "run"]),
    ("sqlx", &["value", "store", "engine", "extract", "body", "problem", "cors", "token", "http", "consumer", "run"]),
    ("redis", &["value", "engine", "sql", "extract", "body", "problem", "cors", "token", "http", "consumer", "run"]),
];

#[test]
fn rooms_use_only_what_stands_above_them() {
    let steps: Vec<_> = sources().iter().filter(|file| file.name != "lib.rs").flat_map(steps).collect();
    let mut named: Vec<_> = steps.iter().map(|(_, step)| step.clone()).collect();
    named.sort();
    named.dedup();
    for (place, step) in &steps {
        println!("{place}: {step}");
    }
    let known: Vec<_> = EXCEPTIONS.iter().map(|(step, _)| *step).collect();
    assert_known(&named, &known, "EXCEPTIONS");
}

#[test]
fn each_room_has_a_place() {
    let rooms: Vec<_> = ROOMS.iter().map(|(room, _)| *room).collect();
    let sources = sources();
    let homeless = sources.iter().filter(|file| file.name != "lib.rs" && !rooms.contains(&file.room()));
    assert_none(homeless.map(|file| format!("src/{} is in no room of the table", file.name)));
    let empty = rooms.iter().filter(|room| !sources.iter().any(|file| file.room() == **room));
    assert_none(empty.map(|room| format!("there is no `{room}`")));
}

pub(crate) fn is_leaf(room: &str) -> bool {
    ROOMS.iter().any(|(name, may)| *name == room && matches!(may, May::UsePublic))
}

/// What a file must not use: the line, and the step.
fn steps(file: &Source) -> Vec<(String, String)> {
    let home = file.room();
    let mut steps = Vec::new();
    for found in read(&file.syntax).found {
        let mut module: Vec<_> = file.module().into_iter().map(str::to_owned).collect();
        module.extend(found.inside);
        let step = match way_out(&module, &found.path) {
            Some(target) => objection(home, target, &found.path),
            None => foreigner(home, &found.path[0]),
        };
        steps.extend(step.map(|step| (format!("src/{}:{}", file.name, found.line), format!("{}: {step}", file.name))));
    }
    steps
}

/// What `path`, written in `module`, asks for at the root of the crate, if it goes there.
pub(crate) fn way_out<'a>(module: &[String], path: &'a [String]) -> Option<&'a str> {
    let path = if path[0] == "self" { &path[1..] } else { path };
    let supers = path.iter().take_while(|name| *name == "super").count();
    match path.first().map(String::as_str) {
        Some("crate") => path.get(1).map(String::as_str),
        Some("super") if supers >= module.len() => Some(path.get(supers).map_or("self", String::as_str)),
        _ => None,
    }
}

fn objection(home: &str, target: &str, path: &[String]) -> Option<String> {
    let known = ROOMS.iter().any(|(room, _)| *room == target);
    match ROOMS.iter().find(|(room, _)| *room == home) {
        _ if home == target => None,
        Some((_, May::Use(rooms))) if rooms.contains(&target) => {
            let hook = path.last().map(String::as_str).unwrap_or_default();
            let hidden = home == "sql" && target == "engine" && !HOOKS_OF_THE_ENGINE.contains(&hook);
            hidden.then(|| format!("`{hook}` of the engine is no hook for transactions"))
        }
        // See `leaves`.
        Some((_, May::UsePublic)) => None,
        Some((_, May::Use(_))) if known => Some(format!("`{}`", path.join("::"))),
        Some((_, May::Use(_))) => Some(format!("`{}` does not say of which room it is", path.join("::"))),
        None => Some("no place in the table of rooms".into()),
    }
}

fn foreigner(home: &str, name: &str) -> Option<String> {
    let of = |family: &&str| name.strip_prefix(family).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'));
    let banned = FOREIGN.iter().any(|(family, rooms)| of(family) && rooms.contains(&home));
    banned.then(|| format!("names the crate `{name}`"))
}

mod finder {
    use super::*;

    #[track_caller]
    fn objects(name: &str, text: &str, to: &str) {
        let found: Vec<_> =
            steps(&Source::new(name, text)).into_iter().map(|(place, step)| format!("{place}: {step}")).collect();
        assert!(found.iter().any(|step| step.contains(to)), "{text}: {found:?}");
    }

    #[track_caller]
    fn agrees(name: &str, text: &str) {
        assert_eq!(steps(&Source::new(name, text)), Vec::new(), "{text}");
    }

    #[test]
    fn a_step_up_is_found() {
        objects(
            "store/memory.rs",
            "use crate::engine::Run;",
            "src/store/memory.rs:1: store/memory.rs: `crate::engine::Run`",
        );
        objects(
            "engine/run.rs",
            "\nfn f() -> crate::http::Answer {}",
            "engine/run.rs:2: engine/run.rs: `crate::http::Answer`",
        );
        objects("value/key.rs", "impl crate::store::Store for X {}", "`crate::store::Store`");
        objects("http/mod.rs", "pub(crate) use crate::preset::alipay as a;", "`crate::preset::alipay`");
        objects("engine/run.rs", "fn f(x: Vec<crate::http::A>) {}", "`crate::http::A`");
        objects("store/mod.rs", "macro_rules! m { () => { $crate::engine::run() } }", "`crate::engine::run`");
        objects("store/mod.rs", "fn f() { vec![crate::engine::{run, stop}] }", "`crate::engine::stop`");
    }

    #[test]
    fn so_is_a_neighbour() {
        objects("problem.rs", "use crate::body::Collected;", "`crate::body::Collected`");
        objects("consumer/layer.rs", "use crate::layer::Future;", "`crate::layer::Future`");
        objects("run/once.rs", "use crate::http::Answer;", "`crate::http::Answer`");
    }

    #[test]
    fn groups_are_spread_out() {
        let text = "use crate::{value::{Claim, RecordKey}, store::Store, body as b, http};";
        objects("engine/run.rs", text, "`crate::http`");
        let text = "use {std::fmt, crate::{value::Claim, problem::{self, render}}};";
        objects("engine/run.rs", text, "`crate::problem::render`");
        agrees("engine/run.rs", "use crate::{value::{Claim, http}, store::{Store, body}};");
    }

    #[test]
    fn super_that_leaves_the_room_is_found() {
        objects("engine/mod.rs", "use super::http::Answer;", "`super::http::Answer`");
        objects("store/redis/verb.rs", "use super::super::super::engine::Run;", "engine::Run`");
        objects("store/mod.rs", "use self::super::{value::Claim, engine};", "engine`");
        objects("store/mod.rs", "mod sealed { use super::super::engine; }", "engine`");
        objects("store/mod.rs", "mod sealed { mod a {} } use super::engine::A;", "engine::A`");
        objects("engine/mod.rs", "use super::*;", "does not say of which room it is");
        agrees("store/redis/verb.rs", "use super::super::engine::Run;");
        agrees("store/mod.rs", "mod sealed { use super::engine; }");
    }

    #[test]
    fn the_root_is_for_leaves() {
        objects("engine/run.rs", "use crate::RecordKey;", "does not say of which room it is");
        agrees("testing/clock.rs", "use crate::{RecordKey, store::Store};");
    }

    #[test]
    fn foreign_crates_are_found() {
        objects("store/memory.rs", "use http::StatusCode;", "`http`");
        objects("store/memory.rs", "use {std::fmt, tower_layer::Layer};", "`tower_layer`");
        objects("engine/run.rs", "fn f() -> ::http_body::Frame<B> {}", "`http_body`");
        objects("engine/run.rs", "fn f() { let x = redis::cmd(); }", "`redis`");
        agrees("store/redis/mod.rs", "use redis::Script; fn f() { let http = tower.http; x.http::<u8>(); }");
        agrees("engine/run.rs", "use httpdate::now; fn f() { let x = <T>::http::y; }");
        agrees("http/run.rs", "use http::StatusCode;");
    }

    #[test]
    fn comments_literals_and_tests_do_not_count() {
        agrees("engine/run.rs", "//! [`x`](crate::http)\n/* crate::http */\n/// crate::body::B\nfn f() {}");
        agrees("engine/run.rs", "fn f() { let x = [\"crate::body\", '\"']; }");
        agrees("engine/run.rs", "#[cfg(test)]\nmod tests { use crate::testing::Clock; }\nuse crate::value::A;");
        agrees("engine/run.rs", "#[cfg(all(test, feature = \"x\"))] #[allow(dead_code)] use crate::testing::{A, B};");
        objects("engine/run.rs", "#[cfg(test)] mod tests;\nfn f<'a>(x: &'a str) { crate::body::f('\"') }", "run.rs:2:");
        objects("engine/run.rs", "#[cfg(not(test))] use crate::body::B;", "`crate::body::B`");
        objects("engine/run.rs", "#[cfg(any(test, unix))] use crate::body::B;", "`crate::body::B`");
    }
}
