//! The check of a layer's settings when it is put around a service.
//!
//! A setting that is wrong in the source is a mistake of the programmer, so it panics at start-up, at the place of the
//! call (`track_caller`), and says which calls exclude each other.
//!
//! | setting | excludes | since |
//! | --- | --- | --- |
//! | tokens | a principal by an extractor | the extractor would run after the token was looked up |
//! | `fail_open` | at most once | an unprotected run could be a second one |
//! | a key from the content | a layer without scope, credentials and `unscoped` | two callers with one content would be one operation |
//! | `stream_body` | a key, scope or fingerprint in the body, `verify`, `keep_request` | they need the whole body |
//! | `multipart_prefix` | `verify`, `keep_request` | the same |

use crate::http::{Exchange, FailOpen, Scoping};

impl Exchange {
    /// Looks for settings that contradict each other, or lack something, once all of them are known.
    ///
    /// # Panics
    ///
    /// Panics if there are any.
    #[track_caller]
    pub(crate) fn check(&self) {
        let by_extractor = matches!(&self.scoping, Scoping::Scope(scope) if scope.needs_extractor());
        assert!(
            !(self.tokens.is_some() && by_extractor),
            "a token layer cannot take its principal by `scope::from_extractor`: put `axum::middleware::from_extractor` \
             outside, let the extractor leave its value in the request's extensions, and take `scope::extension`"
        );
        assert!(
            !(self.fail_open != FailOpen::Never && self.policy.run.is_at_most_once()),
            "a layer cannot run at most once (`after_crash(AfterCrash::Never)`) and let requests through unprotected \
             (`fail_open()`)"
        );
        if self.stream_body {
            self.check_streaming();
        }
        #[cfg(feature = "form")]
        self.check_prefix();
        assert!(
            !self.key.ends_in_content() || !self.scoping.is_unsaid(),
            "{:?}: say whose content it is, with `.scope(..)` (an optional one will do), with `.credentials(..)`, or with \
             `.unscoped()` if all callers are one. Otherwise a cookie that changes between two clicks would make two \
             operations of them",
            self.key
        );
    }

    /// Checks what a prefix of a multipart body excludes: everything that needs the whole body.
    #[cfg(feature = "form")]
    #[track_caller]
    fn check_prefix(&self) {
        assert!(
            self.tokens.as_ref().is_none_or(|rule| rule.prefix.is_none())
                || (self.verify.is_none() && !self.keep_request),
            "`multipart_prefix(..)` does not read the body, and `verify(..)` sees all of it, as `keep_request()` keeps it: \
             leave one of them out"
        );
    }

    /// Checks what a streaming body excludes: a key, a scope, a fingerprint or a check that needs the body.
    #[track_caller]
    fn check_streaming(&self) {
        assert!(
            !self.key.ends_in_content() && !self.key.needs_body(),
            "`stream_body()` does not read the body, and {:?} is in the body: take the key from the head, or leave \
             `stream_body()` out",
            self.key
        );
        assert!(
            self.fingerprint.is_off() || self.policy.run.any_content,
            "`stream_body()` does not read the body, and {:?} may depend on it: add `.fingerprint(fingerprint::off())`, or \
             leave `stream_body()` out",
            self.fingerprint
        );
        let of_body = matches!(&self.scoping, Scoping::Scope(scope) if scope.needs_body());
        assert!(
            !of_body,
            "`stream_body()` does not read the body, and the scope is in the body: take the scope from the head, or leave \
             `stream_body()` out"
        );
        assert!(
            self.verify.is_none(),
            "`stream_body()` does not read the body, and `verify(..)` sees all of it: leave one of the two out"
        );
        assert!(
            !self.keep_request,
            "`stream_body()` does not read the body, and `keep_request()` keeps it: leave one of the two out"
        );
    }
}
