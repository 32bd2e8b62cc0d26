//! Keys and contents in messages, and messages that are not as they should be.

use bytes::Bytes;
use prost::Message;
use tonic::{Code, Request, Status, codec::CompressionEncoding};
use tonic_prost::ProstCodec;
use tonic_types::StatusExt;
use tower::ServiceExt;
use tower_idempotency::MemoryStore;
use tower_idempotency_grpc::{GrpcLayer, fingerprint, key, scope};

use crate::bank::{Bank, Order, PAY, Raw, Receipt, Served, client, framed, order, pay, refused, seen, send, serve};

fn layer() -> GrpcLayer {
    GrpcLayer::new(MemoryStore::new())
}

fn encoded() -> Vec<u8> {
    Order { id: "order 7".into(), amount: 7, note: vec![7; 200].into() }.encode_to_vec()
}

/// Code and reason of a refusal as it is on the wire.
fn refusal(raw: &Raw) -> (Code, String) {
    assert_eq!((raw.status, &raw.body[..], &raw.trailers), (200, &b""[..], &None));
    let status = Status::from_header_map(&raw.headers).unwrap();
    let reason = status.get_details_error_info().map(|info| info.reason);
    (status.code(), reason.unwrap_or_default())
}

#[tokio::test(start_paused = true)]
async fn a_key_in_the_message() {
    let bank = Bank::paying();
    let by_id = layer().key(key::message(|order: &Order| Some(order.id.clone())));
    let service = serve(&by_id, &bank);
    assert_eq!(seen(&pay(&service, order("", 7)).await.unwrap()), (1, false));
    assert_eq!(seen(&pay(&service, order("other", 7)).await.unwrap()), (1, true));
    assert_eq!(seen(&pay(&service, order("", 8)).await.unwrap()), (2, false));
    let mut nameless = order("", 7);
    nameless.get_mut().id = String::new();
    assert_eq!(refused(pay(&service, nameless).await), (Code::InvalidArgument, "key-missing".into()));
    let odd = send(&service, "", &[], framed(0, b"\xff\xff")).await;
    assert_eq!(refusal(&odd), (Code::InvalidArgument, "key-invalid".into()));
}

#[tokio::test(start_paused = true)]
async fn a_scope_in_the_message() {
    let by_id = layer().scope(scope::message(|order: &Order| Some(order.id.clone())));
    let service = serve(&by_id, &Bank::paying());
    assert_eq!(seen(&pay(&service, order("a", 7)).await.unwrap()), (1, false));
    assert_eq!(seen(&pay(&service, order("a", 8)).await.unwrap()), (2, false));
    assert_eq!(seen(&pay(&service, order("a", 7)).await.unwrap()), (1, true));
}

#[tokio::test(start_paused = true)]
async fn a_part_of_the_message_can_be_what_counts() {
    let by_amount = layer().fingerprint(fingerprint::message(|order: &Order| order.amount.to_string()));
    let service = serve(&by_amount, &Bank::paying());
    let with_note = |note: &'static str, amount: u64| {
        let mut request = order("a", amount);
        request.get_mut().note = note.into();
        request
    };
    pay(&service, with_note("at ten", 7)).await.unwrap();
    assert_eq!(seen(&pay(&service, with_note("at eleven", 7)).await.unwrap()), (1, true));
    assert_eq!(refused(pay(&service, with_note("at ten", 8)).await).0, Code::FailedPrecondition);
}

async fn pay_compressed(service: &Served, request: Request<Order>) -> (u64, bool) {
    let client = client(service).send_compressed(CompressionEncoding::Gzip);
    let mut client = client.accept_compressed(CompressionEncoding::Gzip);
    client.ready().await.unwrap();
    let answer = client.unary(request, http::uri::PathAndQuery::from_static(PAY), ProstCodec::default()).await;
    seen(&answer.unwrap())
}

