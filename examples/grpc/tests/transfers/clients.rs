//! The clients: tonic's, and that of Python with the retry policy of gRPC.

use std::{path::PathBuf, process::Stdio, time::Duration};

use grpc_transfers::{client, messages::Transfer};
use tokio::{process::Command, time::timeout};
use tonic::{Code, transport::Channel};

use crate::process::PROGRAM;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Client {
    Tonic,
    Grpcio,
}

/// How a client ends before the call does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Until {
    /// It does not: it calls again and again.
    Answered,
    Deadline(Duration),
    Cancelled(Duration),
}

/// What a client has learned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Learned {
    Made {
        number: u64,
        attempt: u32,
        is_replay: bool,
        /// How often the program has called: a retry policy calls more often by itself.
        calls: u32,
    },
    /// It did not wait for the end.
    Left,
    Failed(String),
}

impl Client {
    pub(crate) async fn create(self, port: u16, key: &str, until: Until) -> Learned {
        match self {
            Self::Tonic => by_tonic(port, key, until).await,
            Self::Grpcio => by_grpcio(port, key, until).await,
        }
    }
}

fn transfer() -> Transfer {
    Transfer { to: "ann".into(), amount: 100 }
}

async fn by_tonic(port: u16, key: &str, until: Until) -> Learned {
    let channel = Channel::from_shared(format!("http://127.0.0.1:{port}")).unwrap().connect_lazy();
    let patience = if let Until::Deadline(time) = until { time } else { Duration::from_secs(60) };
    let transfer = transfer();
    let call = client::create(&channel, key, &transfer, patience);
    let ended = match until {
        Until::Cancelled(time) => timeout(time, call).await.ok(),
        Until::Answered | Until::Deadline(_) => Some(call.await),
    };
    match ended {
        None => Learned::Left,
        Some(Ok(made)) => {
            let (receipt, is_replay) = (made.receipt, made.is_replay);
            Learned::Made { number: receipt.number, attempt: receipt.attempt, is_replay, calls: made.tries }
        }
        // A deadline is a cancellation to tonic's client.
        Some(Err(status)) if matches!(status.code(), Code::DeadlineExceeded | Code::Cancelled) => Learned::Left,
        Some(Err(status)) => Learned::Failed(format!("{status:?}")),
    }
}

async fn by_grpcio(port: u16, key: &str, until: Until) -> Learned {
    let mut command = Command::new(python());
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/client.py"));
    command.args([&format!("127.0.0.1:{port}"), key, "ann", "100"]);
    match until {
        Until::Answered => command.args(["--until", "60"]),
        Until::Deadline(time) => command.args(["--deadline", &time.as_secs_f64().to_string()]),
        Until::Cancelled(time) => command.args(["--cancel-after", &time.as_secs_f64().to_string()]),
    };
    let output = command.stderr(Stdio::inherit()).output().await.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    match text.split_whitespace().collect::<Vec<_>>()[..] {
        ["OK", number, attempt, replay, calls] => Learned::Made {
            number: number.parse().unwrap(),
            attempt: attempt.parse().unwrap(),
            is_replay: replay == "replay",
            calls: calls.parse().unwrap(),
        },
        ["CANCELLED" | "DEADLINE_EXCEEDED"] => Learned::Left,
        _ => Learned::Failed(text),
    }
}

/// The Python that has grpcio, in the folder of what was built.
fn python() -> PathBuf {
    let python = PathBuf::from(PROGRAM).ancestors().nth(2).unwrap().join("grpc-python/bin/python");
    assert!(python.is_file(), "{} is needed, with grpcio; scripts/test installs it", python.display());
    python
}
