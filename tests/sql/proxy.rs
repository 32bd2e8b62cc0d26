//! A wire to a server that can be cut at the moment of a commit.

use std::{
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering::Relaxed},
    },
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

const NEVER: u8 = 0;
const BEFORE: u8 = 1;
const AFTER: u8 = 2;

pub(crate) struct Proxy {
    pub(crate) port: u16,
    cut: Arc<AtomicU8>,
}

impl Proxy {
    pub(crate) async fn to(server: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let (port, cut) = (listener.local_addr().unwrap().port(), Arc::new(AtomicU8::new(NEVER)));
        let told = Arc::clone(&cut);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect((Ipv4Addr::LOCALHOST, server)).await.unwrap();
                tokio::spawn(carry(client, server, Arc::clone(&told)));
            }
        });
        Self { port, cut }
    }

    /// The next commit does not reach the server.
    pub(crate) fn cut_before_the_commit(&self) {
        self.cut.store(BEFORE, Relaxed);
    }

    /// The next commit reaches the server, and its answer does not come back.
    pub(crate) fn cut_after_the_commit(&self) {
        self.cut.store(AFTER, Relaxed);
    }
}

async fn carry(mut client: TcpStream, mut server: TcpStream, cut: Arc<AtomicU8>) {
    let (mut asked, mut answered) = ([0; 8_192], [0; 8_192]);
    loop {
        tokio::select! {
            Ok(length @ 1..) = client.read(&mut asked) => {
                let commits = asked[..length].windows(6).any(|window| window == b"COMMIT");
                let when = if commits { cut.swap(NEVER, Relaxed) } else { NEVER };
                if when == BEFORE {
                    return;
                }
                server.write_all(&asked[..length]).await.unwrap();
                if when == AFTER {
                    // Once it answers, it has done it.
                    let _ = server.read(&mut answered).await;
                    return;
                }
            }
            Ok(length @ 1..) = server.read(&mut answered) => client.write_all(&answered[..length]).await.unwrap(),
            else => return,
        }
    }
}
