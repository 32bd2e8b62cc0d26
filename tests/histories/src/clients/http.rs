use std::{io, net::Ipv4Addr};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpSocket, TcpStream},
};

use crate::time::pause;

/// What a client receives.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) replayed: bool,
    /// The name of the problem, if it is one.
    pub(crate) problem: Option<String>,
    pub(crate) body: String,
}

/// A connection that can be used again.
#[derive(Debug)]
pub(crate) struct Connection(BufReader<TcpStream>);

impl Connection {
    pub(crate) async fn open(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::with_capacity(2_048, stream)))
    }

    /// Opens one on which little fits that was not read yet.
    pub(crate) async fn narrow(port: u16) -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(4_096)?;
        let stream = socket.connect((Ipv4Addr::LOCALHOST, port).into()).await?;
        Ok(Self(BufReader::with_capacity(2_048, stream)))
    }

    /// Sends what has been written as [`request`].
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.get_mut().write_all(bytes).await
    }

    /// Reads a whole response.
    pub(crate) async fn receive(&mut self) -> io::Result<Response> {
        let head = self.head().await?;
        let mut body = vec![0; head.length];
        self.0.read_exact(&mut body).await?;
        Ok(head.with(&body))
    }

    /// Reads a whole response, piece by piece.
    pub(crate) async fn receive_slowly(&mut self) -> io::Result<Response> {
        let head = self.head().await?;
        let mut body = vec![0; head.length];
        for piece in body.chunks_mut(8_192) {
            pause(50).await;
            self.0.read_exact(piece).await?;
        }
        Ok(head.with(&body))
    }

    async fn head(&mut self) -> io::Result<Head> {
        let mut text = String::new();
        while !text.ends_with("\r\n\r\n") {
            if self.0.read_line(&mut text).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Head::read(&text).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

/// The text of a request.
pub(crate) fn request(path: &str, key: &str, told: &str, body: &str) -> String {
    format!(
        "POST /{path} HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: \"{key}\"\r\nX-Told: {told}\r\n\
         Content-Type: text/plain\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Sends a request on a connection of its own.
pub(crate) async fn post(port: u16, path: &str, key: &str, told: &str, body: &str) -> io::Result<Response> {
    let mut connection = Connection::open(port).await?;
    connection.send(request(path, key, told, body).as_bytes()).await?;
    connection.receive().await
}

struct Head {
    status: u16,
    replayed: bool,
    problem: bool,
    length: usize,
}

impl Head {
    fn read(text: &str) -> Option<Self> {
        let status = text.split(' ').nth(1)?.parse().ok()?;
        let field = |name: &str| {
            let mut fields = text.lines().filter_map(|line| line.split_once(": "));
            fields.find_map(|(field, value)| field.eq_ignore_ascii_case(name).then_some(value))
        };
        Some(Self {
            status,
            replayed: field("idempotent-replayed") == Some("true"),
            problem: field("content-type") == Some("application/problem+json"),
            length: field("content-length")?.parse().ok()?,
        })
    }

    fn with(self, body: &[u8]) -> Response {
        let body = String::from_utf8_lossy(body).into_owned();
        let name = body.split_once("\"type\":\"").and_then(|(_, rest)| rest.split('"').next()?.rsplit('#').next());
        let problem = name.filter(|_| self.problem).map(str::to_owned);
        Response { status: self.status, replayed: self.replayed, problem, body }
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn responses_are_read_one_after_the_other() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let answering = tokio::spawn(async move {
            let (mut connection, _) = listener.accept().await.unwrap();
            let problem = "{\"type\":\"https://a#b\"}";
            let fields = format!("content-type: application/problem+json\r\ncontent-length: {}", problem.len());
            let answers = format!(
                "HTTP/1.1 409 Conflict\r\n{fields}\r\n\r\n{problem}\
                 HTTP/1.1 201 Created\r\nIdempotent-Replayed: true\r\nContent-Length: 2\r\n\r\nab\
                 HTTP/1.1 201 Created\r\ncontent-length: 3\r\n\r\nab"
            );
            connection.write_all(answers.as_bytes()).await.unwrap();
        });
        let mut connection = Connection::open(port).await.unwrap();
        let problem = connection.receive().await.unwrap();
        assert_eq!((problem.status, problem.problem.as_deref(), problem.replayed), (409, Some("b"), false));
        let replay = connection.receive().await.unwrap();
        assert_eq!(replay, Response { status: 201, replayed: true, problem: None, body: "ab".into() });
        answering.await.unwrap();
        assert!(connection.receive().await.is_err(), "a body that breaks off");
    }
}
