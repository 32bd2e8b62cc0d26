//! No files of a room use each other in a circle, as far as their `use` lines show it.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    known::CIRCLES,
    modules::{Modules, absolute},
    paths::{Import, read},
    sources::{Source, assert_known, sources},
};

#[test]
fn files_do_not_use_each_other_in_a_circle() {
    assert_known(&circles(&sources()), CIRCLES, "CIRCLES");
}

type Uses<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

fn circles(sources: &[Source]) -> Vec<String> {
    let uses = uses(sources);
    let reach: BTreeMap<_, _> = uses.keys().map(|file| (*file, reachable(&uses, file))).collect();
    let mut circles = BTreeSet::new();
    for (file, reached) in &reach {
        let around: Vec<_> = reached.iter().filter(|other| reach[*other].contains(file)).copied().collect();
        if !around.is_empty() {
            circles.insert(around.join(" "));
        }
    }
    circles.into_iter().collect()
}

/// All that a file comes to; itself only in a circle.
fn reachable<'a>(uses: &Uses<'a>, file: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<_> = uses[file].iter().copied().collect();
    while let Some(next) = open.pop() {
        if reached.insert(next) {
            open.extend(&uses[next]);
        }
    }
    reached
}

/// The files of its own room that each file imports something from, behind whatever hands it on.
fn uses(sources: &[Source]) -> Uses<'_> {
    let modules = Modules::of(sources);
    let files: BTreeMap<Vec<&str>, &str> = sources.iter().map(|file| (file.module(), &*file.name)).collect();
    let mut uses: Uses<'_> = sources.iter().map(|file| (&*file.name, BTreeSet::new())).collect();
    for file in sources.iter().filter(|file| file.name != "lib.rs") {
        for found in read(&file.syntax).found.into_iter().filter(|found| found.import == Some(Import::Private)) {
            let mut module: Vec<_> = file.module().into_iter().map(str::to_owned).collect();
            module.extend(found.inside);
            let Some(home) = modules.home(&absolute(&module, &found.path)) else { continue };
            // The file that an inline module is in.
            let home: Vec<_> = home.iter().map(String::as_str).collect();
            let of = (1..=home.len()).rev().find_map(|length| files.get(&home[..length]));
            let Some(other) = of.filter(|other| **other != file.name && home[0] == file.room()) else { continue };
            uses.entry(&file.name).or_default().insert(other);
        }
    }
    uses
}

#[test]
fn circles_are_found_behind_what_hands_on() {
    let sources = [
        Source::new("lib.rs", "mod store;"),
        Source::new("store/mod.rs", "mod a; mod b; mod c; pub(crate) use self::{a::A, b::B};"),
        Source::new("store/a.rs", "use super::B; pub(crate) struct A;"),
        Source::new("store/b.rs", "use super::{A, c::C}; pub(crate) struct B;"),
        Source::new("store/c.rs", "use std::fmt; pub(crate) struct C;"),
    ];
    assert_eq!(circles(&sources), ["store/a.rs store/b.rs"]);
}
