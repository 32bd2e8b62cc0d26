use super::*;
use crate::{
    store::Issued,
    value::{Binding, Issue, State},
};

#[test]
fn tokens_are_issued_claimed_and_issued_again() {
    let (store, clock) = store();
    let unknown = Claim { issued: Some(Binding::new("order", Some("ann"))), ..claim(100, 100) };
    assert_eq!(now(store.claim(&key("t"), &unknown)), Claimed::NotIssued);
    let binding = token(&store, "t", 1000);
    assert_eq!(now(store.issue(&key("t"), &Issue::new(binding.clone(), ms(9)))), Issued::Exists);
    let bob = Claim { issued: Some(Binding::new("order", Some("bob"))), ..claim(100, 100) };
    assert_eq!(now(store.claim(&key("t"), &bob)), Claimed::Foreign);
    assert_eq!(now(store.claim(&key("t"), &claim(100, 100))), Claimed::Foreign);
    let zero = Claimant::from_bytes([0; 16]);
    assert_eq!(refused(&now(store.release(&key("t"), &release(zero, 9)))), Some(State::Issued));

    let ann = Claim { note: "note".into(), ..unknown.clone() };
    assert_eq!(now(store.claim(&key("t"), &ann)), granted(1));
    assert_eq!(store.record("t").unwrap().binding, Some(binding.clone()));
    clock.pass(50);
    assert!(matches!(now(store.release(&key("t"), &release(ann.claimant, 1))), Finished::Done));
    assert!(matches!(now(store.release(&key("t"), &release(ann.claimant, 1))), Finished::AlreadyDone));
    let record = store.record("t").unwrap();
    assert_eq!((record.state, record.attempt, record.expires_in), (State::Issued, 1, ms(950)));
    let again = Claim { claimant: Claimant::random(), ..unknown };
    assert_eq!(now(store.claim(&key("t"), &again)), granted(2));
    assert_eq!(store.record("t").unwrap().note, "");
    assert!(matches!(now(store.settle(&key("t"), &settlement(again.claimant, 70))), Finished::Done));
    assert_eq!(now(store.claim(&key("t"), &bob)), Claimed::Foreign);
    assert_eq!(store.record("t").unwrap().binding, Some(binding));
}

#[test]
fn a_token_that_is_released_after_its_life_is_gone() {
    let (store, clock) = store();
    let issued = Some(token(&store, "t", 1000));
    let claim = Claim { issued, ..claim(100, 5000) };
    now(store.claim(&key("t"), &claim));
    clock.pass(1000);
    assert_eq!(store.record("t").unwrap().state, State::Running);
    assert!(matches!(now(store.release(&key("t"), &release(claim.claimant, 99_999))), Finished::Done));
    assert!(store.record("t").is_none());
    assert_eq!(store.kept(), 0);
}
