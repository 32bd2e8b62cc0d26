//! What a record consists of in every database, and what becomes of it when a claim is taken back.

use std::time::Duration;

use tower_idempotency::store::{
    Caller, Claim, Claimed, Filter, Finished, Origin, Release, Renewed, SecretNumber, State, Store, StoreAdmin,
    TraceContext,
};

use super::{
    races::{MINUTE, claim, key, settlement},
    run, store,
};
use crate::database::TestDatabase;

fn ann() -> Caller {
    Caller::from_parts(1, [0xa0; 16])
}

fn of_ann(secret: u32, trace: u8) -> Claim {
    let mut claim = claim();
    claim.caller = ann();
    claim.secret = SecretNumber::from_u32(secret);
    claim.trace = Some(TraceContext::new([trace; 16], [trace; 8], 1));
    claim
}

/// Each field of the record format goes into the table and comes out of it, through claims, releases and a settlement.
pub(super) async fn all_of_a_claim_is_kept<D: TestDatabase>() {
    let (_place, store) = store::<D>().await;
    let key = key("kept");
    let nobodys = claim();
    store.claim(&key, &nobodys).await.unwrap();
    let record = store.inspect(&key).await.unwrap().unwrap();
    assert_eq!((record.caller, record.caller_is_new, record.secret), (Caller::NONE, false, SecretNumber::NONE));
    assert_eq!((record.origin, record.trace), (Origin::NONE, None));
    store.release(&key, &Release::new(nobodys.claimant, MINUTE)).await.unwrap();

    let anns = of_ann(0, 2);
    let Claimed::Granted(granted) = store.claim(&key, &anns).await.unwrap() else { panic!("not granted") };
    assert_eq!((granted.attempt, granted.origin, granted.caller_is_new), (2, Origin::NONE, true));
    store.settle(&key, &settlement(&anns)).await.unwrap();
    let listed = store.list(Filter::State(State::Settled), None, 10).await.unwrap().entries.pop().unwrap().record;
    for record in [store.inspect(&key).await.unwrap().unwrap(), listed] {
        assert_eq!((record.caller, record.caller_is_new, record.origin), (ann(), true, Origin::NONE));
        assert_eq!((record.trace, record.attempt), (anns.trace, 2));
    }
    store.forget(&key).await.unwrap();

    // The largest number of a secret that there is.
    let first = of_ann(u32::MAX, 1);
    store.claim(&key, &first).await.unwrap();
    let record = store.inspect(&key).await.unwrap().unwrap();
    assert_eq!((record.secret, record.origin), (first.secret, Origin::new(ann(), first.secret)));
    assert!(record.caller_is_new);
    assert!(
        matches!(store.claim(&key, &first).await.unwrap(), Claimed::Granted(again) if again.origin == record.origin)
    );
    store.forget(&key).await.unwrap();
}

pub(super) async fn a_claim_can_be_taken_back<D: TestDatabase>() {
    let (_place, store) = store::<D>().await;
    let key = key("undone");
    let undo = |claim: &Claim| Release::undo(claim.claimant, MINUTE);

    let first = of_ann(0, 1);
    store.claim(&key, &first).await.unwrap();
    let stranger = store.release(&key, &undo(&claim())).await.unwrap();
    assert!(matches!(stranger, Finished::Refused(Some(record)) if record.claimant == first.claimant));
    assert!(matches!(store.release(&key, &undo(&first)).await.unwrap(), Finished::Done));
    assert!(store.inspect(&key).await.unwrap().is_none(), "a first claim leaves nothing");
    assert!(matches!(store.release(&key, &undo(&first)).await.unwrap(), Finished::Refused(None)));

    let nobodys = claim();
    store.claim(&key, &nobodys).await.unwrap();
    store.release(&key, &Release::new(nobodys.claimant, MINUTE)).await.unwrap();
    let second = of_ann(0, 2);
    store.claim(&key, &second).await.unwrap();
    for expected in [false, true] {
        let undone = store.release(&key, &undo(&second)).await.unwrap();
        assert_eq!(matches!(undone, Finished::AlreadyDone), expected, "{undone:?}");
    }
    let record = store.inspect(&key).await.unwrap().unwrap();
    assert_eq!((record.state, record.attempt, record.caller), (State::Released, 1, Caller::NONE));
    assert!(!record.caller_is_new && record.expires_in > Duration::from_secs(50));
    assert_eq!(store.claim(&key, &second).await.unwrap(), Claimed::Withdrawn, "a late copy");
    let third = claim();
    assert!(matches!(store.claim(&key, &third).await.unwrap(), Claimed::Granted(granted) if granted.attempt == 2));
    store.settle(&key, &settlement(&third)).await.unwrap();
    assert!(matches!(store.release(&key, &undo(&third)).await.unwrap(), Finished::Refused(Some(_))));
    store.forget(&key).await.unwrap();
}

/// In a dead runner's place, too, and only in that of one.
pub(super) async fn an_abandoned_claim_can_be_taken_back<D: TestDatabase>() {
    let (_place, store) = store::<D>().await;
    let key = key("abandoned");
    let alive = claim();
    store.claim(&key, &alive).await.unwrap();
    let by = Release::undo(claim().claimant, MINUTE);
    assert!(matches!(store.release_as(&key, alive.claimant, &by).await.unwrap(), Finished::Refused(Some(_))));
    store.forget(&key).await.unwrap();
    let lapsed = Claim::new(Duration::ZERO, MINUTE);
    store.claim(&key, &lapsed).await.unwrap();
    assert!(matches!(store.release_as(&key, lapsed.claimant, &by).await.unwrap(), Finished::Done));
    assert!(store.inspect(&key).await.unwrap().is_none());
}

/// Whatever a later version means by its row, it is neither a match nor free, and nobody changes it.
pub(super) async fn a_row_of_a_later_version<D: TestDatabase>() {
    let (_place, store) = store::<D>().await;
    let (key, runner) = (key("later"), claim());
    store.claim(&key, &runner).await.unwrap();
    run::<D>(store.pool(), "UPDATE idempotency_records SET version = 2").await;
    assert_eq!(store.claim(&key, &claim()).await.unwrap(), Claimed::Incompatible);
    assert_eq!(store.renew(&key, &runner).await.unwrap(), Renewed::Lost);
    let release = Release::new(runner.claimant, MINUTE);
    assert!(store.settle(&key, &settlement(&runner)).await.is_err());
    assert!(store.release(&key, &release).await.is_err());
    assert!(store.release(&key, &Release::undo(runner.claimant, MINUTE)).await.is_err());
    let error = store.inspect(&key).await.unwrap_err();
    assert!(error.to_string().contains("later version"), "{error}");
    assert!(store.list(Filter::All, None, 10).await.unwrap().entries.is_empty());
    let untouched = "SELECT COUNT(*) FROM idempotency_records WHERE version = 2 AND state = 'running'";
    let mut connection = store.pool().acquire().await.unwrap();
    assert_eq!(D::tell(&mut connection, untouched).await.unwrap(), 1);
    drop(connection);
    assert!(store.forget(&key).await.unwrap(), "an operator may remove it");
}
