//! A client of either version that can leave at any time.

use std::{
    pin::Pin,
    sync::{Arc, Mutex},
};

use axum::{body::Body, http::Request};
use http::Response;
use http_body_util::BodyExt;
use hyper::{
    body::Incoming,
    client::conn::{http1, http2},
    rt::Executor,
};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, task::JoinSet};

use crate::{
    clients::server::{Site, within},
    common::{Seen, see},
};

/// How a client leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// An HTTP/1.1 connection is closed.
    Http1,
    /// An HTTP/2 connection is closed.
    Http2,
    /// The stream of an HTTP/2 connection is reset.
    Reset,
}

impl Way {
    pub(crate) const ALL: [Self; 3] = [Self::Http1, Self::Http2, Self::Reset];
}

pub(crate) struct Client {
    way: Way,
    sender: Sender,
    tasks: Tasks,
}

enum Sender {
    One(http1::SendRequest<Body>),
    Two(http2::SendRequest<Body>),
}

/// A request that was sent; dropped, it resets its stream.
pub(crate) type ClaimRequest = Pin<Box<dyn Future<Output = hyper::Result<Response<Incoming>>> + Send>>;

impl Client {
    pub(crate) async fn new(way: Way, site: &Site) -> Self {
        let io = TokioIo::new(TcpStream::connect(site.address).await.unwrap());
        let tasks = Tasks::default();
        let sender = if way == Way::Http1 {
            let (sender, connection) = http1::handshake(io).await.unwrap();
            tasks.execute(async { drop(connection.await) });
            Sender::One(sender)
        } else {
            let (sender, connection) = http2::handshake(tasks.clone(), io).await.unwrap();
            tasks.execute(async { drop(connection.await) });
            Sender::Two(sender)
        };
        Self { way, sender, tasks }
    }

    /// Sends a request; it is under way even if nobody awaits its answer.
    pub(crate) fn ask(&mut self, path: &str, key: &str, body: impl Into<Body>) -> ClaimRequest {
        let request = Request::post(format!("http://site{path}")).header("Host", "site").header("Idempotency-Key", key);
        self.send(request.body(body.into()).unwrap())
    }

    pub(crate) fn send(&mut self, mut request: Request<Body>) -> ClaimRequest {
        match &mut self.sender {
            Sender::One(sender) => {
                *request.uri_mut() = request.uri().path().parse().unwrap();
                Box::pin(sender.send_request(request))
            }
            Sender::Two(sender) => Box::pin(sender.send_request(request)),
        }
    }

    pub(crate) fn leave<T>(self, asked: T) {
        if self.way == Way::Reset {
            drop(asked);
            // The connection lives on.
            std::mem::forget(self);
        } else {
            self.tasks.0.lock().unwrap().abort_all();
            std::mem::forget((asked, self.sender));
        }
    }
}

/// One request over a connection of its own.
pub(crate) async fn ask(way: Way, site: &Site, path: &str, key: &str, body: &str) -> Seen {
    let mut client = Client::new(way, site).await;
    let asked = client.ask(path, key, body.to_owned());
    within("an answer", async { see(asked.await.unwrap().map(BodyExt::boxed)).await }).await
}

/// The task that drives a connection: gone all at once if a client leaves.
#[derive(Clone, Default)]
struct Tasks(Arc<Mutex<JoinSet<()>>>);

impl<F: Future + Send + 'static> Executor<F> for Tasks {
    fn execute(&self, future: F) {
        self.0.lock().unwrap().spawn(async { drop(future.await) });
    }
}