/// A client that compresses its retries sends the same.
#[tokio::test(start_paused = true)]
async fn a_compressed_message_is_the_same_message() {
    for bank in [Bank::paying(), Bank::paying().compressed()] {
        let by_id = layer().key(key::message(|order: &Order| Some(order.id.clone())));
        let service = serve(&by_id, &bank);
        assert_eq!(pay_compressed(&service, order("", 7)).await, (1, false));
        assert_eq!(pay_compressed(&service, order("", 7)).await, (1, true));
        assert_eq!(seen(&pay(&service, order("", 7)).await.unwrap()), (1, true), "its client takes no compression");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_not_protected_stays_compressed() {
    let service = serve(&layer().key_optional(), &Bank::paying().compressed());
    assert_eq!(pay_compressed(&service, order("", 7)).await, (1, false));
    let raw = send(&service, "", &[("grpc-accept-encoding", "gzip")], framed(0, &encoded())).await;
    assert_eq!(raw.headers["grpc-encoding"], "gzip");
    let raw = send(&service, "a", &[("grpc-accept-encoding", "gzip")], framed(0, &encoded())).await;
    assert!(!raw.headers.contains_key("grpc-encoding"), "what is kept is for every retry");
    assert_eq!(Receipt::decode(&raw.body[5..]).unwrap().number, 3);
}

/// Metadata, body, and the refusal.
type Case = (&'static [(&'static str, &'static str)], Vec<u8>, Code, &'static str);

#[tokio::test(start_paused = true)]
async fn messages_that_are_not_as_they_should_be() {
    let bank = Bank::paying();
    let service = serve(&layer().request_limit(500), &bank);
    let whole = framed(0, &encoded());
    let cases: [Case; 7] = [
        (&[("grpc-encoding", "zstd")], framed(1, b"xyz"), Code::Unimplemented, "encoding-unknown"),
        (&[("grpc-encoding", "gzip")], framed(1, b"xyz"), Code::InvalidArgument, "body-invalid"),
        // It does not say how.
        (&[], framed(1, b"xyz"), Code::InvalidArgument, "body-invalid"),
        (&[], framed(0, &[0; 501]), Code::ResourceExhausted, "body-too-large"),
        (&[], whole[..whole.len() - 1].to_vec(), Code::Unavailable, "body-incomplete"),
        (&[], whole[..3].to_vec(), Code::Unavailable, "body-incomplete"),
        (&[], [whole.clone(), whole.clone()].concat(), Code::Unimplemented, "client-stream"),
    ];
    for (headers, body, code, reason) in cases {
        let raw = send(&service, "a", headers, body).await;
        assert_eq!(refusal(&raw), (code, reason.to_owned()));
        let told = raw.headers.get("grpc-accept-encoding").map(|known| known.to_str().unwrap());
        assert_eq!(told, (reason == "encoding-unknown").then_some("identity,gzip,deflate"));
    }
    assert_eq!(bank.runs(), 0);
    // A message that is not compressed, of a request that could have some.
    let raw = send(&service, "a", &[("grpc-encoding", "zstd")], whole).await;
    assert_eq!(raw.trailers.unwrap()["grpc-status"], "0");
}

/// A layer that translates gRPC-Web belongs outside.
#[tokio::test(start_paused = true)]
async fn a_call_of_grpc_web_is_not_run_unprotected() {
    let bank = Bank::paying();
    let ask = async |layer: GrpcLayer, key: &'static str| {
        let request = http::Request::post(PAY).header("content-type", "application/grpc-web+proto");
        let request = if key.is_empty() { request } else { request.header("idempotency-key", key) };
        let body = tonic::body::Body::new(http_body_util::Full::new(Bytes::from(framed(0, &encoded()))));
        let answer = serve(&layer, &bank).oneshot(request.body(body).unwrap()).await.unwrap();
        Status::from_header_map(answer.headers()).and_then(|status| status.get_details_error_info())
    };
    assert_eq!(ask(layer(), "a").await.unwrap().reason, "grpc-web");
    assert_eq!(ask(layer(), "").await.unwrap().reason, "key-missing");
    assert_eq!(bank.runs(), 0);
    assert!(ask(layer().key_optional(), "").await.is_none());
    assert_eq!(bank.runs(), 1);
}

/// Whatever a client sends, it receives a status, and what is not one message does not run.
#[tokio::test(start_paused = true)]
async fn any_bytes_have_an_answer() {
    let bank = Bank::paying();
    let service = serve(&layer().request_limit(500), &bank);
    let mut seed = 7_u64;
    let mut draw = move |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    for number in 0..3000 {
        let mut body = if draw(2) == 0 { framed(0, &encoded()) } else { Vec::new() };
        for _ in 0..draw(4) {
            match draw(3) {
                0 => body.push(u8::try_from(draw(3)).unwrap()),
                1 => body.extend([0; 3]),
                _ => body.truncate(usize::try_from(draw(64)).unwrap()),
            }
        }
        let encoding = ["gzip", "deflate", "zstd", "identity"][usize::try_from(draw(4)).unwrap()];
        let runs = bank.runs();
        let raw = send(&service, &format!("key-{number}"), &[("grpc-encoding", encoding)], body).await;
        let fields = raw.trailers.as_ref().unwrap_or(&raw.headers);
        let code = Status::from_header_map(fields).expect("a status").code();
        assert_eq!(raw.status, 200);
        assert!(bank.runs() > runs || code != Code::Ok);
    }
}
