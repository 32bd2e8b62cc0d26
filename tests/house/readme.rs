//! What the README names is there.

use std::{fs, path::Path};

use crate::sources::{assert_none, root};

/// What README promises and is not there yet. Remove an entry when it is built.
const NOT_YET: &[&str] = &[];

#[test]
fn what_the_readme_names_exists() {
    let root = root();
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

#[test]
fn files_in_prose_and_in_commands_are_found() {
    let text =
        "Run `cargo run --example quickstart`, then scripts/test. See [this](examples/a-b.rs); examples/ is a folder.";
    assert_eq!(files_named_in(text), ["scripts/test", "examples/a-b.rs", "examples/quickstart.rs"]);
}
