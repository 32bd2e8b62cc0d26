//! What the manifests and the docs say of versions, and where their links lead.
#![allow(clippy::expect_used)]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Name and version of each line of `[dependencies]`.
fn dependencies(manifest: &str) -> BTreeMap<String, String> {
    let lines = manifest.lines().skip_while(|line| *line != "[dependencies]").skip(1);
    lines.take_while(|line| !line.starts_with('[')).filter_map(dependency).collect()
}

/// `tokio = "1"` or `tokio = { version = "1", .. }`.
fn dependency(line: &str) -> Option<(String, String)> {
    let (name, rest) = line.split_once(" = ")?;
    let rest = rest.trim_start_matches("{ ");
    let version = rest.strip_prefix("version = ").unwrap_or(rest).strip_prefix('"')?.split('"').next()?;
    Some((name.trim_start_matches(['#', ' ']).to_owned(), version.to_owned()))
}

/// Whether `1.2` and `1.2.0` are one version.
fn is_same(a: &str, b: &str) -> bool {
    let padded = |version: &str| {
        let mut parts: Vec<u64> = version.split('.').map(|part| part.parse().expect("a number")).collect();
        parts.resize(3, 0);
        parts
    };
    padded(a) == padded(b)
}

#[test]
fn the_lowest_versions_are_those_that_are_checked() {
    let ours = dependencies(&read("Cargo.toml"));
    let checked = dependencies(&read("tests/compat/minimum-versions/Cargo.toml"));
    for (name, version) in checked.iter().filter(|(name, _)| *name != "tower-idempotency") {
        let lowest = version.strip_prefix('=').expect("an exact version");
        // For those that say `1` any version will do: a lower one than this does not fit the others.
        if ours[name] != "1" {
            assert!(is_same(&ours[name], lowest), "{name}: {} in Cargo.toml, {lowest} is checked", ours[name]);
        }
    }
    let drivers = ["redis", "rustls", "sqlx", "sqlx-core"];
    let unchecked: Vec<_> = ours.keys().filter(|name| !checked.contains_key(*name)).collect();
    assert_eq!(unchecked, drivers, "only drivers may ask for more");
}

fn documents() -> Vec<PathBuf> {
    let docs = fs::read_dir(root().join("docs")).expect("docs are readable");
    let mut all: Vec<_> = docs.map(|entry| entry.expect("an entry").path()).collect();
    all.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    all.extend(["README.md", "README.zh-CN.md", "benches/README.md"].map(|name| root().join(name)));
    all
}

#[test]
fn versions_in_snippets_are_those_of_the_manifest() {
    let manifest = read("Cargo.toml");
    let mut ours = dependencies(&manifest);
    let own = manifest.lines().find_map(|line| line.strip_prefix("version = ")).expect("a version");
    ours.insert("tower-idempotency".into(), own.trim_matches('"').to_owned());
    let mut found = 0;
    for path in documents() {
        let text = fs::read_to_string(&path).expect("docs are readable");
        for line in blocks(&text, "toml") {
            let Some((name, version)) = dependency(line) else { continue };
            let Some(ours) = ours.get(&name) else { continue };
            found += 1;
            let fits = ours == &version || ours.starts_with(&format!("{version}."));
            assert!(fits, "{}: `{line}`, and Cargo.toml has {ours}", path.display());
        }
    }
    assert!(found > 0, "no snippet names a version");
}

/// What a document's Rust uses, and what one of its snippets of `Cargo.toml` has to have for that, or one of several.
const NEEDED: [(&str, &str); 14] = [
    ("sqlx::", "sqlx = "),
    ("SqliteStore", "\"sqlite\""),
    ("PostgresStore", "\"postgres\""),
    ("<Postgres>", "\"postgres\""),
    ("MySqlStore", "\"mysql\""),
    ("RedisStore", "\"redis\""),
    ("preset::", "\"presets\""),
    ("ConsumerLayer::new", "\"json\""),
    ("Once::new", "\"json\""),
    ("key::json", "\"json\"|\"presets\""),
    ("fingerprint::json", "\"json\"|\"presets\""),
    ("multipart_prefix", "\"form\""),
    ("SigningKeys", "\"signed-tokens\""),
    ("testing::", "\"testing\""),
];

#[test]
fn snippets_name_the_features_and_crates_that_they_need() {
    let mut missing = Vec::new();
    for path in documents() {
        let text = fs::read_to_string(&path).expect("docs are readable");
        let languages = ["", "rust", "rust,ignore", "no_run", "ignore", "should_panic"];
        let shown: Vec<_> = languages.iter().flat_map(|language| blocks(&text, language)).collect();
        let manifest = blocks(&text, "toml").join("\n");
        for (used, needed) in NEEDED {
            // What a comment names as another possibility needs nothing.
            let is_used = |line: &&str| line.split("//").next().is_some_and(|code| code.contains(used));
            if shown.iter().any(is_used) && !needed.split('|').any(|one| manifest.contains(one)) {
                missing.push(format!("{}: `{used}` needs {needed}", path.display()));
            }
        }
    }
    assert!(missing.is_empty(), "\n{}\n", missing.join("\n"));
}

/// The lines of the code blocks of a language.
fn blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let mut open = None;
    text.lines()
        .filter(|line| {
            if let Some(fence) = line.strip_prefix("```") {
                open = if open.is_some() { None } else { Some(fence) };
                return false;
            }
            open == Some(language)
        })
        .collect()
}

#[test]
fn links_to_files_lead_somewhere() {
    let mut dead = Vec::new();
    for path in documents() {
        let text = fs::read_to_string(&path).expect("docs are readable");
        let folder = path.parent().expect("a folder");
        for target in links(&text) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let there = if file.is_empty() { path.clone() } else { folder.join(file) };
            let leads = there.exists() && (anchor.is_empty() || has_heading(&there, anchor));
            if !leads {
                dead.push(format!("{}: {target}", path.display()));
            }
        }
    }
    assert!(dead.is_empty(), "\n{}\n", dead.join("\n"));
}

/// What `](..)` and `]: ..` name, without addresses and names of items, which rustdoc checks.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let inline = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    inline
        .filter(|target| !target.starts_with("crate") && !target.contains(':') && !target.contains(char::is_whitespace))
}

fn has_heading(path: &Path, anchor: &str) -> bool {
    let text = fs::read_to_string(path).expect("readable");
    text.lines().filter(|line| line.starts_with('#')).any(|line| slug(line) == anchor)
}

/// As GitHub and rustdoc make anchors of headings.
fn slug(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}
