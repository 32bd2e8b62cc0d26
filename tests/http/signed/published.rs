//! Examples that the platforms publish.

use axum::http::HeaderMap;

use super::{github, mac};

#[test]
fn of_github() {
    // "Validating webhook deliveries".
    let mut headers = HeaderMap::new();
    let signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    headers.insert("x-hub-signature-256", signature.parse().unwrap());
    let secret = "It's a Secret to Everybody";
    assert_eq!(github::verify(secret, &headers, b"Hello, World!"), Ok(()));
    assert!(github::verify(secret, &headers, b"Hello, World?").is_err());
    headers.insert("x-hub-signature-256", signature.replace("757", "+75").parse().unwrap());
    assert!(github::verify(secret, &headers, b"Hello, World!").is_err());
}

#[test]
fn of_standard_webhooks() {
    use base64::{Engine, prelude::BASE64_STANDARD};
    // "Verifying webhooks manually"; its time stamp is of 2021.
    let secret = BASE64_STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    let signature = BASE64_STANDARD.decode("g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=").unwrap();
    let parts = [&b"msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330."[..], br#"{"test": 2432232314}"#];
    assert!(mac::is_one_of([signature], &secret, &parts));
}
