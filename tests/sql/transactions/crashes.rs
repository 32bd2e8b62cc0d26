//! Processes that die at any moment, and commits whose answers are lost.

use std::{
    collections::HashMap,
    env,
    process::{self, Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::Body,
    extract::State,
    http::{Request, StatusCode},
    routing::post,
};
use http_body_util::BodyExt;
use tokio::{task::JoinSet, time::sleep};
use tower::ServiceExt;
#[cfg(any(feature = "mysql", feature = "postgres"))]
use tower_idempotency::consumer::{Action, Consumed};
use tower_idempotency::{
    IdempotencyLayer, Operation,
    sql::{SqlStore, Tx},
    store::Claimant,
};

use crate::database::TestDatabase;
#[cfg(any(feature = "mysql", feature = "postgres"))]
use crate::{
    database::Database,
    proxy::Proxy,
    transactions::{
        messages_and_functions::{End, consumer, deliver},
        process::Process,
    },
};

const KEYS: usize = 800;
const AT_ONCE: usize = 8;
/// How often a process is killed.
const KILLS: usize = 32;

/// What a process of the test below does: it asks for every operation until it has its answer.
pub(crate) async fn work<D: TestDatabase>(url: &str) {
    let store = SqlStore::<D>::new(D::connect(url, 16).await);
    let layer = IdempotencyLayer::transactional(store).store_timeout(Duration::from_secs(20));
    let handler = post(pay::<D>).layer(layer);
    let app = Router::new().route("/", handler).with_state(D::NAME == "SQLite");

    let mut asking = JoinSet::new();
    for key in shuffled() {
        if asking.len() == AT_ONCE {
            asking.join_next().await.unwrap().unwrap();
        }
        asking.spawn(answer(app.clone(), key));
    }
    while let Some(asked) = asking.join_next().await {
        asked.unwrap();
    }
}

/// An effect, which the answer names.
async fn pay<D: TestDatabase>(
    State(alone): State<bool>,
    operation: Operation,
    mut tx: Tx<D>,
) -> Result<String, StatusCode> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let execution = format!("{}-{}-{}", process::id(), COUNT.fetch_add(1, Relaxed), random() % 1_000_000);
    let text = format!("INSERT INTO runs VALUES ('{}', '{execution}')", operation.key());
    D::say(&mut tx, &text).await.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    // If there is one writer, one works at a time.
    sleep(Duration::from_millis(random() % if alone { 4 } else { 40 })).await;
    // Some fail when all is done but the commit.
    if random().is_multiple_of(10) { Err(StatusCode::INTERNAL_SERVER_ERROR) } else { Ok(execution) }
}

async fn answer(app: Router, key: usize) -> String {
    loop {
        let request = Request::post("/").header("idempotency-key", key.to_string()).body(Body::empty()).unwrap();
        let answer = app.clone().oneshot(request).await.unwrap();
        if answer.status().is_success() {
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            return String::from_utf8(body.to_vec()).unwrap();
        }
        sleep(Duration::from_millis(10)).await;
    }
}

/// Processes work on the same keys and are killed again and again. In the end each key has one effect, and its replay
/// names that one.
pub(crate) async fn killed_at_any_moment<D: TestDatabase>() {
    let processes = if D::NAME == "SQLite" { 1 } else { 2 };
    let place = D::place().await;
    let url = D::url(&place);
    let pool = D::connect(&url, 4).await;
    let store = SqlStore::<D>::new(pool.clone());
    store.migrate().await.unwrap();
    let mut connection = pool.acquire().await.unwrap();
    D::say(&mut connection, "CREATE TABLE runs (name VARCHAR(80) NOT NULL, execution VARCHAR(80) NOT NULL)")
        .await
        .unwrap();

    let kill = {
        let url = url.clone();
        tokio::task::spawn_blocking(move || kill_at_random::<D>(&url, processes))
    };
    kill.await.unwrap();

    let runs = D::pairs(&mut connection, "SELECT name, execution FROM runs").await;
    let mut effects: HashMap<usize, Vec<String>> = HashMap::new();
    for (key, execution) in runs {
        effects.entry(key.parse().unwrap()).or_default().push(execution);
    }
    assert_eq!(effects.len(), KEYS);
    let layer = IdempotencyLayer::transactional(store);
    let app = Router::new().route("/", post(pay::<D>).layer(layer)).with_state(true);
    for (key, effects) in effects {
        assert_eq!(effects.len(), 1, "{key}: {effects:?}");
        assert_eq!(answer(app.clone(), key).await, effects[0], "{key}");
    }
}

