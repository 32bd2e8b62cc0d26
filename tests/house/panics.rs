//! Nothing panics by `unwrap` or `expect`.

use crate::{
    paths::read,
    sources::{Source, assert_none, sources},
};

#[test]
fn nothing_panics_by_unwrap_or_expect() {
    assert_none(sources().iter().flat_map(panics));
}

fn panics(file: &Source) -> Vec<String> {
    let called = read(&file.syntax).called.into_iter();
    called
        .filter(|call| call.name == "unwrap" || call.name == "expect" && file.room() != "testing")
        .map(|call| format!("src/{}:{}: `.{}(`", file.name, call.line, call.name))
        .collect()
}

#[test]
fn panics_are_found_outside_tests() {
    let text = "/// x.unwrap()\nfn f() { x.unwrap_or(1); x\n.unwrap(); g!(y.expect(\"\")); }\n\
                #[cfg(test)] mod tests { fn f() { z.unwrap() } }";
    let found = panics(&Source::new("engine/run.rs", text));
    assert_eq!(found, ["src/engine/run.rs:3: `.unwrap(`", "src/engine/run.rs:3: `.expect(`"]);
    assert_eq!(panics(&Source::new("testing/mod.rs", text)), ["src/testing/mod.rs:3: `.unwrap(`"]);
}
