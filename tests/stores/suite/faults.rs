use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tower_idempotency::{
    store::{Claim, Claimed, RecordKey, Release, Store, StoreAdmin, StoreErrorKind, StoreVerb},
    testing::{Faults, FaultyStore},
};

use super::model::Model;

const MINUTE: Duration = Duration::from_secs(60);

type Faulty = FaultyStore<Model>;

fn faulty() -> (Faulty, Faults, RecordKey, Claim) {
    let store = FaultyStore::new(Model::new());
    let faults = store.faults();
    let key = RecordKey::new("/orders", None, "key").expect("a valid key");
    (store, faults, key, Claim::new(MINUTE, MINUTE))
}

async fn claim(store: &Faulty, key: &RecordKey, claim: &Claim) -> Result<Claimed, StoreErrorKind> {
    store.claim(key, claim).await.map_err(|error| error.kind())
}

#[tokio::test]
async fn a_failure_before_the_effect_leaves_nothing_and_ends_after_its_times() {
    let (store, faults, key, first) = faulty();
    faults.on(StoreVerb::Claim).times(2).fail(StoreErrorKind::Unavailable);
    for _ in 0..2 {
        assert_eq!(claim(&store, &key, &first).await, Err(StoreErrorKind::Unavailable));
        assert!(store.inspect(&key).await.unwrap().is_none());
    }
    assert!(claim(&store, &key, &first).await.is_ok());
    assert_eq!(faults.calls(StoreVerb::Claim), 3);
    assert_eq!(faults.calls(StoreVerb::Settle), 0);
}

#[tokio::test]
async fn a_failure_after_the_effect_loses_the_answer_only() {
    let (store, faults, key, first) = faulty();
    faults.on(StoreVerb::Claim).once().after_effect().fail(StoreErrorKind::Timeout);
    assert_eq!(claim(&store, &key, &first).await, Err(StoreErrorKind::Timeout));
    assert_eq!(store.inspect(&key).await.unwrap().unwrap().claimant, first.claimant);
}

#[tokio::test]
async fn faults_follow_one_another_and_an_endless_one_gives_way() {
    let (store, faults, key, first) = faulty();
    faults.on(StoreVerb::Claim).once().fail(StoreErrorKind::Full);
    faults.on(StoreVerb::Claim).skip(1).once().fail(StoreErrorKind::Corrupt);
    faults.on(StoreVerb::Claim).fail(StoreErrorKind::Other);
    assert_eq!(claim(&store, &key, &first).await, Err(StoreErrorKind::Full));
    assert!(claim(&store, &key, &first).await.is_ok());
    assert_eq!(claim(&store, &key, &first).await, Err(StoreErrorKind::Corrupt));
    for _ in 0..5 {
        assert_eq!(claim(&store, &key, &first).await, Err(StoreErrorKind::Other));
    }
    faults.on(StoreVerb::Claim).once().fail(StoreErrorKind::Full);
    assert_eq!(claim(&store, &key, &first).await, Err(StoreErrorKind::Full));
    assert!(claim(&store, &key, &first).await.is_ok());
}

#[tokio::test]
async fn no_times_are_no_fault() {
    let (store, faults, key, first) = faulty();
    faults.on(StoreVerb::Claim).times(0).fail(StoreErrorKind::Full);
    assert!(claim(&store, &key, &first).await.is_ok());
}

#[tokio::test]
async fn the_whole_store_is_away_until_healed_but_operators_see_it() {
    let (store, faults, key, first) = faulty();
    faults.on_all().fail(StoreErrorKind::Unavailable);
    assert!(store.claim(&key, &first).await.is_err());
    assert!(store.renew(&key, &first).await.is_err());
    assert!(store.release(&key, &Release::new(first.claimant, MINUTE)).await.is_err());
    assert!(store.changed(&key, first.claimant, MINUTE).await.is_err());
    assert!(store.stats().await.is_ok());
    faults.clone().heal();
    assert!(store.claim(&key, &first).await.is_ok());
    assert!(store.renew(&key, &first).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_hangs_is_never_answered_not_even_after_healing() {
    for after_effect in [false, true] {
        let (store, faults, key, first) = faulty();
        let fault = faults.on(StoreVerb::Claim).once();
        let fault = if after_effect { fault.after_effect() } else { fault };
        fault.hang();
        let call = store.claim(&key, &first);
        faults.heal();
        assert!(timeout(MINUTE / 2, call).await.is_err());
        assert_eq!(store.inspect(&key).await.unwrap().is_some(), after_effect);
    }
}

#[tokio::test(start_paused = true)]
async fn a_delay_comes_before_the_effect_or_after_it() {
    for after_effect in [false, true] {
        let (store, faults, key, first) = faulty();
        let fault = faults.on(StoreVerb::Claim);
        let fault = if after_effect { fault.after_effect() } else { fault };
        fault.delay(MINUTE);
        let begin = Instant::now();
        let call = tokio::spawn({
            let (store, key, first) = (store.clone(), key.clone(), first.clone());
            async move { store.claim(&key, &first).await.is_ok() }
        });
        sleep(MINUTE / 2).await;
        assert_eq!(store.inspect(&key).await.unwrap().is_some(), after_effect);
        assert!(call.await.unwrap());
        assert!(begin.elapsed() >= MINUTE);
    }
}

#[tokio::test(start_paused = true)]
async fn a_gate_holds_calls_until_it_opens_and_tells_when_they_have_come() {
    let (store, faults, key, first) = faulty();
    let gate = faults.on(StoreVerb::Claim).times(2).hold();
    let call = || {
        let (store, key, first) = (store.clone(), key.clone(), first.clone());
        tokio::spawn(async move { store.claim(&key, &first).await.is_ok() })
    };
    let (one, two) = (call(), call());
    gate.reached(2).await;
    assert!(store.inspect(&key).await.unwrap().is_none());
    assert!(claim(&store, &key, &first).await.is_ok(), "the third call is not held");
    sleep(MINUTE).await;
    assert!(!one.is_finished() && !two.is_finished());
    gate.open();
    assert!(one.await.unwrap() && two.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_is_dropped_is_open_and_one_may_wait_for_calls() {
    let (store, faults, key, first) = faulty();
    let gate = faults.on(StoreVerb::Claim).hold();
    let call = tokio::spawn({
        let (store, key, first) = (store.clone(), key.clone(), first.clone());
        async move { store.claim(&key, &first).await.is_ok() }
    });
    faults.called(StoreVerb::Claim, 1).await;
    drop(gate);
    assert!(call.await.unwrap());
    assert!(timeout(MINUTE, faults.called(StoreVerb::Claim, 2)).await.is_err());
}
