use std::io;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// What a client receives.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) replayed: bool,
    /// The name of the problem, if it is one.
    pub(super) problem: Option<String>,
    pub(super) body: String,
}

/// Sends a request on a connection of its own.
pub(super) async fn post(port: u16, path: &str, key: &str, told: &str, body: &str) -> io::Result<Response> {
    let mut connection = TcpStream::connect(("127.0.0.1", port)).await?;
    let request = format!(
        "POST /{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nIdempotency-Key: \"{key}\"\r\n\
         X-Told: {told}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    connection.write_all(request.as_bytes()).await?;
    let mut bytes = Vec::new();
    connection.read_to_end(&mut bytes).await?;
    read(&String::from_utf8_lossy(&bytes)).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

fn read(text: &str) -> Option<Response> {
    let (head, body) = text.split_once("\r\n\r\n")?;
    let mut lines = head.lines();
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let field = |name: &str| {
        let mut fields = head.lines().filter_map(|line| line.split_once(": "));
        fields.find_map(|(field, value)| field.eq_ignore_ascii_case(name).then_some(value))
    };
    let length = field("content-length").and_then(|length| length.parse().ok());
    if length != Some(body.len()) {
        return None;
    }
    let is_problem = field("content-type") == Some("application/problem+json");
    let problem = body.split_once("\"type\":\"").and_then(|(_, rest)| rest.split('"').next()?.rsplit('#').next());
    Some(Response {
        status,
        replayed: field("idempotent-replayed") == Some("true"),
        problem: problem.filter(|_| is_problem).map(str::to_owned),
        body: body.to_owned(),
    })
}

#[test]
fn a_response_is_read() {
    let problem = "HTTP/1.1 409 Conflict\r\ncontent-type: application/problem+json\r\ncontent-length: 21\r\n\r\n\
                   {\"type\":\"https://a#b\"}";
    let response = read(&problem.replace("21", "22")).unwrap();
    assert_eq!((response.status, response.problem.as_deref(), response.replayed), (409, Some("b"), false));
    assert_eq!(read(problem), None, "a body that is too long");

    let replay = read("HTTP/1.1 201 Created\r\nIdempotent-Replayed: true\r\ncontent-length: 2\r\n\r\nab").unwrap();
    assert_eq!(replay, Response { status: 201, replayed: true, problem: None, body: "ab".into() });
    assert_eq!(read("HTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\na"), None, "a body that broke off");
}
