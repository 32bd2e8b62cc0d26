//! An orders service that is safe to call twice, and a play in which its clients try to make it order twice.
//!
//! ```console
//! $ cargo run --example quickstart               # the play
//! $ cargo run --example quickstart -- --serve    # the service alone, on 127.0.0.1:3000, for your own curl
//! ```

use std::{
    collections::BTreeMap,
    env,
    error::Error,
    fmt, io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::{Json, Router, extract::State, http::StatusCode, routing::post};
use futures_util::future::try_join_all;
use serde::Deserialize;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::sleep,
};
use tower_idempotency::{IdempotencyLayer, MemoryStore};

// --- The service -----------------------------------------------------------------------------------------------------

#[derive(Deserialize)]
struct Order {
    item: String,
    amount: u32,
}

/// How many orders were placed.
type Placed = Arc<AtomicU64>;

fn service(placed: Placed) -> Router {
    let idempotent = IdempotencyLayer::new(MemoryStore::new());
    Router::new().route("/orders", post(place).layer(idempotent)).with_state(placed)
}

/// Knows nothing of retries: each time that it runs, there is one more order.
async fn place(State(placed): State<Placed>, Json(order): Json<Order>) -> (StatusCode, String) {
    let number = placed.fetch_add(1, Ordering::SeqCst) + 1;
    sleep(Duration::from_millis(300)).await; // The bank takes its time.
    (StatusCode::CREATED, format!("Order {number}: {} x {}", order.amount, order.item))
}

// --- The play --------------------------------------------------------------------------------------------------------

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<_> = env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => play().await,
        ["--serve"] => serve("127.0.0.1:3000").await,
        ["--serve", address] => serve(address).await,
        _ => Err("usage: quickstart [--serve [ADDRESS]]".into()),
    }
}

