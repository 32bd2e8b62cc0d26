use super::digest::{Digest, hex};
use crate::value::{Origin, RecordKey, Secret, SecretNumber};

/// The beginning of the derivation's input, which no other digest has. It counts the ways of deriving, and goes with
/// the version of a record's layout: an existing record keeps the way that it began with.
const LABEL: &[u8] = b"tower-idempotency: child key, 2";

/// Derives a key for one step of an operation, as 64 hexadecimal digits.
///
/// It depends on the operation (route, scope, key), on who began it, and on the step. It does not depend on anything
/// that a later attempt may bring along, such as other content or a new secret. Returns `None` if the secret of the
/// first claim is not at hand.
pub(crate) fn child_key(key: &RecordKey, origin: Origin, secret: Option<&Secret>, step: &str) -> Option<String> {
    let caller = origin.caller.to_bytes();
    let parts = [LABEL, key.as_bytes(), &caller, step.as_bytes()];
    if origin.secret != SecretNumber::NONE {
        return Some(hex(&secret?.mac(origin.secret, &parts)?));
    }
    let mut digest = Digest::new();
    for part in parts {
        digest.part(part);
    }
    Some(hex(&digest.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Caller;

    fn order() -> RecordKey {
        RecordKey::new("/orders", Some("ann"), "7f0c").unwrap()
    }

    fn of(key: &RecordKey, caller: u8, step: &str) -> String {
        let origin = Origin::new(Caller::from_parts(1, [caller; 16]), SecretNumber::NONE);
        child_key(key, origin, None, step).unwrap()
    }

    #[test]
    fn operations_callers_and_steps_have_keys_of_their_own() {
        let first = of(&order(), 1, "charge-card");
        assert_eq!((first.len(), &first), (64, &of(&order(), 1, "charge-card")));
        let others = [
            of(&order(), 1, "charge"),
            of(&order(), 1, ""),
            of(&order(), 2, "charge-card"),
            of(&RecordKey::new("/orders", None, "7f0c").unwrap(), 1, "charge-card"),
            of(&RecordKey::new("/orders", Some("ann"), "7f0").unwrap(), 1, "ccharge-card"),
        ];
        assert!(others.iter().all(|other| *other != first));
        assert!(RecordKey::new("/", None, &first).is_ok());
    }

    /// Every later version must derive the same key.
    #[test]
    fn a_known_key() {
        assert_eq!(of(&order(), 1, "charge-card"), PINNED);
    }

    const PINNED: &str = "0dc2a3ba6f6fa187b954f98044abee7d1aa6a739f3950c121b5547c6c0c713e7";

    #[test]
    fn a_key_depends_on_the_secret_of_the_first_claim_and_not_on_the_current_one() {
        let (old, new) = (Secret::new([1; 32]).unwrap(), Secret::new([2; 32]).unwrap());
        let origin = Origin::new(Caller::NONE, old.number());
        let first = child_key(&order(), origin, Some(&old), "x");
        assert!(first.is_some());
        let both = new.clone().accept([1; 32]).unwrap();
        assert_eq!(child_key(&order(), origin, Some(&both), "x"), first);
        assert_ne!(child_key(&order(), Origin::new(Caller::NONE, new.number()), Some(&both), "x"), first);
        assert_eq!(child_key(&order(), origin, Some(&new), "x"), None);
        assert_eq!(child_key(&order(), origin, None, "x"), None);
        assert_eq!(child_key(&order(), Origin::NONE, Some(&new), "x"), child_key(&order(), Origin::NONE, None, "x"));
    }
}
