//! Messages and functions in transactions, off the web.

use std::{convert::Infallible, panic::AssertUnwindSafe, time::Duration};

use futures_util::FutureExt;
use tower::{Layer, Service, ServiceExt, service_fn};
use tower_idempotency::{
    ConsumerLayer, Once, Operation, Refusal,
    consumer::{Action, Consumed},
    fingerprint::Fingerprint,
    run::RunError,
};

use super::process::Process;
use crate::counting::statements_about;
use crate::database::TestDatabase;

/// What an order has its service do before it ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum End {
    Pays,
    Fails,
    FailsPermanently,
    EndsTheTransaction,
    /// It leaves what the database refuses at the commit.
    BreaksAtTheCommit,
    Panics,
}

pub(crate) struct Order {
    id: &'static str,
    end: End,
    pub(crate) operation: Option<Operation>,
}

impl Order {
    pub(crate) fn new(id: &'static str, end: End) -> Self {
        Self { id, end, operation: None }
    }
}

async fn pay_out<D: TestDatabase>(order: Order) -> Result<(), &'static str> {
    let operation = order.operation.ok_or("no operation")?;
    let mut tx = operation.transaction::<D>().map_err(|_| "no transaction")?;
    D::say(&mut tx, &format!("INSERT INTO effects VALUES ('{}')", order.id)).await.map_err(|_| "no effect")?;
    match order.end {
        End::Pays => Ok(()),
        End::Fails => Err("told to fail"),
        End::FailsPermanently => {
            operation.fail_permanently();
            Err("told to fail")
        }
        End::EndsTheTransaction => D::say(&mut tx, "ROLLBACK").await.map_err(|_| "no rollback"),
        End::BreaksAtTheCommit => D::say(&mut tx, "INSERT INTO children VALUES (7)").await.map_err(|_| "no child"),
        End::Panics => panic!("told to panic"),
    }
}

pub(crate) fn consumer<D: TestDatabase>(process: &Process<D>) -> ConsumerLayer<Order> {
    let id = |order: &Order| order.id.to_owned();
    ConsumerLayer::transactional_with_fingerprint(process.store.clone(), "payouts", id, |_| Fingerprint::OFF)
        .operation(|order, operation| order.operation = Some(operation))
}

pub(crate) async fn deliver<D: TestDatabase>(
    layer: &ConsumerLayer<Order>,
    id: &'static str,
    end: End,
) -> Consumed<(), &'static str> {
    let mut payouts = layer.layer(service_fn(pay_out::<D>));
    payouts.ready().await.unwrap().call(Order::new(id, end)).await.unwrap()
}

pub(crate) async fn messages<D: TestDatabase>() {
    let process = Process::<D>::start(&D::place().await).await;
    let layer = consumer(&process);
    let failed = deliver::<D>(&layer, "a", End::Fails).await;
    assert!(matches!(failed, Consumed::Failed { attempt: 1, .. }), "{failed:?}");
    assert!(matches!(failed.action(), Action::Requeue { .. }));
    assert_eq!(process.effects("a").await, 0);

    assert_eq!(deliver::<D>(&layer, "a", End::Pays).await, Consumed::Executed(()));
    assert_eq!(deliver::<D>(&layer, "a", End::Pays).await.action(), Action::Acknowledge);
    assert_eq!((process.effects("a").await, process.records().await), (1, 1));
}

/// The attempts outlive the transactions that they were made in, whichever process makes them.
pub(crate) async fn attempts_are_bounded<D: TestDatabase>() {
    let place = D::place().await;
    let one = Process::<D>::start(&place).await;
    let other = Process::<D>::start(&place).await;
    let layers = [&one, &other].map(|process| consumer(process).attempts(5));
    for attempt in 1..5 {
        let failed = deliver::<D>(&layers[attempt % 2], "a", End::Fails).await;
        let made = u32::try_from(attempt).unwrap();
        assert!(matches!(failed, Consumed::Failed { attempt, .. } if attempt == made), "{failed:?}");
    }
    let exhausted = deliver::<D>(&layers[0], "a", End::Fails).await;
    assert!(matches!(exhausted, Consumed::Exhausted { error: Some("told to fail"), attempts: 5, .. }), "{exhausted:?}");
    assert_eq!(exhausted.action(), Action::DeadLetter);
    assert_eq!(one.effects("a").await, 0);

    // Brought back, its count begins anew.
    tokio::time::sleep(Duration::from_millis(10)).await;
    let failed = deliver::<D>(&layers[1], "a", End::Fails).await;
    assert!(matches!(failed, Consumed::Failed { attempt: 1, .. }), "{failed:?}");
    assert_eq!(deliver::<D>(&layers[1], "a", End::Pays).await, Consumed::Executed(()));
    assert_eq!(deliver::<D>(&layers[0], "a", End::Pays).await, Consumed::AlreadyDone);
    assert_eq!(one.effects("a").await, 1);
}