async fn play() -> Result<(), Box<dyn Error>> {
    let placed = Placed::default();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let shop = Shop { address: listener.local_addr()?, placed: placed.clone() };
    tokio::spawn(axum::serve(listener, service(placed)).into_future());

    println!(
        "A shop takes orders over HTTP. Its handler knows nothing of retries: whenever it runs, one more is placed."
    );
    println!("For each thing that it wants, the client makes up a key, and sends that key with every try.");
    let tea = r#"{"item":"tea","amount":2}"#;

    println!("\n1. A first order.");
    let first = shop.order("tea-1", tea).await?;
    assert_eq!(first.status(), 201);
    shop.expect_orders(1);

    println!("\n2. The client never saw the answer and tries again: it gets the same answer, marked as a replay.");
    let retry = shop.order("tea-1", tea).await?;
    assert!(retry.is_replay() && retry.body == first.body);
    shop.expect_orders(1);

    println!("\n3. Ten clicks at once: one runs, the others receive 409 while it does. Later they receive its answer.");
    let clicks = shop.order_at_once(10, "tea-2", tea).await?;
    assert_eq!(clicks.iter().filter(|answer| answer.status() == 201 && !answer.is_replay()).count(), 1);
    assert!(clicks.iter().all(|answer| answer.status() == 409 || answer.status() == 201));
    let later = shop.order_at_once(9, "tea-2", tea).await?;
    assert!(later.iter().all(Answer::is_replay));
    shop.expect_orders(2);

    println!("\n4. The first key again, with another amount: that is no retry but a mistake, and is refused.");
    assert_eq!(shop.order("tea-1", r#"{"item":"tea","amount":500}"#).await?.status(), 422);
    shop.expect_orders(2);

    println!(
        "\n5. The client hangs up in the middle: the work goes on, and the answer is there when the client is back."
    );
    show("> POST /orders", "tea-3", tea);
    let connection = shop.send("tea-3", tea).await?;
    while shop.placed.load(Ordering::SeqCst) < 3 {
        sleep(Duration::from_millis(1)).await;
    }
    drop(connection);
    println!("   x hangs up");
    let mut back = shop.order("tea-3", tea).await?;
    while back.status() == 409 {
        sleep(Duration::from_secs(1)).await;
        back = shop.order("tea-3", tea).await?;
    }
    assert!(back.status() == 201 && back.is_replay());
    shop.expect_orders(3);

    println!("\nThree keys, three orders, whatever the clients did.");
    Ok(())
}

async fn serve(address: &str) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(address).await?;
    let url = format!("http://{}/orders", listener.local_addr()?);
    let order = |key: &str, amount: u32| {
        let fields = format!("-H 'Idempotency-Key: {key}' -H 'Content-Type: application/json'");
        format!("{url} {fields} -d '{{\"item\":\"tea\",\"amount\":{amount}}}'")
    };
    println!("Place an order; send the same line again for a retry:\n  curl -i {}", order("tea-1", 2));
    println!("The same key with another amount:\n  curl -i {}", order("tea-1", 500));
    println!("Ten clicks at once:\n  seq 10 | xargs -P 10 -I _ curl -s -w '\\n' {}", order("tea-2", 2));
    Ok(axum::serve(listener, service(Placed::default())).await?)
}

/// The shop as its clients see it, and how many orders it has really placed.
struct Shop {
    address: SocketAddr,
    placed: Placed,
}

impl Shop {
    async fn order(&self, key: &str, order: &str) -> io::Result<Answer> {
        show("> POST /orders", key, order);
        let answer = self.exchange(key, order).await?;
        println!("   < {answer}");
        Ok(answer)
    }

    async fn order_at_once(&self, times: usize, key: &str, order: &str) -> io::Result<Vec<Answer>> {
        show(&format!("> {times} x POST /orders"), key, order);
        let answers = try_join_all((0..times).map(|_| self.exchange(key, order))).await?;
        let mut alike = BTreeMap::new();
        for answer in &answers {
            *alike.entry(answer.to_string()).or_insert(0) += 1;
        }
        for (answer, times) in alike {
            println!("   < {times} x {answer}");
        }
        Ok(answers)
    }

    async fn exchange(&self, key: &str, order: &str) -> io::Result<Answer> {
        let mut answer = String::new();
        self.send(key, order).await?.read_to_string(&mut answer).await?;
        let (head, body) = answer.split_once("\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(Answer { head: head.into(), body: body.into() })
    }

    async fn send(&self, key: &str, order: &str) -> io::Result<TcpStream> {
        let (address, length) = (self.address, order.len());
        let request = format!(
            "POST /orders HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nIdempotency-Key: {key}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{order}"
        );
        let mut connection = TcpStream::connect(address).await?;
        connection.write_all(request.as_bytes()).await?;
        Ok(connection)
    }

    fn expect_orders(&self, expected: u64) {
        let placed = self.placed.load(Ordering::SeqCst);
        println!("   = handler runs so far: {placed}");
        assert_eq!(placed, expected);
    }
}

fn show(request: &str, key: &str, order: &str) {
    println!("   {request}  Idempotency-Key: {key}  {order}");
}

struct Answer {
    head: String,
    body: String,
}

impl Answer {
    fn status(&self) -> u16 {
        self.head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default()
    }

    fn is_replay(&self) -> bool {
        self.header("idempotent-replayed") == Some("true")
    }

    fn header(&self, wanted: &str) -> Option<&str> {
        let mut fields = self.head.lines().filter_map(|line| line.split_once(": "));
        fields.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value)
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.head.lines().next().unwrap_or_default().trim_start_matches("HTTP/1.1 "))?;
        for name in ["Idempotent-Replayed", "Retry-After"] {
            if let Some(value) = self.header(name) {
                write!(f, "  {name}: {value}")?;
            }
        }
        // The layer refuses with a problem document (RFC 9457); what it says to people is its detail.
        let problem: Value = serde_json::from_str(&self.body).unwrap_or_default();
        write!(f, "  {}", problem["detail"].as_str().unwrap_or(&self.body))
    }
}
