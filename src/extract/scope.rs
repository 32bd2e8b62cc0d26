//! Whose key it is: a tenant, a user, a merchant.
//!
//! The same key of two scopes is two operations, and no answer ever crosses from one to the other. A scope is never
//! guessed: without one, a request with other credentials than the first one's is refused (422).
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

use std::{fmt, sync::Arc};

use http::{HeaderName, request::Parts};

/// Takes the scope out of a request. Made by the functions of this module.
#[derive(Clone)]
#[must_use = "a scope extractor does nothing until a layer has it"]
pub struct ScopeExtractor {
    find: Arc<ScopeFn>,
    optional: bool,
}

type ScopeFn = dyn Fn(&Parts) -> Option<String> + Send + Sync;

/// The scope is a header's value. A header that is empty, not UTF-8 or there twice counts as missing.
///
/// Take a header that something outside this layer has set or checked: whoever can choose the scope can read the
/// answers kept in it.
///
/// # Panics
///
/// Where `name` is no header name.
#[track_caller]
pub fn header(name: &str) -> ScopeExtractor {
    let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else { panic!("{name:?} is no header name") };
    from_fn(move |parts| {
        let mut lines = parts.headers.get_all(&name).iter();
        let only = lines.next().filter(|_| lines.next().is_none())?;
        std::str::from_utf8(only.as_bytes()).ok().map(ToOwned::to_owned)
    })
}

/// The scope is told by a request extension, such as the user that the authentication put there.
pub fn extension<T, V>(scope: impl Fn(&T) -> V + Send + Sync + 'static) -> ScopeExtractor
where
    T: Clone + Send + Sync + 'static,
    V: fmt::Display,
{
    from_fn(move |parts| parts.extensions.get::<T>().map(|found| scope(found).to_string()))
}

/// The scope is what the closure takes out of the request's head. `None` and an empty text mean that there is none.
pub fn from_fn(scope: impl Fn(&Parts) -> Option<String> + Send + Sync + 'static) -> ScopeExtractor {
    ScopeExtractor { find: Arc::new(scope), optional: false }
}

impl ScopeExtractor {
    /// The scope may be missing; all requests without one share one scope of their own.
    pub fn optional(self) -> Self {
        Self { optional: true, ..self }
    }

    /// `Err` where the scope is missing and must not be.
    pub(crate) fn extract(&self, parts: &Parts) -> Result<Option<String>, ()> {
        match (self.find)(parts).filter(|scope| !scope.is_empty()) {
            None if !self.optional => Err(()),
            scope => Ok(scope),
        }
    }
}

impl fmt::Debug for ScopeExtractor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopeExtractor").field("optional", &self.optional).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn extract(extractor: &ScopeExtractor, users: &[&str]) -> Result<Option<String>, ()> {
        let mut request = Request::builder();
        for user in users {
            request = request.header("x-user", *user);
        }
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        parts.extensions.insert(7_u32);
        extractor.extract(&parts)
    }

    #[test]
    fn present_missing_optional() {
        let by_header = header("X-User");
        assert_eq!(extract(&by_header, &["ann"]), Ok(Some("ann".into())));
        assert_eq!(extract(&by_header, &[]), Err(()));
        assert_eq!(extract(&by_header, &[""]), Err(()));
        assert_eq!(extract(&by_header, &["ann", "bob"]), Err(()));
        assert_eq!(extract(&by_header.optional(), &[]), Ok(None));
        assert_eq!(extract(&extension(|n: &u32| n + 1), &[]), Ok(Some("8".into())));
        assert_eq!(extract(&extension(|n: &u64| *n), &[]), Err(()));
    }
}
