//! HTTP/1.1, byte by byte.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::clients::server::within;

/// A connection, and what came over it that has not been looked at.
pub(crate) struct Wire {
    stream: TcpStream,
    come: Vec<u8>,
}

impl Wire {
    pub(crate) async fn to(address: SocketAddr) -> Self {
        Self { stream: TcpStream::connect(address).await.unwrap(), come: Vec::new() }
    }

    pub(crate) async fn send(&mut self, text: impl AsRef<[u8]>) {
        within("room for what is sent", self.stream.write_all(text.as_ref())).await.unwrap();
    }

    /// No more will be sent.
    pub(crate) async fn finish(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    /// The next head, with the empty line behind it.
    pub(crate) async fn head(&mut self) -> String {
        self.until("\r\n\r\n").await
    }

    /// The next answer, with its body as it stands on the wire.
    pub(crate) async fn answer(&mut self) -> String {
        let head = self.head().await;
        if head.contains("\r\ntransfer-encoding: chunked\r\n") {
            let mut body = self.until("\r\n0\r\n").await;
            body += &self.until("\r\n").await;
            if !body.ends_with("\r\n0\r\n\r\n") {
                body += &self.until("\r\n").await;
            }
            return head + &body;
        }
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let body = self.exactly(length.map_or(0, |length| length.parse().unwrap())).await;
        head + &body
    }

    pub(crate) async fn exactly(&mut self, length: usize) -> String {
        while self.come.len() < length {
            self.more().await;
        }
        let rest = self.come.split_off(length);
        String::from_utf8(std::mem::replace(&mut self.come, rest)).unwrap()
    }

    /// Whether nothing has come that was not looked at.
    pub(crate) fn is_silent(&self) -> bool {
        self.come.is_empty()
    }

    /// Waits for the server to close.
    pub(crate) async fn closed(&mut self) {
        let mut rest = Vec::new();
        // A reset closes it as well.
        let _ = within("the connection's end", self.stream.read_to_end(&mut rest)).await;
        assert!(rest.is_empty() && self.come.is_empty());
    }

    async fn until(&mut self, end: &str) -> String {
        loop {
            if let Some(at) = self.come.windows(end.len()).position(|bytes| bytes == end.as_bytes()) {
                return self.exactly(at + end.len()).await;
            }
            self.more().await;
        }
    }

    async fn more(&mut self) {
        let read = within("an answer", self.stream.read_buf(&mut self.come)).await.unwrap();
        assert!(read > 0, "closed behind {:?}", String::from_utf8_lossy(&self.come));
    }
}

/// A POST with `fields`, each ended by its line break.
pub(crate) fn post(path: &str, fields: &str, body: &str) -> String {
    format!("{}{body}", head(path, &format!("{fields}Content-Length: {}\r\n", body.len())))
}

pub(crate) fn head(path: &str, fields: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: x\r\n{fields}\r\n")
}
