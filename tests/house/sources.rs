//! The sources, as the compiler reads them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use syn::{Attribute, Item};

/// A file of `src` that is not a test, with its name from there on.
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) syntax: syn::File,
}

impl Source {
    pub(crate) fn new(name: &str, text: &str) -> Self {
        let syntax = syn::parse_file(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        Self { name: name.into(), text: text.into(), syntax }
    }

    /// `store/redis/mod.rs` is `["store", "redis"]`, and `lib.rs` is the root.
    pub(crate) fn module(&self) -> Vec<&str> {
        let path = self.name.trim_end_matches(".rs");
        let path = path.strip_suffix("/mod").unwrap_or(path);
        if path == "lib" { Vec::new() } else { path.split('/').collect() }
    }

    pub(crate) fn room(&self) -> &str {
        self.module().first().copied().unwrap_or("lib")
    }
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn sources() -> Vec<Source> {
    let src = root().join("src");
    let mut sources: Vec<_> = files(&src)
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| {
            let name = path.strip_prefix(&src).expect("it was found there").to_string_lossy().into_owned();
            (name, path)
        })
        .filter(|(name, _)| !name.split('/').any(|part| part == "tests" || part == "tests.rs"))
        .map(|(name, path)| Source::new(&name, &fs::read_to_string(path).expect("sources are readable")))
        .collect();
    sources.sort_by(|a, b| a.name.cmp(&b.name));
    sources
}

/// All files below a folder.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder is readable") {
            let path = entry.expect("a folder is readable").path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files
}

#[track_caller]
pub(crate) fn assert_none(complaints: impl IntoIterator<Item = String>) {
    let complaints: Vec<_> = complaints.into_iter().collect();
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

/// Compares what was found with what is known: what is new is a fault, and what has gone is struck out of the list.
#[track_caller]
pub(crate) fn assert_known(found: &[String], known: &[&str], list: &str) {
    let new = found.iter().filter(|found| !known.contains(&found.as_str())).map(|found| format!("new: {found}"));
    let gone = known.iter().filter(|known| !found.iter().any(|found| found == *known));
    assert_none(new.chain(gone.map(|known| format!("gone, so strike it out of {list}: {known}"))));
}

/// Whether an item is compiled with tests only.
pub(crate) fn is_for_tests(item: &Item) -> bool {
    attributes(item).iter().any(is_test_attribute)
}

pub(crate) fn is_test_attribute(attribute: &Attribute) -> bool {
    let syn::Meta::List(list) = &attribute.meta else { return attribute.path().is_ident("test") };
    if !attribute.path().is_ident("cfg") {
        return false;
    }
    let text = list.tokens.to_string();
    let says = |word: &str| text.split(|c: char| !c.is_alphanumeric()).any(|found| found == word);
    says("test") && !says("not") && !says("any")
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
