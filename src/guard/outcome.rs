use std::fmt;

use http::StatusCode;

use super::State;

/// How a move of a [`StateMachine`](super::StateMachine) went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a move may have been refused"]
#[non_exhaustive]
pub enum Transition<S> {
    /// The row was in a state that may become the other, and is in that now: what goes with it is to be done, once.
    Moved,
    /// The row is there already: this is a success, and nothing is to be done.
    AlreadyThere,
    /// The row is in this state, which may not become the other.
    Refused(S),
    /// There is no such row.
    Missing,
}

impl<S> Transition<S> {
    /// Whether the row is where it was to be.
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Moved | Self::AlreadyThere)
    }

    /// The status of an answer that says so: 200, 409 if it was refused, 404 if there is no such row.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Moved | Self::AlreadyThere => StatusCode::OK,
            Self::Refused(_) => StatusCode::CONFLICT,
            Self::Missing => StatusCode::NOT_FOUND,
        }
    }
}

impl<S: State> fmt::Display for Transition<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Moved => f.write_str("moved"),
            Self::AlreadyThere => f.write_str("already there"),
            Self::Refused(is) => write!(f, "refused: is now {}", is.as_str()),
            Self::Missing => f.write_str("no such row"),
        }
    }
}

/// How a write to [`Versioned`](super::Versioned) rows went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "nothing may have been written"]
#[non_exhaustive]
pub enum Written {
    /// It was written, and the version has grown.
    Done,
    /// The row has another version: somebody else has written. To be read anew, with all that was decided by it.
    Stale,
    /// The row has that version, and not as much as is asked for, or the closure has given nothing. Trying again does not
    /// help.
    Refused,
    /// There is no such row.
    Missing,
}

impl Written {
    /// Whether it was written.
    pub fn is_success(&self) -> bool {
        *self == Self::Done
    }

    /// The status of an answer that says so: 200, 412 if it was stale (RFC 9110, section 15.5.13), 409 if it was
    /// refused, 404 if there is no such row.
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

/// Whether a number was in a [`FlowTable`](super::FlowTable).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "what a number stands for is done only where it is new"]
#[non_exhaustive]
pub enum Flow {
    /// It was not, and is now: what it stands for is to be done, once.
    New,
    /// It was: this is a success, and nothing is to be done.
    Known,
}

impl Flow {
    /// The status of an answer that says so: 200.
    pub fn status(&self) -> StatusCode {
        StatusCode::OK
    }
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::New => "new",
            Self::Known => "known",
        })
    }
}

/// The status, and a word that says why.
#[cfg(feature = "axum")]
mod response {
    use axum::response::{IntoResponse, Response};

    use super::{Flow, State, Transition, Written};

    impl<S: State> IntoResponse for Transition<S> {
        fn into_response(self) -> Response {
            (self.status(), self.to_string()).into_response()
        }
    }

    impl IntoResponse for Written {
        fn into_response(self) -> Response {
            (self.status(), self.to_string()).into_response()
        }
    }

    impl IntoResponse for Flow {
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

    impl State for Closed {
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
        assert_eq!(Flow::Known.status(), 200);
    }
}