/// However they end: with an error, in a panic, or rolled back.
pub(crate) async fn attempts_of_all_kinds_are_bounded<D: TestDatabase>() {
    let process = Process::<D>::start(&D::place().await).await;
    let layer = consumer(&process).attempts(4);
    let failed = deliver::<D>(&layer, "a", End::Fails).await;
    assert!(matches!(failed, Consumed::Failed { attempt: 1, .. }), "{failed:?}");
    let undone = deliver::<D>(&layer, "a", End::EndsTheTransaction).await;
    assert!(matches!(undone, Consumed::RolledBack { attempt: 2, .. }), "{undone:?}");
    for _ in 3..=4 {
        let panicked = AssertUnwindSafe(deliver::<D>(&layer, "a", End::Panics)).catch_unwind().await;
        assert!(panicked.is_err());
    }
    // A panic answers nothing, so the next delivery shows it.
    let exhausted = deliver::<D>(&layer, "a", End::Pays).await;
    assert!(matches!(exhausted, Consumed::Exhausted { error: None, attempts: 4, .. }), "{exhausted:?}");
    assert_eq!(exhausted.action(), Action::DeadLetter);
    assert_eq!(process.effects("a").await, 0);

    // Brought back, its count begins anew.
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(deliver::<D>(&layer, "a", End::Pays).await, Consumed::Executed(()));
    assert_eq!(process.effects("a").await, 1);
}

/// To count the attempts of messages takes one statement more if one fails, and none if it succeeds.
pub(crate) async fn counting_costs_one_statement_of_a_failure<D: TestDatabase>() {
    let place = D::place().await;
    let table = tower_idempotency::sql::SqlStore::<D>::builder().table("counted").unwrap().without_purge();
    let store = table.pool(D::pool(&place, 4).await);
    let process = Process::<D>::of(&place, store, |layer| layer).await;
    let (layer, once) = (consumer(&process).attempts(5), Once::transactional(process.store.clone(), "job"));
    let sent = statements_about("counted");
    let run = async |key: &str, fails: bool| {
        let before = sent();
        let ran = once.run(key, move |_| async move { if fails { Err("told to fail") } else { Ok(()) } }).await;
        assert_eq!(ran.is_err(), fails);
        sent() - before
    };
    let message = async |id, end| {
        let before = sent();
        assert_eq!(matches!(deliver::<D>(&layer, id, end).await, Consumed::Executed(())), end == End::Pays);
        sent() - before
    };
    let (succeeds, fails) = (run("a", false).await, run("b", true).await);
    assert!(fails >= 1 && succeeds > fails, "{fails} statements, {succeeds} with the settlement");
    assert_eq!(message("c", End::Pays).await, succeeds);
    assert_eq!(message("d", End::Fails).await, fails + 1);
}

/// The service handled it, and the database takes none of it: the message is given back, and not lost. MariaDB has no such
/// constraints.
pub(crate) async fn a_commit_that_fails_is_given_back<D: TestDatabase>() {
    if D::NAME == "MySQL" {
        return;
    }
    let process = Process::<D>::start(&D::place().await).await;
    process.run("CREATE TABLE parents (id INTEGER PRIMARY KEY)").await;
    let child = "CREATE TABLE children (parent INTEGER REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED)";
    process.run(child).await;
    let layer = consumer(&process).attempts(3);
    for made in 1..3 {
        let undone = deliver::<D>(&layer, "a", End::BreaksAtTheCommit).await;
        assert!(matches!(undone, Consumed::RolledBack { attempt, .. } if attempt == made), "{undone:?}");
        assert!(matches!(undone.action(), Action::Requeue { delay } if !delay.is_zero()));
        assert_eq!(process.effects("a").await, 0);
    }
    assert_eq!(deliver::<D>(&layer, "a", End::Pays).await, Consumed::Executed(()));
    assert_eq!(deliver::<D>(&layer, "a", End::Pays).await, Consumed::AlreadyDone);
    assert_eq!(process.effects("a").await, 1);
}

/// It was handled, and nothing of that is left: the message is not lost.
pub(crate) async fn what_is_rolled_back_is_given_back<D: TestDatabase>() {
    let process = Process::<D>::start(&D::place().await).await;
    let layer = consumer(&process).attempts(3);
    for made in 1..3 {
        let undone = deliver::<D>(&layer, "a", End::EndsTheTransaction).await;
        assert!(matches!(undone, Consumed::RolledBack { attempt, .. } if attempt == made), "{undone:?}");
        assert!(matches!(undone.action(), Action::Requeue { delay } if !delay.is_zero()));
        assert_eq!(process.effects("a").await, 0);
    }
    let exhausted = deliver::<D>(&layer, "a", End::EndsTheTransaction).await;
    assert!(matches!(exhausted, Consumed::Exhausted { error: None, attempts: 3, .. }), "{exhausted:?}");
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(deliver::<D>(&layer, "a", End::Pays).await, Consumed::Executed(()));
    assert_eq!(process.effects("a").await, 1);
}

