//! Scopes: whose key it is, such as a tenant's, a user's or a merchant's.
//!
//! The same key in two scopes is two operations, and no answer ever crosses from one scope to the other. So the scope
//! has to be all that the answer depends on: if two roles of one tenant see different answers, it is the tenant and the
//! role. A scope is never guessed: without one, the caller's [credentials](crate::credential) have to be those of the
//! first request, or the request is refused (422).
//!
//! ```
//! use tower_idempotency::{IdempotencyLayer, MemoryStore, scope};
//!
//! #[derive(Clone)]
//! struct User {
//!     id: u64,
//! }
//!
//! // `User` was put there by the authentication, which is a layer outside this one.
//! let layer = IdempotencyLayer::new(MemoryStore::new()).scope(scope::extension(|user: &User| user.id));
//! # drop(layer);
//! ```
//!
//! # What a store keeps of it
//!
//! A store keeps the scope's text, so that operators can read it, up to 255 bytes. A scope that is a credential by
//! itself is kept as `sha256:` and the SHA-256 of its value in hexadecimal digits. This applies to a [`cookie`], and to
//! a [`header`], or [`from_key`] with a header in it, if the header is known to carry a secret, such as `Authorization`
//! or `X-Api-Key`. The value of another header, such as an `X-Session` of your own, is kept as it is: take such a scope
//! by [`extension`].

mod extractor;
#[cfg(feature = "axum")]
mod from_extractor;
mod sources;

#[cfg(feature = "axum")]
#[cfg_attr(docsrs, doc(cfg(feature = "axum")))]
pub use self::from_extractor::{from_extractor, from_extractor_with_state};
pub use super::into::IntoScopeExtractor;

pub use self::{
    extractor::ScopeExtractor,
    sources::{cookie, extension, from_body, from_fn, from_key, header, host},
};

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::Request;

    use super::*;
    use crate::value::Refusal;

    fn extract(extractor: &ScopeExtractor, users: &[&str]) -> Result<Option<String>, Refusal> {
        let mut request = Request::builder();
        for user in users {
            request = request.header("x-user", *user);
        }
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        parts.extensions.insert(7_u32);
        extractor.extract(&parts, &Bytes::new())
    }

    #[test]
    fn present_missing_optional() {
        let by_header = header("X-User");
        assert_eq!(extract(&by_header, &["ann"]), Ok(Some("ann".into())));
        assert_eq!(extract(&by_header, &[]), Err(Refusal::ScopeMissing));
        assert_eq!(extract(&by_header, &[""]), Err(Refusal::ScopeMissing));
        assert_eq!(extract(&by_header, &["ann", "bob"]), Err(Refusal::ScopeMissing));
        assert_eq!(extract(&by_header.optional(), &[]), Ok(None));
        assert_eq!(extract(&extension(|n: &u32| n + 1), &[]), Ok(Some("8".into())));
        assert_eq!(extract(&extension(|n: &u64| *n), &[]), Err(Refusal::ExtensionMissing { type_name: "u64" }));
        assert_eq!(extract(&extension(|n: &u64| *n).optional(), &[]), Ok(None));
        for blank in ["", " ", "\t\u{a0}"] {
            assert_eq!(extract(&extension(move |_: &u32| blank), &[]), Err(Refusal::ScopeMissing));
        }
    }

    #[test]
    fn from_the_body() {
        let word = from_body(|_, body| {
            body.split(u8::is_ascii_whitespace).next().map(|word| String::from_utf8_lossy(word).into())
        });
        let scope = |body: &'static [u8]| {
            let (parts, ()) = Request::builder().body(()).unwrap().into_parts();
            word.extract(&parts, &Bytes::from_static(body))
        };
        assert!(word.needs_body());
        assert_eq!(scope(b"ann 7"), Ok(Some("ann".into())));
        assert_eq!((scope(b""), scope(b" 7")), (Err(Refusal::ScopeMissing), Err(Refusal::ScopeMissing)));
    }

    #[test]
    fn a_credential_is_kept_as_a_digest() {
        let (parts, ()) = Request::builder()
            .header("authorization", "Bearer secret")
            .header("cookie", "session=secret; theme=dark; theme=dark; twice=a; twice=b; empty=")
            .body(())
            .unwrap()
            .into_parts();
        let of = |extractor: ScopeExtractor| extractor.extract(&parts, &Bytes::new());
        // As `printf secret | sha256sum` prints it.
        let digest = "sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
        assert_eq!(of(cookie("session")), Ok(Some(digest.into())));
        assert!(of(header("Authorization")).unwrap().unwrap().starts_with("sha256:"));
        assert!(of(cookie("theme")).is_ok());
        for missing in ["twice", "empty", "none"] {
            assert_eq!(of(cookie(missing)), Err(Refusal::ScopeMissing), "{missing}");
        }
    }

    #[test]
    fn a_credential_among_keys_is_kept_as_a_digest() {
        use super::super::key;

        let (parts, ()) = Request::get("/?merchant=7")
            .header("x-api-key", "secret")
            .header("x-terminal", "3")
            .body(())
            .unwrap()
            .into_parts();
        let of = |key| from_key(key).extract(&parts, &Bytes::new()).unwrap().unwrap();
        let api_key = || key::header("X-Api-Key");
        // The same as by `scope::header`.
        assert_eq!(Ok(Some(of(api_key()))), header("X-Api-Key").extract(&parts, &Bytes::new()));
        let mixed = [
            of(key::all([key::query("merchant"), api_key()])),
            of(key::first([key::query("none"), key::all([api_key(), key::header("X-Terminal")])])),
        ];
        assert!(mixed.iter().all(|scope| scope.starts_with("sha256:")) && mixed[0] != mixed[1], "{mixed:?}");
        assert_eq!(of(key::all([key::query("merchant"), key::header("X-Terminal")])), "1:7,1:3,");
    }

    #[test]
    fn hosts() {
        for (uri, host_header, expected) in [
            ("/", Some("A.example"), Some("a.example")),
            ("/", Some("a.example.:443"), Some("a.example")),
            ("/", Some("a.example:8080"), Some("a.example:8080")),
            ("/", Some("[::1]:80"), Some("[::1]")),
            // HTTP/2, and an absolute target: the target counts.
            ("https://b.example/", Some("a.example"), Some("b.example")),
            ("https://B.example:443/", None, Some("b.example")),
            ("/", Some(""), None),
            ("/", Some("a b"), None),
            ("/", None, None),
        ] {
            let request = Request::builder().uri(uri);
            let request = host_header.into_iter().fold(request, |request, host| request.header("host", host));
            let (parts, ()) = request.body(()).unwrap().into_parts();
            let found = host().optional().extract(&parts, &Bytes::new());
            assert_eq!(found, Ok(expected.map(Into::into)), "{uri} {host_header:?}");
        }
        let (parts, ()) = Request::builder().header("host", "a").header("host", "b").body(()).unwrap().into_parts();
        assert_eq!(host().extract(&parts, &Bytes::new()), Err(Refusal::ScopeMissing));
    }

    #[test]
    #[should_panic(expected = "scope::from_key(key::content()): `key::content()` is always there")]
    fn the_content_is_no_scope() {
        let _ = from_key(super::super::key::content());
    }

    #[test]
    #[should_panic(expected = "\"a b\" is no name of a cookie")]
    fn a_bad_name_of_a_cookie_is_told_at_once() {
        let _ = cookie("a b");
    }
}
