//! Leaves use what users of the crate can use.

use crate::{
    known::HIDDEN,
    modules::{Modules, absolute},
    paths::read,
    rooms::is_leaf,
    sources::{Source, assert_known, sources},
};

#[test]
fn leaves_use_the_public_api() {
    let sources = sources();
    let modules = Modules::of(&sources);
    let mut hidden: Vec<_> =
        sources.iter().filter(|file| is_leaf(file.room())).flat_map(|file| hidden(file, &modules)).collect();
    hidden.sort();
    hidden.dedup();
    assert_known(&hidden, HIDDEN, "HIDDEN");
}

fn hidden(file: &Source, modules: &Modules) -> Vec<String> {
    let mut hidden = Vec::new();
    for found in read(&file.syntax).found {
        let mut module: Vec<_> = file.module().into_iter().map(str::to_owned).collect();
        module.extend(found.inside);
        let path = absolute(&module, &found.path);
        let elsewhere = path.first().is_some_and(|room| room != "::" && room != file.room());
        if elsewhere && !modules.is_public(&path) {
            hidden.push(format!("{}: crate::{}", file.name, path.join("::")));
        }
    }
    hidden
}

#[test]
fn what_is_handed_on_is_public() {
    let sources = [
        Source::new("lib.rs", "mod value; pub mod store; mod engine; pub use self::value::{Claim, key};"),
        Source::new("value/mod.rs", "pub mod key; pub struct Claim; pub struct Hidden; pub(crate) struct Own;"),
        Source::new("value/key.rs", "pub fn json() {}"),
        Source::new("store/mod.rs", "pub use crate::value::*; pub(crate) use crate::engine::Run; pub trait Store {}"),
        Source::new("engine/mod.rs", "pub struct Run;"),
    ];
    let modules = Modules::of(&sources);
    let is_public = |path: &str| {
        let path: Vec<_> = path.split("::").map(str::to_owned).collect();
        modules.is_public(&path)
    };
    for path in ["Claim", "key::json", "store::Store", "store::Hidden", "store::key::json", "store::Store::claim"] {
        assert!(is_public(path), "{path}");
    }
    for path in ["value::Claim", "store::Run", "engine::Run", "store::Own", "key::other", "Run"] {
        assert!(!is_public(path), "{path}");
    }
}