/// Ended when this is dropped, after a failed test too.
struct Running(Vec<Child>);

impl Drop for Running {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn kill_at_random<D: TestDatabase>(url: &str, processes: usize) {
    let start = |stays: bool| {
        Command::new(env::current_exe().unwrap())
            .args(["--exact", "transactions::crashes::process", "--ignored"])
            .env("CRASH_DATABASE", D::NAME)
            .env("CRASH_URL", url)
            .env("CRASH_STAYS", if stays { "yes" } else { "no" })
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut running = Running((0..processes).map(|_| start(true)).collect());
    for turn in 0..KILLS {
        thread::sleep(Duration::from_millis(80 + random() % 250));
        let child = &mut running.0[turn % processes];
        // On a fast machine one may have done all there is to do; it stays until it is killed.
        assert!(child.try_wait().unwrap().is_none(), "a process failed");
        child.kill().unwrap();
        child.wait().unwrap();
        *child = start(turn + processes < KILLS);
    }
    let began = Instant::now();
    for child in &mut running.0 {
        while child.try_wait().unwrap().is_none() {
            assert!(began.elapsed() < Duration::from_secs(120), "they do not come to an end");
            thread::sleep(Duration::from_millis(20));
        }
        assert!(child.wait().unwrap().success(), "a process failed");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "it is what the processes of the tests run"]
async fn process() {
    let (database, url) = (env::var("CRASH_DATABASE").unwrap(), env::var("CRASH_URL").unwrap());
    match &*database {
        #[cfg(feature = "postgres")]
        "PostgreSQL" => work::<sqlx::Postgres>(&url).await,
        #[cfg(feature = "mysql")]
        "MySQL" => work::<sqlx::MySql>(&url).await,
        #[cfg(feature = "sqlite")]
        "SQLite" => work::<sqlx::Sqlite>(&url).await,
        other => panic!("{other}"),
    }
    if env::var("CRASH_STAYS").is_ok_and(|stays| stays == "yes") {
        std::future::pending::<()>().await;
    }
}

/// The commit was sent and its answer was lost: nobody can say what happened, and the retry reads it.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) async fn a_commit_whose_answer_is_lost<D: TestDatabase<Place = Database>>() {
    let place = D::place().await;
    let proxy = Proxy::to(place.port()).await;
    let through = D::url(&place).replace(&place.port().to_string(), &proxy.port.to_string());
    let process = Process::<D>::on(&place, D::connect(&through, 2).await, |layer| layer).await;
    process.post("warm", "insert").await.is(201);

    proxy.cut_after_the_commit();
    process.post("a", "insert").await.is_problem(503, "commit-unknown");
    let retry = process.post("a", "insert").await;
    assert!(retry.is(201).replayed);
    assert_eq!(process.effects("a").await, 1);

    proxy.cut_before_the_commit();
    process.post("b", "insert").await.is_problem(503, "commit-unknown");
    process.is_as_new("b").await;

    // A message whose end nobody knows is given back: put aside, it might be lost.
    let layer = consumer(&process).attempts(1);
    for (id, cut) in [("c", Proxy::cut_after_the_commit as fn(&Proxy)), ("d", Proxy::cut_before_the_commit)] {
        cut(&proxy);
        let unknown = deliver::<D>(&layer, id, End::Pays).await;
        assert!(matches!(unknown, Consumed::CommitUnknown { .. }), "{id}: {unknown:?}");
        let mut next = unknown;
        while let Action::Requeue { delay } = next.action() {
            tokio::time::sleep(delay / 20).await;
            next = deliver::<D>(&layer, id, End::Pays).await;
        }
        assert_eq!(next, if id == "c" { Consumed::AlreadyDone } else { Consumed::Executed(()) });
        assert_eq!(process.effects(id).await, 1);
    }
}

fn shuffled() -> Vec<usize> {
    let mut keys: Vec<_> = (0..KEYS).collect();
    for n in (1..KEYS).rev() {
        keys.swap(n, usize::try_from(random()).unwrap() % (n + 1));
    }
    keys
}

fn random() -> u64 {
    let [a, b, c, d, ..] = Claimant::random().to_bytes();
    u64::from(u32::from_be_bytes([a, b, c, d]))
}
