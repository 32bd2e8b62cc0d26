use std::{sync::Arc, time::Duration};

use tokio::{
    sync::Semaphore,
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};

use super::http::{Response, post};
use crate::{
    history::{Answered, Line, Mode},
    nemesis::Stage,
    random::Random,
    service::{
        answer,
        handler::{End, Told},
    },
    time::{millis, now, pause},
};

/// How long a client waits for an answer. Nothing that is done to a service or a store lasts so long.
const PATIENCE: u64 = 15_000;
/// How long a client goes on asking.
const PERSISTENCE: u64 = 40_000;
/// How many clients ask at the same time.
const CLIENTS: usize = 120;

/// Which operations there are.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) seed: u64,
    pub(crate) modes: Vec<Mode>,
    pub(crate) lease: u64,
    /// How many operations begin in a second.
    pub(crate) pace: u64,
    /// How many operations there are at most.
    pub(crate) operations: usize,
    /// When no more begin.
    pub(crate) end: Option<Instant>,
}

/// Begins one operation after the other, and waits for all of their clients. Returns the keys.
pub(crate) async fn drive(load: Load, stage: &Arc<Stage>) -> Vec<String> {
    let (began, mut random) = (Instant::now(), Random::new(load.seed, "load"));
    let clients = Arc::new(Semaphore::new(CLIENTS));
    let (mut asking, mut keys) = (JoinSet::new(), Vec::new());
    for number in 0..load.operations {
        sleep_until(began + Duration::from_millis(1_000 * number as u64 / load.pace)).await;
        if load.end.is_some_and(|end| Instant::now() >= end) {
            break;
        }
        let mode = load.modes[random.index(load.modes.len())];
        keys.push(format!("{}/k{number}", mode.name()));
        let mut asked = vec![number];
        asked.extend((0..2).filter(|_| random.percent(40)).map(|_| number));
        if random.percent(25) {
            asked.push(number - random.index(number.min(400) + 1));
        }
        for (client, number) in asked.into_iter().enumerate() {
            let Ok(seat) = Arc::clone(&clients).acquire_owned().await else { break };
            let name = format!("{} {client} {}", keys[number], keys.len());
            let client = Client { random: Random::new(load.seed, &name), key: keys[number].clone(), lease: load.lease };
            let stage = Arc::clone(stage);
            asking.spawn(async move {
                client.ask(&stage).await;
                drop(seat);
            });
        }
        while asking.try_join_next().is_some() {}
    }
    asking.join_all().await;
    keys
}

/// Asks for each operation once more, until there is a final answer.
pub(crate) async fn ask_once_more(seed: u64, keys: &[String], stage: &Arc<Stage>) {
    let mut asking = JoinSet::new();
    for key in keys {
        if asking.len() >= CLIENTS / 4 {
            asking.join_next().await;
        }
        let mut client = Client { random: Random::new(seed, key), key: key.clone(), lease: 0 };
        let stage = Arc::clone(stage);
        asking.spawn(async move {
            let told = Told { work: 0, end: End::Succeed };
            for body in ["a", "b"] {
                let began = now();
                while now() < began + PERSISTENCE {
                    match client.request(&stage, body, told, PATIENCE).await {
                        Some(answered) if answered.status == 422 => break,
                        Some(answered) if is_final(&answered) => return,
                        _ => pause(100).await,
                    }
                }
            }
        });
    }
    asking.join_all().await;
}

/// Whether a client stops asking. What the others say is that it has to ask again.
pub(crate) fn is_final(answered: &Answered) -> bool {
    let at_most_once = Mode::of(&answered.key) == Some(Mode::Once);
    match answered.status {
        201 | 422 => true,
        500 => at_most_once,
        _ => answered.said.as_deref() == Some("outcome-unknown"),
    }
}

struct Client {
    random: Random,
    key: String,
    lease: u64,
}

impl Client {
    async fn ask(mut self, stage: &Stage) {
        let began = now();
        let body = if self.random.percent(4) { "b" } else { "a" };
        pause(self.random.below(150)).await;
        while now() < began + PERSISTENCE {
            let fails = if self.key.starts_with(Mode::Once.name()) { 4 } else { 10 };
            let end = match self.random.below(100) {
                draw if draw < fails => End::Fail,
                draw if draw < fails + 2 => End::Panic,
                _ => End::Succeed,
            };
            // Some work is longer than a lease, which is renewed meanwhile.
            let work = match self.random.below(100) {
                0..10 => self.random.between(self.lease, 3 * self.lease),
                10..25 => self.random.below(self.lease),
                _ => self.random.below(300),
            };
            let told = Told { work, end };
            let patience = if self.random.percent(6) { self.random.below(250) } else { PATIENCE };
            if self.request(stage, body, told, patience).await.is_some_and(|answered| is_final(&answered)) {
                return;
            }
            pause(self.random.between(20, 300)).await;
        }
    }

    /// Sends a request to some service, if that serves.
    async fn request(&mut self, stage: &Stage, body: &str, told: Told, patience: u64) -> Option<Answered> {
        let service = &stage.services[self.random.index(stage.services.len())];
        let port = service.port()?;
        let (key, asked) = (self.key.clone(), now());
        let mode = Mode::of(&key)?.name();
        let text = told.to_string();
        let posting = post(port, mode, &key, &text, body);
        let response = timeout(millis(patience), posting).await;
        let unanswered =
            Answered { service: service.name.clone(), key, body: body.into(), asked, ..Answered::default() };
        let because = |why: &str| Answered { said: Some(why.into()), ..unanswered.clone() };
        let answered = match response {
            Ok(Ok(response)) => read(response, unanswered),
            Ok(Err(_)) if told.end == End::Panic => because("panicked"),
            Ok(Err(_)) => because("broken"),
            Err(_) if patience < PATIENCE => because("left"),
            Err(_) => because("no-answer"),
        };
        stage.log.add(Line::Answer(answered.clone()));
        Some(answered)
    }
}

fn read(response: Response, unanswered: Answered) -> Answered {
    let Response { status, replayed, problem, body } = response;
    let execution = answer::execution(&body, &unanswered.key, &unanswered.body).map(str::to_owned);
    let said = match (&problem, &execution, status) {
        (Some(_), ..) => problem,
        (None, None, 201) => Some("garbled".into()),
        (None, Some(_), 201) => None,
        _ => body.split_ascii_whitespace().next().map(str::to_owned),
    };
    Answered { status, replayed, execution: execution.filter(|_| status == 201), said, ..unanswered }
}
