use std::fmt;

use bytes::Bytes;

/// Text of clients and handlers, of which only the length is shown: it must not appear in logs.
pub(crate) struct Unseen<'a>(pub(crate) &'a Bytes);

impl fmt::Debug for Unseen<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{} bytes>", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        store::Claimed,
        value::{Claim, Claimant, Origin, Record, Settlement, State},
    };

    #[test]
    fn what_was_said_is_not_shown() {
        let said = || Bytes::from_static(b"hidden");
        let claim = Claim { note: said(), ..Claim::new(Duration::ZERO, Duration::ZERO) };
        let settlement = Settlement::new(claim.claimant, Some(said()), Duration::ZERO);
        let record =
            Record { note: said(), payload: Some(said()), ..Record::new(State::Settled, Claimant::random(), 1) };
        let shown = format!("{claim:?} {settlement:?} {record:?} {:?}", Claimed::Settled(Some(said()), Origin::NONE));
        // Not as text, not as numbers.
        assert!(!shown.contains("hidden") && !shown.contains("104, 105"), "{shown}");
        assert_eq!(shown.matches("<6 bytes>").count(), 5, "{shown}");
    }
}
