//! What is wrong is said clearly, and nothing is lost.

use std::{
    fs,
    io::Read,
    net::{Ipv4Addr, TcpListener},
    process::{Command, Stdio},
    time::Duration,
};

use tower_idempotency::{
    SqliteStore,
    store::{Settlement, Store, StoreAdmin},
};

use crate::{
    folder::Folder,
    stand::{Done, Stand, key, tool},
};

fn fails(url: &str, arguments: &[&str]) -> Done {
    Done::new(&tool(url).args(arguments).output().unwrap())
}

#[test]
fn a_wrong_url_is_refused_and_not_shown() {
    for url in ["", "host", "http://u:hidden@host", "postgre://u:hidden@host/shop", "memory:", "sqlite::memory:"] {
        let done = fails(url, &["stats"]);
        assert!(
            matches!(done.code, 1 | 2) && !done.error.contains("hidden") && done.output.is_empty(),
            "{url}: {done:?}"
        );
    }
    let none =
        Command::new(env!("CARGO_BIN_EXE_tower-idempotency")).arg("stats").env_remove("TOWER_IDEMPOTENCY_URL").output();
    let none = Done::new(&none.unwrap());
    assert!(none.code == 2 && none.error.contains("TOWER_IDEMPOTENCY_URL"), "{none:?}");
}

#[test]
fn a_password_comes_from_the_environment_or_a_file() {
    let argument = fails("", &["stats", "--url", "redis://:hidden@127.0.0.1:1"]);
    assert!(
        argument.code == 2 && argument.error.contains("--url-file") && !argument.error.contains("hidden"),
        "{argument:?}"
    );
    let folder = Folder::new();
    let file = folder.path().join("url");
    fs::write(&file, "redis://:hidden@127.0.0.1:1\n").unwrap();
    let from_file = fails("", &["stats", "--url-file", &file.display().to_string()]);
    assert!(from_file.code == 1 && !from_file.error.contains("hidden"), "{from_file:?}");
    assert_eq!(fails("", &["stats", "--url-file", "/nowhere/url"]).code, 2);
}

#[test]
fn a_server_that_is_away_is_an_error_of_the_store() {
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    for scheme in ["redis", "rediss", "postgres", "mysql"] {
        let done = fails(&format!("{scheme}://app:hidden@127.0.0.1:{port}/shop"), &["stats", "--timeout", "500ms"]);
        assert!(
            done.code == 1 && !done.error.contains("hidden") && done.error.starts_with("error: "),
            "{scheme}: {done:?}"
        );
    }
}

#[test]
fn a_file_that_is_missing_is_not_created() {
    let folder = Folder::new();
    let file = folder.path().join("records.db");
    let url = format!("sqlite:{}", file.display());
    for arguments in [&["stats"][..], &["list"], &["migrate"], &["migrate", "--dry-run"], &["purge", "--yes"]] {
        let done = fails(&url, arguments);
        assert!(done.code == 1 && done.error.contains("there is no file"), "{done:?}");
    }
    assert!(!file.exists());
    assert_eq!(fails(&url, &["migrate", "--yes", "--outbox"]).code, 0);
    assert_eq!(fails(&url, &["outbox", "list"]).code, 0);
}

#[test]
fn a_record_of_a_list_and_a_table_have_names() {
    let folder = Folder::new();
    let url = format!("sqlite:{}", folder.path().join("records.db").display());
    assert_eq!(fails(&url, &["migrate", "--yes"]).code, 0);
    for arguments in [
        &["inspect"][..],
        &["inspect", "--id", "00"],
        &["inspect", " ", "--route", "/orders"],
        &["inspect", "1", "--log-id", "00"],
        &["list", "--abandoned", "--running"],
        &["list", "--limit", "0"],
        &["stats", "--table", "a; DROP TABLE b"],
        &["settle", "1", "--route", "/orders", "--yes"],
        &["settle", "1", "--route", "/orders", "--response", "201", "--header", "none", "--yes"],
    ] {
        let done = fails(&url, arguments);
        assert!(done.code == 2 && !done.error.contains("panicked"), "{arguments:?}: {done:?}");
    }
}

async fn stand(folder: &Folder) -> (Stand, SqliteStore) {
    let path = folder.path().join("records.db");
    let store = SqliteStore::open(&path).await.unwrap();
    store.migrate().await.unwrap();
    (Stand::new(&format!("sqlite:{}", path.display()), store.clone()), store)
}

fn url(folder: &Folder) -> String {
    format!("sqlite:{}", folder.path().join("records.db").display())
}

#[tokio::test]
async fn a_reader_that_leaves_is_no_failure() {
    let folder = Folder::quick();
    let (stand, _) = stand(&folder).await;
    // More than a pipe holds.
    for number in 0..400 {
        stand.settle(&key(&format!("{number}-{}", "x".repeat(200))), "kept").await;
    }
    let mut child = tool(&url(&folder))
        .args(["list", "--limit", "1000", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = child.stdout.take().unwrap();
    output.read_exact(&mut [0; 10]).unwrap();
    drop(output);
    let done = Done::new(&child.wait_with_output().unwrap());
    assert_eq!((done.code, &*done.error), (0, ""));
}

/// How many records a purge is interrupted at.
const EXPIRED: u64 = 3_000;

#[tokio::test]
async fn ctrl_c_ends_a_purge_between_two_batches() {
    let folder = Folder::quick();
    let (stand, store) = stand(&folder).await;
    for number in 0..EXPIRED {
        let key = key(&number.to_string());
        let claim = stand.run(&key).await;
        store.settle(&key, &Settlement::new(claim.claimant, None, Duration::from_millis(1))).await.unwrap();
    }
    stand.settle(&key("live"), "kept").await;
    let child =
        tool(&url(&folder)).args(["purge", "--yes"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A purge that has ended before counts as one that was not interrupted.
    while count(&store).await > EXPIRED - 50 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let done = Done::new(&child.wait_with_output().unwrap());
    match done.code {
        130 => {
            let told: u64 = done.error.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap();
            assert_eq!(told + count(&store).await, EXPIRED + 1, "what is told is what is done: {done:?}");
        }
        code => assert_eq!((code, count(&store).await), (0, 1), "{done:?}"),
    }
    assert!(store.inspect(&key("live")).await.unwrap().is_some());
    assert_eq!(stand.tool(&["purge", "--yes"]).code, 0);
    assert_eq!(count(&store).await, 1);
}

/// Counts the rows, expired or not.
async fn count(store: &SqliteStore) -> u64 {
    let rows: i64 =
        sqlx::query_scalar("SELECT COUNT(*) FROM idempotency_records").fetch_one(store.pool()).await.unwrap();
    rows.unsigned_abs()
}
