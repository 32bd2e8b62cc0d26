use crate::value::{Caller, Origin, RecordHead, SecretNumber, State};

/// Returns state and expiry of a record whose claim is released: a token is issued again, with its first expiry.
#[inline]
pub(crate) fn released(token_expires: Option<u64>, keep_until: u64) -> (State, u64) {
    match token_expires {
        Some(first_expiry) => (State::Issued, first_expiry),
        None => (State::Released, keep_until),
    }
}

/// What a record has of the claims before the one that is undone. No claim has brought its caller then.
pub(crate) struct Undone {
    pub(crate) attempt: u32,
    pub(crate) caller: Caller,
    pub(crate) secret: SecretNumber,
    pub(crate) origin: Origin,
}

/// Returns what is left if the last claim is undone; `None` if the record began with it, so that nothing is.
pub(crate) fn undone(head: &RecordHead<'_>) -> Option<Undone> {
    let attempt = head.attempt.saturating_sub(1);
    let is_token = head.binding.is_some();
    if attempt == 0 && !is_token {
        return None;
    }
    let caller = if head.caller_is_new { Caller::NONE } else { head.caller };
    let (secret, origin) = match attempt {
        0 => (SecretNumber::NONE, Origin::NONE),
        _ => (head.secret, head.origin),
    };
    Some(Undone { attempt, caller, secret, origin })
}
