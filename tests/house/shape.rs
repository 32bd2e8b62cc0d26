//! Files and folders are short, folders say what they are for, and a name stands for one type.

use std::collections::{BTreeMap, BTreeSet};

use syn::{
    Attribute, Item,
    visit::{self, Visit},
};

use crate::{
    known::{FULL_FOLDERS, LONG_FILES, SHARED_NAMES, SILENT_FOLDERS},
    sources::{Source, assert_known, is_for_tests, sources},
};

const LONGEST_FILE: usize = 300;
const LARGEST_FOLDER: usize = 15;

#[test]
fn files_are_short() {
    let sources = sources();
    let long = sources.iter().filter(|file| lines_before_tests(&file.text) > LONGEST_FILE);
    let long: Vec<_> = long.map(|file| file.name.clone()).collect();
    assert_known(&long, LONG_FILES, "LONG_FILES");
}

#[test]
fn folders_are_small() {
    let sources = sources();
    let mut folders = BTreeMap::<_, usize>::new();
    for file in &sources {
        let folder = file.name.rsplit_once('/').map_or("", |(folder, _)| folder);
        *folders.entry(folder).or_default() += 1;
    }
    let full = folders.iter().filter(|(_, count)| **count > LARGEST_FOLDER);
    let full: Vec<_> = full.map(|(folder, _)| (*folder).to_owned()).collect();
    assert_known(&full, FULL_FOLDERS, "FULL_FOLDERS");
}

#[test]
fn folders_say_what_they_are_for() {
    let silent = sources().into_iter().filter(|file| file.name.ends_with("mod.rs") && !file.text.starts_with("//!"));
    let silent: Vec<_> = silent.map(|file| file.name).collect();
    assert_known(&silent, SILENT_FOLDERS, "SILENT_FOLDERS");
}

#[test]
fn modules_are_in_the_files_of_their_names() {
    struct Attributes(bool);

    impl Visit<'_> for Attributes {
        fn visit_attribute(&mut self, attribute: &Attribute) {
            self.0 |= attribute.path().is_ident("path");
            visit::visit_attribute(self, attribute);
        }
    }

    let moved = sources().into_iter().filter(|file| {
        let mut found = Attributes(false);
        found.visit_file(&file.syntax);
        found.0
    });
    assert_known(&moved.map(|file| file.name).collect::<Vec<_>>(), &[], "this list");
}

#[test]
fn a_name_stands_for_one_type() {
    assert_known(&shared_names(&sources()), SHARED_NAMES, "SHARED_NAMES");
}

fn shared_names(sources: &[Source]) -> Vec<String> {
    let mut places = BTreeMap::<String, BTreeSet<&str>>::new();
    // If a feature is off, a type of the same name stands in.
    for file in sources.iter().filter(|file| !file.name.ends_with("/absent.rs")) {
        for name in types(&file.syntax.items) {
            places.entry(name).or_default().insert(&file.name);
        }
    }
    places.retain(|_, places| places.len() > 1);
    for (name, places) in &places {
        println!("{name}: {}", places.iter().copied().collect::<Vec<_>>().join(" "));
    }
    places.into_iter().map(|(name, places)| format!("{name}: {} files", places.len())).collect()
}

/// The types that a file defines, those of its modules too.
fn types(items: &[Item]) -> Vec<String> {
    let mut types = Vec::new();
    for item in items.iter().filter(|item| !is_for_tests(item)) {
        match item {
            Item::Enum(item) => types.push(item.ident.to_string()),
            Item::Struct(item) => types.push(item.ident.to_string()),
            Item::Trait(item) => types.push(item.ident.to_string()),
            Item::Type(item) => types.push(item.ident.to_string()),
            Item::Union(item) => types.push(item.ident.to_string()),
            Item::Mod(item) => types.extend(item.content.iter().flat_map(|(_, items)| self::types(items))),
            _ => {}
        }
    }
    types
}

fn lines_before_tests(text: &str) -> usize {
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    let tests = lines.windows(2).position(|pair| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod "));
    tests.unwrap_or(lines.len())
}

#[test]
fn tests_do_not_count_as_length() {
    assert_eq!(lines_before_tests("a\n#[cfg(test)]\nuse x;\n\n#[cfg(test)]\nmod tests {\n}\n"), 4);
    assert_eq!(lines_before_tests("a\nb\n"), 2);
}

#[test]
fn names_of_tests_do_not_count() {
    let here = Source::new("a.rs", "struct A; mod inner { enum B {} } #[cfg(test)] mod tests { struct C; }");
    let there = Source::new("b.rs", "type A = u8; trait B {} struct C;");
    assert_eq!(shared_names(&[here, there]), ["A: 2 files", "B: 2 files"]);
}
