//! The rules, on every state of a record.

use std::time::Duration;

use super::*;
use crate::value::{Binding, Caller, Claim, Claimant, Issue, Origin, Record, Release, SecretNumber, Settlement, State};

const NOW: u64 = 1_000;

fn runner() -> Claimant {
    Claimant::from_bytes([1; 16])
}

fn operator() -> Claimant {
    Claimant::from_bytes([2; 16])
}

fn hold(state: State, claimant: Claimant) -> Hold {
    Hold { state, claimant, lapsed: false }
}

fn lapsed() -> Hold {
    Hold { lapsed: true, ..hold(State::Running, runner()) }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn claim() -> Claim {
    Claim::new(ms(30), ms(500))
}

fn running(before: Option<&StoredRecord>, claim: &Claim) -> StoredRecord {
    match judge(before.map(StoredRecord::head).as_ref(), claim, NOW) {
        Verdict::Grant(granted) => StoredRecord::running(before, claim, granted, NOW),
        verdict => panic!("{verdict:?}"),
    }
}

#[test]
fn a_claimant_ends_its_claim_however_late_it_comes() {
    for hold in [hold(State::Running, runner()), lapsed()] {
        assert_eq!(hold.settle(runner(), Behalf::Own), Ending::Write);
        assert_eq!(hold.release(runner(), Behalf::Own), Ending::Write);
        assert!(hold.runs_under(runner()) && !hold.runs_under(operator()));
        assert_eq!(hold.settle(operator(), Behalf::Own), Ending::Refused);
        assert_eq!(hold.release(operator(), Behalf::Own), Ending::Refused);
    }
}

#[test]
fn an_operator_ends_a_lapsed_claim_of_the_runner_that_it_saw() {
    let seen = Behalf::Of(runner());
    assert_eq!(lapsed().settle(operator(), seen), Ending::Write);
    assert_eq!(lapsed().release(operator(), seen), Ending::Write);
    assert_eq!(hold(State::Running, runner()).settle(operator(), seen), Ending::Refused);
    assert_eq!(lapsed().settle(operator(), Behalf::Of(operator())), Ending::Refused);
}

#[test]
fn a_repetition_is_done_already_and_another_end_is_refused() {
    for behalf in [Behalf::Own, Behalf::Of(runner())] {
        assert_eq!(hold(State::Settled, operator()).settle(operator(), behalf), Ending::AlreadyDone);
        assert_eq!(hold(State::Settled, operator()).release(operator(), behalf), Ending::Refused);
        assert_eq!(hold(State::Settled, runner()).settle(operator(), behalf), Ending::Refused);
        for released in [State::Released, State::Issued] {
            assert_eq!(hold(released, operator()).release(operator(), behalf), Ending::AlreadyDone);
            assert_eq!(hold(released, operator()).settle(operator(), behalf), Ending::Refused);
        }
    }
}

#[test]
fn a_runner_that_ended_by_itself_is_no_operators_doing() {
    let same = Behalf::Of(runner());
    assert_eq!(hold(State::Settled, runner()).settle(runner(), same), Ending::Refused);
    assert_eq!(hold(State::Released, runner()).release(runner(), same), Ending::Refused);
}

#[test]
fn an_issued_token_names_no_claimant_that_could_release_it() {
    let issued = hold(State::Issued, Claimant::NONE);
    assert_eq!(issued.release(Claimant::NONE, Behalf::Own), Ending::Refused);
}

#[test]
fn a_released_record_is_kept_and_a_released_token_is_issued_again() {
    let mut record = running(None, &claim());
    record.release(&Release::new(runner(), ms(70)), NOW);
    assert_eq!((record.state, record.attempt, record.expires), (State::Released, 1, NOW + 70));
    let binding = Binding::new("order", None);
    let issued = StoredRecord::issued(&Issue::new(binding.clone(), ms(90)), NOW);
    let mut token = running(Some(&issued), &Claim { issued: Some(binding), ..claim() });
    token.release(&Release::new(runner(), ms(7)), NOW + 1);
    assert_eq!((token.state, token.attempt, token.expires), (State::Issued, 1, NOW + 90));
}

#[test]
fn undoing_restores_what_was() {
    let ann = Caller::from_parts(1, [1; 16]);
    let anns = Claim { caller: ann, ..claim() };
    let mut first = running(None, &anns);
    first.release(&Release::undo(runner(), ms(70)), NOW);
    assert_eq!(first.expires, NOW, "nothing is left of a first claim");

    let mut nobodys = running(None, &claim());
    nobodys.release(&Release::new(runner(), ms(70)), NOW);
    let mut next = running(Some(&nobodys), &anns);
    assert_eq!((next.attempt, next.caller, next.caller_is_new), (2, ann, true));
    next.release(&Release::undo(runner(), ms(70)), NOW);
    assert_eq!((next.state, next.attempt), (State::Released, 1));
    assert_eq!((next.caller, next.caller_is_new, next.origin), (Caller::NONE, false, nobodys.origin));

    let binding = Binding::new("order", None);
    let issued = StoredRecord::issued(&Issue::new(binding.clone(), ms(90)), NOW);
    let mut token = running(Some(&issued), &Claim { issued: Some(binding), ..anns });
    token.release(&Release::undo(runner(), ms(7)), NOW);
    assert_eq!((token.state, token.attempt, token.expires), (State::Issued, 0, NOW + 90));
    assert_eq!((token.caller, token.origin, token.secret), (Caller::NONE, Origin::NONE, SecretNumber::NONE));
}

#[test]
fn a_record_and_its_head_tell_the_same() {
    let mut record = running(None, &Claim { caller: Caller::from_parts(1, [1; 16]), ..claim() });
    let read = record.read(NOW + 10);
    assert_eq!((read.lease, read.lease_left, read.lapsed_for), (ms(30), ms(20), Duration::ZERO));
    assert_eq!(read.expires_in, ms(490));
    let head = crate::value::RecordHead::from(&read);
    assert_eq!((head.lease_ends, head.expires), (20, 490));
    let fields = |record: &Record| (record.state, record.claimant, record.attempt, record.caller, record.caller_is_new);
    assert_eq!(fields(&Record::from(&head)), fields(&read));
    record.settle(&Settlement::new(runner(), None, ms(40)), NOW + 20);
    let read = record.read(NOW + 20);
    assert_eq!((read.lease, read.lease_left, read.expires_in), (Duration::ZERO, Duration::ZERO, ms(40)));
}
