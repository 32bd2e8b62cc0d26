//! What a request is recognized by: its key on its route, its fingerprint, and the claimant that it becomes.

use std::cell::Cell;

use axum::extract::MatchedPath;
use http::{
    HeaderName, Method,
    header::{AUTHORIZATION, CONTENT_TYPE, COOKIE},
    request::Parts,
};
use sha2::{Digest, Sha256};

static KEY: HeaderName = HeaderName::from_static("idempotency-key");
static API_KEY: HeaderName = HeaderName::from_static("x-api-key");

const LONGEST: usize = 255;

/// Route and key, each behind its length.
pub(super) struct Name {
    bytes: [u8; 2 * (LONGEST + 1)],
    length: usize,
}

impl Name {
    /// `None` without a valid key.
    pub(super) fn of(head: &Parts) -> Option<Self> {
        let mut lines = head.headers.get_all(&KEY).iter();
        let (Some(key), None) = (lines.next(), lines.next()) else { return None };
        let key = key.as_bytes();
        if key.is_empty() || key.len() > LONGEST || !key.iter().fold(true, |valid, byte| valid & is_plain(*byte)) {
            return None;
        }
        let route = head.extensions.get::<MatchedPath>().map_or(head.uri.path(), MatchedPath::as_str);
        let mut name = Self { bytes: [0; 2 * (LONGEST + 1)], length: 0 };
        name.push(&route.as_bytes()[..route.len().min(LONGEST)]);
        name.push(key);
        Some(name)
    }

    fn push(&mut self, part: &[u8]) {
        let begin = self.length + 1;
        self.bytes[self.length] = part.len() as u8;
        self.length = begin + part.len();
        self.bytes[begin..self.length].copy_from_slice(part);
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

fn is_plain(byte: u8) -> bool {
    matches!(byte, 0x21..=0x7e) & !matches!(byte, b'"' | b',' | b';' | b'\\')
}

pub(super) type Fingerprint = [u8; 32];

/// Method, path, query, media type, credentials and body. What most requests have in common is written in one byte, so
/// that a small request is one block of SHA-256.
pub(super) fn fingerprint(head: &Parts, body: &[u8]) -> Fingerprint {
    let mut input = Input { hash: Sha256::new(), buffer: [0; 256], length: 0 };
    input.part(if head.method == Method::POST { b"+" } else { head.method.as_str().as_bytes() });
    input.part(head.uri.path().as_bytes());
    input.part(head.uri.query().unwrap_or_default().as_bytes());
    let media_type = head.headers.get(CONTENT_TYPE).map(http::HeaderValue::as_bytes).unwrap_or_default();
    input.part(if media_type == b"application/json" { b"+" } else { media_type });
    for name in [&AUTHORIZATION, &COOKIE, &API_KEY] {
        if let Some(value) = head.headers.get(name) {
            input.part(value.as_bytes());
        }
    }
    input.part(body);
    input.hash.update(&input.buffer[..input.length]);
    input.hash.finalize().into()
}

/// Short parts are gathered, so that the hash is called once.
struct Input {
    hash: Sha256,
    buffer: [u8; 256],
    length: usize,
}

impl Input {
    fn part(&mut self, part: &[u8]) {
        let begin = self.length + 1;
        let end = begin + part.len();
        match self.buffer.get_mut(begin..end) {
            // 255 begins the length of a long part.
            Some(place) if part.len() < 255 => {
                place.copy_from_slice(part);
                self.buffer[begin - 1] = part.len() as u8;
                self.length = end;
            }
            _ => self.long_part(part),
        }
    }

    #[cold]
    fn long_part(&mut self, part: &[u8]) {
        self.hash.update(&self.buffer[..self.length]);
        self.hash.update([255]);
        self.hash.update((part.len() as u64).to_be_bytes());
        self.hash.update(part);
        self.length = 0;
    }
}

/// Differs from every other one.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Claimant([u64; 2]);

impl Claimant {
    /// Random for each thread, and counted from there on.
    pub(super) fn next() -> Self {
        thread_local!(static LAST: Cell<[u64; 2]> = const { Cell::new([0; 2]) });
        LAST.with(|last| {
            let [mut high, mut low] = last.get();
            if high == 0 {
                high = random() | 1;
                low = random();
            }
            low = low.wrapping_add(1);
            last.set([high, low]);
            Self([high, low])
        })
    }
}

#[cold]
fn random() -> u64 {
    getrandom::u64().expect("the system has random numbers")
}
