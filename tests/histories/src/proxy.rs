//! What stands between a service and its store.

use std::{io, sync::Arc};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, tcp::OwnedReadHalf, tcp::OwnedWriteHalf},
    sync::watch,
};

use crate::time::pause;

/// What the link does with bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passage {
    Open,
    /// Every piece is late by so many milliseconds.
    Slow(u64),
    /// Connections are closed, and none is made.
    Cut,
    /// Nothing arrives, in either direction. What was sent arrives later.
    Held,
    /// Commands arrive; their answers never do, and their connections are closed in the end.
    Unanswered,
}

#[derive(Clone, Copy, Debug)]
struct State {
    passage: Passage,
    /// The number of connections at the time when those that there were went silent, for ever.
    silent: u64,
}

/// A proxy of one service.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) port: u16,
    state: watch::Sender<State>,
    connections: Arc<watch::Sender<u64>>,
}

impl Proxy {
    pub(crate) async fn to(server: u16) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let state = watch::Sender::new(State { passage: Passage::Open, silent: 0 });
        let connections = Arc::new(watch::Sender::new(0));
        tokio::spawn(accept(listener, server, state.clone(), Arc::clone(&connections)));
        Ok(Self { port, state, connections })
    }

    pub(crate) fn set(&self, passage: Passage) {
        self.state.send_modify(|state| state.passage = passage);
    }

    /// The connections that there are stay, and nothing passes on them any more. New ones work.
    pub(crate) fn go_silent(&self) {
        let silent = *self.connections.borrow();
        self.state.send_modify(|state| state.silent = silent);
    }
}

async fn accept(listener: TcpListener, server: u16, state: watch::Sender<State>, connections: Arc<watch::Sender<u64>>) {
    while let Ok((client, _)) = listener.accept().await {
        let number = *connections.borrow();
        connections.send_replace(number + 1);
        tokio::spawn(carry(client, server, number, state.subscribe()));
    }
}

/// Ends when either side does, or the link is cut.
async fn carry(client: TcpStream, server: u16, number: u64, state: watch::Receiver<State>) {
    let mut opening = state.clone();
    let opened = opening.wait_for(|state| state.passage != Passage::Held).await;
    let Ok(Passage::Open | Passage::Slow(_) | Passage::Unanswered) = opened.map(|state| state.passage) else { return };
    // The server may be away.
    let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let commands = Way { number, answers: false, state: state.clone() };
    let answers = Way { number, answers: true, state: state.clone() };
    let mut cut = state;
    tokio::select! {
        () = commands.run(from_client, to_server) => {}
        () = answers.run(from_server, to_client) => {}
        _ = cut.wait_for(|state| state.passage == Passage::Cut) => {}
    }
}

/// One direction of a connection.
struct Way {
    number: u64,
    answers: bool,
    state: watch::Receiver<State>,
}

impl Way {
    async fn run(mut self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
        let mut bytes = vec![0; 16_384];
        while let Ok(length @ 1..) = from.read(&mut bytes).await {
            match self.pass().await {
                Pass::On => {}
                Pass::Lost => continue,
                Pass::End => return,
            }
            if to.write_all(&bytes[..length]).await.is_err() {
                return;
            }
        }
    }

    /// Waits for as long as the link holds what there is.
    async fn pass(&mut self) -> Pass {
        loop {
            let State { passage, silent } = *self.state.borrow_and_update();
            if self.number < silent {
                return Pass::Lost;
            }
            match passage {
                Passage::Open => return Pass::On,
                Passage::Slow(late) => {
                    pause(late).await;
                    return Pass::On;
                }
                Passage::Cut => return Pass::End,
                Passage::Unanswered if !self.answers => return Pass::On,
                Passage::Unanswered => {
                    // Without what is lost here, no later answer would be understood.
                    let _ = self.state.wait_for(|state| state.passage != Passage::Unanswered).await;
                    return Pass::End;
                }
                Passage::Held => {}
            }
            if self.state.changed().await.is_err() {
                return Pass::End;
            }
        }
    }
}

enum Pass {
    On,
    Lost,
    End,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::{io::copy, time::timeout};

    use super::*;

    /// A server that answers with what it is asked.
    async fn echo() -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut from, mut to) = connection.into_split();
                    copy(&mut from, &mut to).await
                });
            }
        });
        port
    }

    async fn ask(connection: &mut TcpStream) -> Option<u8> {
        let mut byte = [0];
        let asking = async {
            connection.write_all(&[7]).await.ok()?;
            connection.read_exact(&mut byte).await.ok()
        };
        timeout(Duration::from_millis(300), asking).await.ok()??;
        Some(byte[0])
    }

    #[tokio::test]
    async fn each_passage_does_what_it_says() {
        let proxy = Proxy::to(echo().await).await.unwrap();
        let connect = async || TcpStream::connect(("127.0.0.1", proxy.port)).await.unwrap();

        let mut first = connect().await;
        assert_eq!(ask(&mut first).await, Some(7));
        proxy.go_silent();
        assert_eq!(ask(&mut first).await, None);
        let mut second = connect().await;
        assert_eq!(ask(&mut second).await, Some(7));

        proxy.set(Passage::Slow(20));
        assert_eq!(ask(&mut second).await, Some(7));
        proxy.set(Passage::Held);
        assert_eq!(ask(&mut second).await, None);
        proxy.set(Passage::Open);
        assert_eq!(second.read_u8().await.unwrap(), 7, "what was held arrives");

        proxy.set(Passage::Unanswered);
        assert_eq!(ask(&mut second).await, None);
        proxy.set(Passage::Open);
        assert!(second.read_u8().await.is_err(), "and what was lost does not");

        let mut third = connect().await;
        assert_eq!(ask(&mut third).await, Some(7));
        proxy.set(Passage::Cut);
        assert!(third.read_u8().await.is_err());
        assert_eq!(ask(&mut connect().await).await, None);
    }
}
