//! Two processes ask for the same six hundred operations, each until it has an answer, while their server is paused,
//! killed and cut off. Every effect is written down. One that comes twice has to be explained.

use std::{
    collections::{HashMap, HashSet},
    env,
    fs::{self, File, OpenOptions},
    io::Write,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant, SystemTime},
};

use axum::{Router, body::Body, extract::State, http::Request, routing::post};
use http_body_util::BodyExt;
use tokio::{task::JoinSet, time::sleep};
use tower::ServiceExt;
use tower_idempotency::{IdempotencyLayer, Operation, RedisStore};

use crate::server::Server;

const KEYS: usize = 600;
const AT_ONCE: usize = 8;
const LEASE: Duration = Duration::from_secs(2);
/// Renewals come every third of a lease, so a claim has at least this much of it left whenever the server goes away.
const LEFT: Duration = Duration::from_millis(1_300);
/// What `appendfsync everysec` may lose, and how late the disk may be.
const UNSAVED: Duration = Duration::from_secs(3);

/// Lines of several processes in one file, each written at once.
struct Log(File);

impl Log {
    fn open(path: &PathBuf) -> Self {
        Self(OpenOptions::new().create(true).append(true).open(path).unwrap())
    }

    fn line(&self, words: &[&str]) {
        (&self.0).write_all(format!("{} {}\n", now().as_millis(), words.join(" ")).as_bytes()).unwrap();
    }
}

fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap()
}

/// An effect: when, of which operation, and which execution of all that there are.
async fn pay(State(log): State<Arc<Log>>, operation: Operation) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let execution = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Relaxed));
    log.line(&["effect", operation.key(), &execution]);
    let spread: usize = operation.key().parse().unwrap();
    sleep(Duration::from_millis(50 + spread as u64 * 37 % 200)).await;
    execution
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "it is what the processes of the test below run"]
async fn process() {
    let (url, path) = (env::var("LOAD_SERVER").unwrap(), PathBuf::from(env::var("LOAD_LOG").unwrap()));
    let log = Arc::new(Log::open(&path));
    let store = RedisStore::connect(&url).await.unwrap();
    let layer = IdempotencyLayer::new(store).lease(LEASE).store_timeout(Duration::from_secs(1));
    let app = Router::new().route("/pay", post(pay)).layer(layer).with_state(Arc::clone(&log));

    let mut asking = JoinSet::new();
    for key in 0..KEYS {
        if asking.len() == AT_ONCE {
            asking.join_next().await.unwrap().unwrap();
        }
        let (app, log) = (app.clone(), Arc::clone(&log));
        asking.spawn(async move {
            let key = key.to_string();
            loop {
                let request = Request::post("/pay").header("Idempotency-Key", &key).body(Body::empty()).unwrap();
                let answer = app.clone().oneshot(request).await.unwrap();
                if answer.status().is_success() {
                    let body = answer.into_body().collect().await.unwrap().to_bytes();
                    return log.line(&["answer", &key, std::str::from_utf8(&body).unwrap()]);
                }
                sleep(Duration::from_millis(25)).await;
            }
        });
    }
    while let Some(asked) = asking.join_next().await {
        asked.unwrap();
    }
}

/// A time during which the server was away, and whether it may have lost what it had been told.
struct Absence {
    began: Duration,
    ended: Duration,
    killed: bool,
}

impl Absence {
    fn is_long(&self) -> bool {
        self.ended >= self.began + LEFT
    }
}

/// Ended when this is dropped, after a failed test too.
struct Processes(Vec<Child>);

impl Drop for Processes {
    fn drop(&mut self) {
        for process in &mut self.0 {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

#[test]
fn every_doubled_effect_is_explained() {
    let mut server = Server::start(&["--appendonly", "yes", "--appendfsync", "everysec"]);
    let path = server.folder().join("load.log");
    let mut processes = Processes((0..2).map(|_| start(&server, &path)).collect());
    let began = Instant::now();
    let mut absences = Vec::new();
    for round in 0.. {
        thread::sleep(Duration::from_millis(400));
        if processes.0.iter_mut().all(|process| process.try_wait().unwrap().is_some()) {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(180), "they do not come to an end");
        let away = if round % 6 >= 4 { LEASE + LEASE / 4 } else { Duration::from_millis(250) };
        let began = now();
        let killed = round % 3 == 2;
        match round % 3 {
            0 => server.cut(),
            1 => {
                server.pause();
                thread::sleep(away);
                server.resume();
            }
            _ => {
                server.kill();
                thread::sleep(away);
                server.start_again();
            }
        }
        absences.push(Absence { began, ended: now(), killed });
    }
    for process in &mut processes.0 {
        assert!(process.wait().unwrap().success(), "a process failed");
    }
    judge(&fs::read_to_string(&path).unwrap(), &absences);
}

fn start(server: &Server, log: &PathBuf) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "load::process", "--ignored"])
        .env("LOAD_SERVER", server.url())
        .env("LOAD_LOG", log)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn judge(log: &str, absences: &[Absence]) {
    let mut effects: HashMap<&str, Vec<Duration>> = HashMap::new();
    let mut answers: HashMap<&str, Vec<&str>> = HashMap::new();
    for line in log.lines() {
        let [when, what, key, execution] = line.split(' ').collect::<Vec<_>>().try_into().unwrap();
        match what {
            "effect" => effects.entry(key).or_default().push(Duration::from_millis(when.parse().unwrap())),
            _ => answers.entry(key).or_default().push(execution),
        }
    }
    let (mut doubled, mut unexplained) = (0, Vec::new());
    for (key, times) in &effects {
        for pair in times.windows(2) {
            doubled += 1;
            let explained = absences.iter().any(|absence| explains(absence, pair[0], pair[1]));
            if !explained {
                unexplained.push(format!("{key}: effects at {:?} and {:?}", pair[0], pair[1]));
            }
        }
    }
    let away = absences.iter().filter(|absence| absence.is_long()).count();
    let killed = absences.iter().filter(|absence| absence.killed).count();
    println!(
        "{} operations, {doubled} doubled; the server was away or cut off {} times, {away} of them for long, killed {killed} times",
        effects.len(),
        absences.len(),
    );
    assert!(unexplained.is_empty(), "without an explanation:\n{}", unexplained.join("\n"));
    assert_eq!((effects.len(), answers.len()), (KEYS, KEYS));
    for (key, executions) in answers {
        assert_eq!(executions.len(), 2, "{key}: each process has one answer");
        let differ = executions.iter().collect::<HashSet<_>>().len() > 1;
        assert!(!differ || effects[key].len() > 1, "{key}: one effect, two answers");
    }
    assert!(absences.len() >= 6, "hardly anything happened");
}

/// The server was away for longer than the lease had left, or it was killed before it had saved the first run's record.
fn explains(absence: &Absence, first: Duration, second: Duration) -> bool {
    let between = absence.ended >= first && absence.began <= second;
    let lost = absence.killed && absence.began <= first + UNSAVED;
    between && (absence.is_long() || lost)
}
