use std::{fmt, sync::Arc};

use http::{HeaderMap, StatusCode};

/// Which answers are kept for duplicates.
///
/// An answer that is not kept releases the key: the next try runs, as the next attempt. An answer of 401, 407 or 429
/// states that nothing began, and [undoes](crate::guide::layers#answers-that-undo-the-attempt) the attempt instead.
#[derive(Clone)]
pub struct Keep(KeepRule);

#[derive(Clone)]
enum KeepRule {
    Success,
    Final,
    Everything,
    EverythingBut(Arc<[StatusCode]>),
    Nothing,
    When(Arc<dyn Fn(&Answer<'_>) -> bool + Send + Sync>),
}

impl Keep {
    /// Keeps 2xx and 3xx.
    ///
    /// A redirection to a login page counts as success too, and would spend a form's token. For forms behind a login,
    /// keep less:
    ///
    /// ```
    /// use http::{StatusCode, header::LOCATION};
    /// use tower_idempotency::Keep;
    ///
    /// let but_no_login = Keep::when(|answer| {
    ///     let to_login = answer.headers().get(LOCATION).is_some_and(|to| to.as_bytes().starts_with(b"/login"));
    ///     answer.status().is_success() || (answer.status() == StatusCode::SEE_OTHER && !to_login)
    /// });
    /// # drop(but_no_login);
    /// ```
    pub const SUCCESS: Self = Self(KeepRule::Success);

    /// Keeps 2xx, 3xx, and those 4xx that a retry cannot change: all but 401, 403, 407, 408, 412, 413, 415, 421, 423,
    /// 424, 425, 426, 428, 429 and 431.
    pub const FINAL: Self = Self(KeepRule::Final);

    /// Keeps every answer, and panics.
    pub const EVERYTHING: Self = Self(KeepRule::Everything);

    pub(super) const NOTHING: Self = Self(KeepRule::Nothing);

    /// Keeps the answers for which `keep` returns `true`. If `keep` panics, the request counts as one whose handler
    /// panicked.
    ///
    /// ```
    /// use tower_idempotency::{Keep, Policy};
    ///
    /// let policy = Policy::replay().keep(Keep::when(|answer| !answer.status().is_server_error()));
    /// # drop(policy);
    /// ```
    pub fn when(keep: impl Fn(&Answer<'_>) -> bool + Send + Sync + 'static) -> Self {
        Self(KeepRule::When(Arc::new(keep)))
    }

    /// Keeps every answer, and panics, except for the statuses that state that nothing was run.
    ///
    /// A handler that ran and answers with one of them calls [`Operation::keep`](crate::Operation::keep).
    ///
    /// ```
    /// use http::StatusCode;
    /// use tower_idempotency::{Keep, Policy};
    ///
    /// let policy = Policy::replay().keep(Keep::everything_but([StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND]));
    /// # drop(policy);
    /// ```
    pub fn everything_but(statuses: impl IntoIterator<Item = StatusCode>) -> Self {
        Self(KeepRule::EverythingBut(statuses.into_iter().collect()))
    }

    pub(crate) fn keeps(&self, answer: &Answer<'_>) -> bool {
        let status = answer.status();
        let success = status.is_success() || status.is_redirection();
        match &self.0 {
            KeepRule::Success => success,
            KeepRule::Final => success || (status.is_client_error() && !is_passing(status)),
            KeepRule::Everything => true,
            KeepRule::EverythingBut(statuses) => !statuses.contains(&status),
            KeepRule::Nothing => false,
            KeepRule::When(keep) => keep(answer),
        }
    }

    /// Returns whether failures are kept by default, panics too.
    pub(crate) fn is_of_failures(&self) -> bool {
        matches!(self.0, KeepRule::Everything | KeepRule::EverythingBut(_))
    }
}

impl fmt::Debug for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            KeepRule::Success => "SUCCESS",
            KeepRule::Final => "FINAL",
            KeepRule::Everything => "EVERYTHING",
            KeepRule::EverythingBut(_) => "everything_but(..)",
            KeepRule::Nothing => "NOTHING",
            KeepRule::When(_) => "when(..)",
        })
    }
}

/// Returns whether a status is a 4xx that states nothing about the operation itself: other credentials, another moment
/// or another form may help.
fn is_passing(status: StatusCode) -> bool {
    matches!(status.as_u16(), 401 | 403 | 407 | 408 | 412 | 413 | 415 | 421 | 423..=426 | 428 | 429 | 431)
}

/// Returns whether an answer states that nothing began: the caller has to prove who it is first, or to come later.
pub(crate) fn is_undone(status: StatusCode) -> bool {
    matches!(status.as_u16(), 401 | 407 | 429)
}

/// A whole answer of the handler, for the decision whether to keep it.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    pub(crate) status: StatusCode,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: &'a [u8],
    pub(crate) trailers: Option<&'a HeaderMap>,
}

impl<'a> Answer<'a> {
    /// Returns the status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns all headers.
    #[must_use]
    pub fn headers(&self) -> &'a HeaderMap {
        self.headers
    }

    /// Returns the body. It is empty if the body is not held: a stream, or more than the limit.
    #[must_use]
    pub fn body(&self) -> &'a [u8] {
        self.body
    }

    /// Returns the trailers.
    #[must_use]
    pub fn trailers(&self) -> Option<&'a HeaderMap> {
        self.trailers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keeps(keep: &Keep, status: u16) -> bool {
        let status = StatusCode::from_u16(status).unwrap();
        keep.keeps(&Answer { status, headers: &HeaderMap::new(), body: b"", trailers: None })
    }

    #[test]
    fn what_is_kept_by_status() {
        for status in [200, 201, 204, 303] {
            assert!(keeps(&Keep::SUCCESS, status) && keeps(&Keep::FINAL, status), "{status}");
        }
        for status in [400, 402, 404, 405, 409, 410, 422, 451] {
            assert!(!keeps(&Keep::SUCCESS, status) && keeps(&Keep::FINAL, status), "{status}");
        }
        for status in [401, 403, 407, 408, 412, 413, 415, 421, 423, 424, 425, 426, 428, 429, 431, 500, 503] {
            assert!(!keeps(&Keep::FINAL, status) && keeps(&Keep::EVERYTHING, status), "{status}");
        }
        assert!(keeps(&Keep::when(|answer| answer.status() == 418), 418));
        let but = Keep::everything_but([StatusCode::NOT_FOUND]);
        assert!(keeps(&but, 500) && keeps(&but, 400) && !keeps(&but, 404));
    }

    #[test]
    fn a_rule_is_shown_by_its_name() {
        let named = [Keep::SUCCESS, Keep::FINAL, Keep::EVERYTHING, Keep::NOTHING];
        assert_eq!(named.map(|keep| format!("{keep:?}")), ["SUCCESS", "FINAL", "EVERYTHING", "NOTHING"]);
        let built = [Keep::everything_but([StatusCode::NOT_FOUND]), Keep::when(|_| true)];
        assert_eq!(built.map(|keep| format!("{keep:?}")), ["everything_but(..)", "when(..)"]);
    }
}
