//! The platform: it signs a notice, sends it, and sends it again until it reads the word of success.

use std::{
    collections::HashMap,
    env,
    net::SocketAddr,
    process::Stdio,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use axum::{
    body::Bytes,
    http::{
        Request, StatusCode,
        header::{CONTENT_TYPE, HOST},
    },
};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    net::TcpStream,
    process::{Child, ChildStdout, Command},
    time::timeout,
};

use crate::{Books, Failure, shop::Notice, signature};

/// How long it waits for an answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);

/// The shop's process.
pub(crate) struct Server {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    pub(crate) address: SocketAddr,
}

impl Server {
    /// Starts this program again, as a server.
    pub(crate) async fn start(books: &Books, stop_within: Option<&str>) -> Result<Self, Failure> {
        let mut command = Command::new(env::current_exe()?);
        command.args(["--serve", &books.url]).stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        if let Some(front) = &books.front {
            command.args(["--front", front]);
        }
        if let Some(order) = stop_within {
            command.args(["--stop-within", order]);
        }
        let mut child = command.spawn()?;
        let output = child.stdout.take().ok_or("the server has no output")?;
        let mut lines = BufReader::new(output).lines();
        let address = lines.next_line().await?.ok_or("the server has not started")?.parse()?;
        Ok(Self { child, lines, address })
    }

    /// What it says next.
    pub(crate) async fn says(&mut self) -> Result<String, Failure> {
        Ok(self.lines.next_line().await?.ok_or("the server has ended")?)
    }

    /// `kill -9`: it has no say in it.
    pub(crate) async fn kill(mut self) -> Result<(), Failure> {
        Ok(self.child.kill().await?)
    }
}

/// What the platform knows.
pub(crate) struct Platform {
    shop: Mutex<SocketAddr>,
    /// What was acknowledged, by the platform's own number, and how often.
    acknowledged: Mutex<HashMap<String, (Notice, usize)>>,
    sent: AtomicU64,
}

impl Platform {
    pub(crate) fn new(shop: SocketAddr) -> Self {
        Self { shop: Mutex::new(shop), acknowledged: Mutex::default(), sent: AtomicU64::new(0) }
    }

    /// The shop has another address.
    pub(crate) fn turn_to(&self, shop: SocketAddr) {
        *self.shop.lock().unwrap_or_else(PoisonError::into_inner) = shop;
    }

    /// Delivers a notification once. Without an answer nobody knows what became of it.
    pub(crate) async fn tell(&self, notice: &Notice) -> Option<StatusCode> {
        let message = self.message(notice);
        let (status, body) = self.send(&message, &signature::sign(message.as_bytes())).await?;
        if status == StatusCode::OK && body == "success" {
            let mut acknowledged = self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner);
            acknowledged.entry(notice.serial.clone()).or_insert_with(|| (notice.clone(), 0)).1 += 1;
        }
        Some(status)
    }

    /// Sends what looks like a notification, with a signature that was made without the secret.
    pub(crate) async fn forge(&self, notice: &Notice) -> Option<StatusCode> {
        let signed = self.message(notice);
        // A real signature, under a message that was changed afterwards.
        let changed = signed.replacen(&notice.cents.to_string(), &(notice.cents + 1).to_string(), 1);
        Some(self.send(&changed, &signature::sign(signed.as_bytes())).await?.0)
    }

    /// What was acknowledged, and how many deliveries that took.
    pub(crate) fn acknowledged(&self) -> HashMap<String, (Notice, usize)> {
        self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many messages were made.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Relaxed)
    }

    fn message(&self, notice: &Notice) -> String {
        let notice = Notice { sent: self.sent.fetch_add(1, Relaxed), ..notice.clone() };
        serde_json::to_string(&notice).expect("a notice is JSON")
    }

    async fn send(&self, message: &str, signature: &str) -> Option<(StatusCode, Bytes)> {
        timeout(PATIENCE, self.post(message, signature)).await.ok()?.ok()
    }

    async fn post(&self, message: &str, signature: &str) -> Result<(StatusCode, Bytes), Failure> {
        let shop = *self.shop.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut sender, connection) = http1::handshake(TokioIo::new(TcpStream::connect(shop).await?)).await?;
        let connection = tokio::spawn(connection);
        let request = Request::post("/notify")
            .header(HOST, shop.to_string())
            .header(CONTENT_TYPE, "application/json")
            .header(signature::HEADER, signature)
            .body(Full::new(Bytes::from(message.to_owned())))?;
        let response = sender.send_request(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        connection.abort();
        Ok((status, body))
    }
}
