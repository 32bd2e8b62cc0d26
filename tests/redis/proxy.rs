//! What stands between a store and its server.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering::Relaxed},
    },
};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
};

/// A name: new connections lead to the port in `leads`; those that there are stay.
pub(crate) async fn leads_to(leads: Arc<AtomicU16>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let mut here = listener.accept().await.unwrap().0;
            let mut there = TcpStream::connect(("127.0.0.1", leads.load(Relaxed))).await.unwrap();
            tokio::spawn(async move { copy_bidirectional(&mut here, &mut there).await });
        }
    });
    format!("redis://127.0.0.1:{port}")
}

/// A link whose connections can go silent: they stay open, and nothing passes any more. New ones are served.
pub(crate) struct Link {
    port: u16,
    silenced: watch::Sender<()>,
}

impl Link {
    pub(crate) async fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let link = Self { port: listener.local_addr().unwrap().port(), silenced: watch::Sender::new(()) };
        let silenced = link.silenced.clone();
        tokio::spawn(async move {
            loop {
                let mut here = listener.accept().await.unwrap().0;
                // The server may have ended.
                let Ok(mut there) = TcpStream::connect(("127.0.0.1", port)).await else { continue };
                let mut silenced = silenced.subscribe();
                tokio::spawn(async move {
                    let silent = async { drop(silenced.changed().await) };
                    tokio::select! {
                        _ = copy_bidirectional(&mut here, &mut there) => {}
                        // Both ends stay open.
                        () = silent => pending().await,
                    }
                });
            }
        });
        link
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn go_silent(&self) {
        self.silenced.send_replace(());
    }
}
