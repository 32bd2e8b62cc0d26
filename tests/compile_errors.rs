//! The compiler says what to do about mistakes: each program of `tests/compat/compile-errors` fails with the
//! lines that it announces by `//~`.
#![allow(clippy::expect_used)]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compat/compile-errors")
}

/// What each program announces.
fn announced() -> BTreeMap<String, Vec<String>> {
    let programs = fs::read_dir(package().join("src/bin")).expect("the programs are there");
    programs
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let text = fs::read_to_string(&path).expect("a program");
            let lines = text.lines().filter_map(|line| line.strip_prefix("//~ ").map(ToOwned::to_owned)).collect();
            (path.file_stem().expect("a name").to_string_lossy().into_owned(), lines)
        })
        .collect()
}

/// What the compiler says of each program.
fn said() -> BTreeMap<String, Vec<String>> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compile-errors");
    let output = Command::new(env!("CARGO"))
        .args(["check", "--locked", "--bins", "--keep-going", "--quiet", "--message-format", "json"])
        .arg("--manifest-path")
        .arg(package().join("Cargo.toml"))
        .env("CARGO_TARGET_DIR", target)
        .output()
        .expect("cargo runs");
    let output = String::from_utf8(output.stdout).expect("text");
    let mut said = BTreeMap::<_, Vec<_>>::new();
    for line in output.lines() {
        let line: serde_json::Value = serde_json::from_str(line).expect("a message");
        let (target, message) = (&line["target"]["name"], &line["message"]);
        if message["level"] == "error" {
            let rendered = message["rendered"].as_str().expect("a text").to_owned();
            said.entry(target.as_str().expect("a name").to_owned()).or_default().push(rendered);
        }
    }
    said
}

#[test]
fn mistakes_are_explained() {
    let said = said();
    let mut silent = Vec::new();
    for (program, lines) in announced() {
        assert!(!lines.is_empty(), "{program} announces nothing");
        let errors = said.get(&program).cloned().unwrap_or_default();
        // The first one is what is read.
        let first = errors.first().cloned().unwrap_or_default();
        silent.extend(
            lines.iter().filter(|line| !first.contains(*line)).map(|line| {
                format!("{program}: the compiler does not say {line:?} first, but:\n{}", errors.join("\n"))
            }),
        );
    }
    assert!(silent.is_empty(), "\n{}\n", silent.join("\n"));
}
