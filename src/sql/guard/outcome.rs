use std::fmt;

use http::StatusCode;

use super::RowState;

/// The outcome of a move of a [`StateMachine`](super::StateMachine).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a move may have been refused"]
#[non_exhaustive]
pub enum Transition<S> {
    /// The row was in a state that may become the other, and is in the other now: do what belongs to the move, once.
    Moved,
    /// The row is in that state already: this is a success, and nothing is to be done.
    AlreadyThere,
    /// The row is in this state, which may not become the other.
    Refused(S),
    /// There is no such row.
    Missing,
}

impl<S> Transition<S> {
    /// Returns whether the row is in the requested state.
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Moved | Self::AlreadyThere)
    }

    /// Returns the HTTP status for this outcome: 200, 409 if the move was refused, 404 if there is no such row.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Moved | Self::AlreadyThere => StatusCode::OK,
            Self::Refused(_) => StatusCode::CONFLICT,
            Self::Missing => StatusCode::NOT_FOUND,
        }
    }
}

impl<S: RowState> fmt::Display for Transition<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Moved => f.write_str("moved"),
            Self::AlreadyThere => f.write_str("already there"),
            Self::Refused(is) => write!(f, "refused: is now {}", is.as_str()),
            Self::Missing => f.write_str("no such row"),
        }
    }
}

/// The outcome of a write to [`Versioned`](super::Versioned) rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "nothing may have been written"]
#[non_exhaustive]
pub enum Written {
    /// The row was written, and its version has grown.
    Done,
    /// The row has another version: somebody else has written it. Read it anew, and decide anew.
    Stale,
    /// The row has that version, but less than the required amount, or the closure has returned `None`. Trying again
    /// does not help.
    Refused,
    /// There is no such row.
    Missing,
}

impl Written {
    /// Returns whether the row was written.
    pub fn is_success(&self) -> bool {
        *self == Self::Done
    }

    /// Returns the HTTP status for this outcome: 200, 412 if the version was stale (RFC 9110, section 15.5.13), 409 if
    /// the write was refused, 404 if there is no such row.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Done => StatusCode::OK,
            Self::Stale => StatusCode::PRECONDITION_FAILED,
            Self::Refused => StatusCode::CONFLICT,
            Self::Missing => StatusCode::NOT_FOUND,
        }
    }
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Done => "written",
            Self::Stale => "stale: written by another",
            Self::Refused => "refused: too little is there",
            Self::Missing => "no such row",
        })
    }
}

/// The outcome of an insert into a [`DedupTable`](super::DedupTable).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the work that a number stands for is done only if the number is new"]
#[non_exhaustive]
pub enum Inserted {
    /// The number was not in the table, and is now: do the work that it stands for, once.
    New,
    /// The number was in the table already: this is a success, and nothing is to be done.
    AlreadyThere,
}

impl Inserted {
    /// Returns the HTTP status for this outcome: 200.
    pub fn status(&self) -> StatusCode {
        StatusCode::OK
    }
}

impl fmt::Display for Inserted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::New => "new",
            Self::AlreadyThere => "already there",
        })
    }
}

/// Responses with the status, and a word that states the reason.
#[cfg(feature = "axum")]
mod response {
    use axum::response::{IntoResponse, Response};

    use super::{Inserted, RowState, Transition, Written};

    impl<S: RowState> IntoResponse for Transition<S> {
        fn into_response(self) -> Response {
            (self.status(), self.to_string()).into_response()
        }
    }

    impl IntoResponse for Written {
        fn into_response(self) -> Response {
            (self.status(), self.to_string()).into_response()
        }
    }

    impl IntoResponse for Inserted {
        fn into_response(self) -> Response {
            (self.status(), self.to_string()).into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Closed;

    impl RowState for Closed {
        const ALL: &'static [Self] = &[Self];

        fn as_str(self) -> &'static str {
            "closed"
        }

        fn may_become(self, _: Self) -> bool {
            true
        }
    }

    #[test]
    fn outcomes_have_a_status_and_a_word() {
        let refused = Transition::Refused(Closed);
        assert_eq!((refused.status().as_u16(), &*refused.to_string()), (409, "refused: is now closed"));
        assert_eq!(Transition::<Closed>::AlreadyThere.status(), 200);
        assert!(Transition::<Closed>::AlreadyThere.is_success() && !refused.is_success());
        let statuses = [Written::Done, Written::Stale, Written::Refused, Written::Missing].map(|w| w.status().as_u16());
        assert_eq!(statuses, [200, 412, 409, 404]);
        assert_eq!(Inserted::AlreadyThere.status(), 200);
    }
}
