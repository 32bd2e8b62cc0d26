use std::{collections::BTreeMap, error::Error, fmt, io};

use tokio::{task::JoinSet, time::timeout};

use crate::{
    clients::http::{Connection, Response, post, request},
    service::answer,
    time::{millis, pause},
};

/// How many connections send keys that stay idle afterwards.
const LANES: usize = 32;
/// How many requests wait for one that runs.
const WAITING_EACH: usize = 100;
/// No request takes longer, even if the store is away now and then.
const PATIENCE: u64 = 60_000;

/// What comes and goes at a service.
#[derive(Clone, Copy, Debug)]
pub(super) struct Traffic {
    pub(super) port: u16,
    /// Distinguishes these keys from those of another time.
    pub(super) seed: u64,
    /// How long the work lasts that others wait for, beside the time in which they arrive, in milliseconds.
    pub(super) work: u64,
}

/// How many requests had which answer.
#[derive(Debug, Default)]
pub(super) struct Answers(BTreeMap<String, usize>);

impl Answers {
    fn add(&mut self, key: &str, answered: &io::Result<Response>) {
        let name = match answered {
            Ok(Response { status: 201, body, replayed, .. }) if answer::execution(body, key, "a").is_some() => {
                if *replayed {
                    "replayed".into()
                } else {
                    "first".into()
                }
            }
            Ok(Response { status, problem, .. }) => format!("{status} {}", problem.as_deref().unwrap_or("?")),
            Err(error) => error.to_string(),
        };
        *self.0.entry(name).or_default() += 1;
    }
}

impl fmt::Display for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts: Vec<_> = self.0.iter().map(|(name, count)| format!("{count} {name}")).collect();
        f.write_str(&counts.join(", "))
    }
}

impl Traffic {
    fn key(self, name: &str, number: usize) -> String {
        format!("replay/{}-{name}-{number}", self.seed)
    }

    /// Keys that are used once, and whose records stay.
    pub(super) async fn keys(self, name: &str, count: usize) -> Result<(), Box<dyn Error>> {
        let mut lanes = JoinSet::new();
        for lane in 0..LANES {
            let keys: Vec<_> = (lane..count).step_by(LANES).map(|number| self.key(name, number)).collect();
            lanes.spawn(async move {
                let mut connection = Connection::open(self.port).await?;
                for key in keys {
                    connection.send(request("replay", &key, "0 succeed", "a").as_bytes()).await?;
                    let answered = connection.receive().await?;
                    if answered.status != 201 {
                        return Err(io::Error::other(format!("{answered:?}")));
                    }
                }
                Ok(())
            });
        }
        while let Some(lane) = lanes.join_next().await {
            lane??;
        }
        Ok(())
    }

    /// Requests that wait for running ones.
    pub(super) async fn waiters(self, name: &str, count: usize) -> Result<Answers, Box<dyn Error>> {
        let mut asking = JoinSet::new();
        for number in 0..count {
            let key = self.key(name, number / WAITING_EACH);
            let told = format!("{} succeed", self.work + count as u64);
            asking.spawn(async move {
                let posting = post(self.port, "patient", &key, &told, "a");
                let answered = timeout(millis(PATIENCE), posting).await;
                (key, answered.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())))
            });
            paced(number).await;
        }
        let mut answers = Answers::default();
        while let Some(asked) = asking.join_next().await {
            let (key, answered) = asked?;
            answers.add(&key, &answered);
        }
        Ok(answers)
    }

    /// Clients that leave while their requests run.
    pub(super) async fn leave(self, name: &str, count: usize) -> Result<String, Box<dyn Error>> {
        let mut asking = JoinSet::new();
        for number in 0..count {
            let key = self.key(name, number);
            asking.spawn(async move {
                let told = format!("{} succeed", self.work * 2);
                timeout(millis(self.work / 2), post(self.port, "replay", &key, &told, "a")).await.is_err()
            });
            paced(number).await;
        }
        let left = asking.join_all().await.into_iter().filter(|left| *left).count();
        let mut connection = Connection::open(self.port).await?;
        connection.send(b"GET /resources HTTP/1.1\r\nHost: localhost\r\n\r\n").await?;
        let text = connection.receive().await?.body;
        let background = text.split(' ').nth(2).unwrap_or_default();
        Ok(format!("{left} left, {background} in the background then"))
    }

    /// Clients that write a request, and read its answer, piece by piece. The answer does not fit between them.
    pub(super) async fn slow(self, name: &str, count: usize) -> Result<String, Box<dyn Error>> {
        let mut asking = JoinSet::new();
        for number in 0..count {
            let key = self.key(&format!("{name}-{}", answer::LARGE), number);
            asking.spawn(async move {
                let asked = self.ask_slowly(&key).await;
                (key, asked)
            });
            paced(number).await;
        }
        let mut answers = Answers::default();
        while let Some(asked) = asking.join_next().await {
            let (key, answered) = asked?;
            answers.add(&key, &answered);
        }
        Ok(format!("slowly {answers}"))
    }

    async fn ask_slowly(self, key: &str) -> io::Result<Response> {
        let mut connection = Connection::narrow(self.port).await?;
        for piece in request("replay", key, "0 succeed", "a").as_bytes().chunks(8) {
            connection.send(piece).await?;
            pause(30).await;
        }
        connection.receive_slowly().await
    }
}

/// About a thousand begin in a second, so that a service can accept them.
async fn paced(number: usize) {
    if number % 50 == 49 {
        pause(50).await;
    }
}