/// What never succeeds is recorded, and what was done for it is not.
pub(crate) async fn a_permanent_failure_is_recorded_without_its_effect<D: TestDatabase>() {
    let process = Process::<D>::start(&D::place().await).await;
    let layer = consumer(&process);
    let by_type = layer.clone().permanent_errors(|error: &&'static str| *error == "told to fail");
    let everything = layer.clone().keep_errors(true);
    for (id, layer, end) in
        [("a", &layer, End::FailsPermanently), ("b", &by_type, End::Fails), ("c", &everything, End::Fails)]
    {
        let failed = deliver::<D>(layer, id, end).await;
        assert!(matches!(failed, Consumed::FailedPermanently { error: Some("told to fail"), .. }), "{id}: {failed:?}");
        assert_eq!(failed.action(), Action::DeadLetter);
        let again = deliver::<D>(layer, id, End::Pays).await;
        assert!(matches!(again, Consumed::FailedPermanently { error: None, .. }), "{id}: {again:?}");
        assert_eq!(process.effects(id).await, 0);
    }
    assert_eq!(process.records().await, 3);
}

/// An attempt that failed late, or was repeated, changes nothing of what others have recorded since.
pub(crate) async fn a_failure_overwrites_nothing<D: TestDatabase>() {
    use tower_idempotency::store::{Claim, FailedAttempt, Granted, RecordKey, State, StoreAdmin, TransactionalStore};

    let process = Process::<D>::start(&D::place().await).await;
    let hour = Duration::from_secs(3600);
    let key = RecordKey::new("payouts", None, "a").unwrap();
    let record = async |attempt, payload: Option<&'static [u8]>| {
        let claim = Claim::new(hour, hour);
        let mut granted = Granted::first(&claim);
        granted.attempt = attempt;
        let failed = FailedAttempt::new(granted, payload.map(Into::into), hour);
        process.store.record_failure(&key, &claim, &failed).await.unwrap();
        let found = process.store.inspect(&key).await.unwrap().unwrap();
        (found.state, found.attempt)
    };
    assert_eq!(record(2, None).await, (State::Released, 2));
    assert_eq!(record(1, None).await, (State::Released, 2));
    assert_eq!(record(2, Some(b"late")).await, (State::Released, 2));
    assert_eq!(record(3, Some(b"failed")).await, (State::Settled, 3));
    assert_eq!(record(4, None).await, (State::Settled, 3));
    process.run("UPDATE idempotency_records SET expires_ms = 1").await;
    assert_eq!(record(1, None).await, (State::Released, 1));
    let found = process.store.inspect(&key).await.unwrap().unwrap();
    assert!(found.payload.is_none() && found.expires_in > hour / 2, "{found:?}");
}

pub(crate) async fn functions<D: TestDatabase>() {
    let process = Process::<D>::start(&D::place().await).await;
    let once = Once::transactional(process.store.clone(), "close-of-day");
    let run = async |fails: bool| {
        once.run("2026-11-29", move |operation: Operation| async move {
            let mut tx = operation.transaction::<D>().unwrap();
            D::say(&mut tx, "INSERT INTO effects VALUES ('closed')").await.unwrap();
            if fails { Err("told to fail") } else { Ok(7) }
        })
        .await
    };
    assert!(matches!(run(true).await, Err(RunError::Failed("told to fail"))));
    assert_eq!((process.effects("closed").await, process.records().await), (0, 0));
    for _ in 0..2 {
        assert_eq!(run(false).await, Ok(7));
    }
    assert_eq!(process.effects("closed").await, 1);

    // An error that is kept is recorded, and what was done for it is not.
    let kept = once.clone().keep_errors(true);
    let effect = |operation: Operation| async move {
        let mut tx = operation.transaction::<D>().unwrap();
        D::say(&mut tx, "INSERT INTO effects VALUES ('kept')").await.unwrap();
        Err::<u32, _>("told to fail")
    };
    assert_eq!(kept.run("kept", effect).await, Err(RunError::Failed("told to fail")));
    assert_eq!(kept.run("kept", effect).await, Err(RunError::Refused(Refusal::HandlerFailed)));
    assert_eq!(process.effects("kept").await, 0);

    // A function that takes no transaction has its value recorded all the same.
    let plain = once.run("plain", |_| async { Ok::<_, Infallible>(1) }).await;
    assert_eq!(plain, Ok(1));
}
