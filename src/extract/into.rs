//! The arguments of a layer's methods, so that the compiler can suggest what to write instead of anything else.

use super::{fingerprint::FingerprintExtractor, key::KeyExtractor, scope::ScopeExtractor};

mod sealed {
    pub trait Sealed {}

    impl Sealed for super::KeyExtractor {}
    impl Sealed for super::ScopeExtractor {}
    impl Sealed for super::FingerprintExtractor {}
}

/// A source of a request's key: a [`KeyExtractor`]. Nothing else implements this trait.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say where a request's key is",
    label = "not made by a function of `tower_idempotency::key`",
    note = "for a header, write `key::header(\"X-Request-Id\")`; for a closure, `key::from_fn(|parts| ..)`; for the content, \
            `key::content()`"
)]
pub trait IntoKeyExtractor: sealed::Sealed {
    #[doc(hidden)]
    fn into_key_extractor(self) -> KeyExtractor;
}

impl IntoKeyExtractor for KeyExtractor {
    fn into_key_extractor(self) -> KeyExtractor {
        self
    }
}

/// A source of a request's scope: a [`ScopeExtractor`]. Nothing else implements this trait.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say whose key it is",
    label = "not made by a function of `tower_idempotency::scope`",
    note = "for what the authentication left in the request's extensions, write `scope::extension(|user: &User| user.id)`; \
            for an Axum extractor, `scope::from_extractor::<User, _>(|user| user.id)`; for a header that a layer outside \
            has checked, `scope::header(\"X-Tenant\")`; for a closure, `scope::from_fn(|parts| ..)`"
)]
pub trait IntoScopeExtractor: sealed::Sealed {
    #[doc(hidden)]
    fn into_scope_extractor(self) -> ScopeExtractor;
}

impl IntoScopeExtractor for ScopeExtractor {
    fn into_scope_extractor(self) -> ScopeExtractor {
        self
    }
}

/// A rule for what counts as the same request: a [`FingerprintExtractor`]. Nothing else implements this trait.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say what counts as the same request",
    label = "not made by a function of `tower_idempotency::fingerprint`",
    note = "for the bytes of the body, write `fingerprint::bytes()`; for its JSON value, `fingerprint::json()`; for nothing, \
            `fingerprint::off()`; for a closure, `fingerprint::from_fn(|parts, body| ..)`"
)]
pub trait IntoFingerprintExtractor: sealed::Sealed {
    #[doc(hidden)]
    fn into_fingerprint_extractor(self) -> FingerprintExtractor;
}

impl IntoFingerprintExtractor for FingerprintExtractor {
    fn into_fingerprint_extractor(self) -> FingerprintExtractor {
        self
    }
}
