//! What holds on every database, written out for each of them.

/// The tests of a database: `database` gives what keeps it alive, and a pool; `fresh` makes the tables of the
/// model anew.
///
/// All rules are one test, since a server takes longer to start than they take.
macro_rules! rules {
    ($database:ty, begin: $begin:literal, database: $place:path, fresh: $fresh:path) => {
        use sqlx::{Pool, Row};
        use tower_idempotency::sql::guard::{Inserted, Transition, Written};
        use $crate::guards::model::{ACCOUNTS, CENTS, Dice, ORDER, ORDERS, OWNER, Order, PAYMENTS, SERIAL, all};

        #[tokio::test(flavor = "multi_thread")]
        async fn the_rules_of_guards() {
            let (_alive, pool) = $place().await;
            $fresh(&pool).await;
            a_state_moves_along_its_edges(&pool).await;
            $fresh(&pool).await;
            a_version_is_written_once(&pool).await;
            $fresh(&pool).await;
            a_number_is_new_once(&pool).await;
            $fresh(&pool).await;
            one_of_many_moves(&pool).await;
            $fresh(&pool).await;
            nobody_takes_more_than_there_is(&pool).await;
            $fresh(&pool).await;
            no_update_is_lost(&pool).await;
            $fresh(&pool).await;
            a_number_is_new_to_one_of_many(&pool).await;
        }

        /// A number that a statement gives.
        async fn number(pool: &Pool<$database>, sql: &'static str) -> i64 {
            sqlx::query(sql).fetch_one(pool).await.unwrap().get(0)
        }

        async fn a_state_moves_along_its_edges(pool: &Pool<$database>) {
            let mut connection = pool.acquire().await.unwrap();
            let mut to = async |number: &str, state, serial: &str| {
                ORDERS.on(&mut *connection).set(SERIAL, serial).transition(number, state).await.unwrap()
            };
            assert_eq!(to("A-1", Order::Refunded, "P-0").await, Transition::Refused(Order::Unpaid));
            assert_eq!(to("A-1", Order::Paid, "P-1").await, Transition::Moved);
            assert_eq!(to("A-1", Order::Paid, "P-2").await, Transition::AlreadyThere);
            assert_eq!(to("A-1", Order::Closed, "P-3").await, Transition::Refused(Order::Paid));
            // Nothing may become this.
            assert_eq!(to("A-1", Order::Unpaid, "P-4").await, Transition::Refused(Order::Paid));
            assert_eq!(to("A-1' OR '1' = '1", Order::Paid, "P-5").await, Transition::Missing);
            drop(connection);
            assert_eq!(number(pool, "SELECT COUNT(*) FROM orders WHERE number = 'A-1' AND serial = 'P-1'").await, 1);
            assert_eq!(number(pool, "SELECT COUNT(*) FROM orders WHERE state = 'unpaid'").await, 1);
        }

        async fn a_version_is_written_once(pool: &Pool<$database>) {
            let mut tx = pool.begin().await.unwrap();
            let written = ACCOUNTS.on(&mut *tx).set(OWNER, "Ann".to_owned()).add(CENTS, 5).write(1, 0).await.unwrap();
            assert_eq!(written, Written::Done);
            // The same statement with a value of another type.
            let nothing = ACCOUNTS.on(&mut *tx).set(OWNER, "x").add(CENTS, 0_i64).write(1, 0).await.unwrap();
            assert_eq!(nothing, Written::Stale);
            assert_eq!(ACCOUNTS.on(&mut *tx).set(OWNER, "x").write(1, 0).await.unwrap(), Written::Stale);
            assert_eq!(ACCOUNTS.on(&mut *tx).take(CENTS, 1006).write(1, 1).await.unwrap(), Written::Refused);
            // Too little and stale: what it was decided by has changed.
            assert_eq!(ACCOUNTS.on(&mut *tx).take(CENTS, 1006).write(1, 0).await.unwrap(), Written::Stale);
            assert_eq!(ACCOUNTS.on(&mut *tx).take(CENTS, 1005).write(1, 1).await.unwrap(), Written::Done);
            assert_eq!(ACCOUNTS.on(&mut *tx).set(OWNER, "x").write(9, 1).await.unwrap(), Written::Missing);
            let mut modify = async |id: i32, by: i64| {
                let change = |cents: i64| cents.checked_add(by).filter(|cents| *cents >= 0);
                ACCOUNTS.on(&mut *tx).set(OWNER, Some("ann")).modify(id, CENTS, change).await.unwrap()
            };
            assert_eq!(modify(1, -1).await, Written::Refused);
            assert_eq!(modify(1, 1000).await, Written::Done);
            assert_eq!(modify(9, 1).await, Written::Missing);
            tx.commit().await.unwrap();
            assert_eq!(number(pool, "SELECT cents FROM accounts WHERE owner = 'ann' AND version = 3").await, 1000);
        }

        async fn a_number_is_new_once(pool: &Pool<$database>) {
            let mut tx = pool.begin().await.unwrap();
            let mut insert = async |serial: &str, cents: i64, order: &str| {
                PAYMENTS.on(&mut *tx).set(CENTS, cents).set(ORDER, order).insert(serial).await.unwrap()
            };
            assert_eq!(insert("P-1", 5, "A-1").await, Inserted::New);
            assert_eq!(insert("P-1", 7, "A-7").await, Inserted::AlreadyThere);
            // The transaction goes on.
            assert_eq!(insert("P-2", 5, "A-2").await, Inserted::New);
            tx.commit().await.unwrap();
            assert_eq!(number(pool, "SELECT COUNT(*) FROM payments WHERE cents = 5").await, 2);

            let mut connection = pool.acquire().await.unwrap();
            // Another unique key is an error, not a number that is known.
            let error =
                PAYMENTS.on(&mut *connection).set(CENTS, 1_i64).set(ORDER, "A-1").insert("P-3").await.unwrap_err();
            assert!(error.as_database_error().unwrap().is_unique_violation(), "{error}");
            // So are a number that is too long, if the database says so, and a value that is missing.
            if <$database as sqlx::Database>::NAME != "SQLite" {
                let long = "P".repeat(33);
                assert!(PAYMENTS.on(&mut *connection).set(CENTS, 1_i64).insert(&*long).await.is_err());
            }
            assert!(PAYMENTS.on(&mut *connection).insert("P-4").await.is_err());
        }

        /// Ten pay and close one order, half of them in transactions: one moves it.
        async fn one_of_many_moves(pool: &Pool<$database>) {
            for round in 0..20 {
                let order = format!("R-{round}");
                let insert = format!("INSERT INTO orders (number, state) VALUES ('{order}', 'unpaid')");
                sqlx::query(sqlx::AssertSqlSafe(insert)).execute(pool).await.unwrap();
                let outcomes = all(10, |task| {
                    let (pool, order) = (pool.clone(), order.clone());
                    async move {
                        let state = if task % 3 == 2 { Order::Closed } else { Order::Paid };
                        if task % 2 == 0 {
                            let mut connection = pool.acquire().await.unwrap();
                            return (state, ORDERS.on(&mut *connection).transition(&order, state).await.unwrap());
                        }
                        let mut tx = pool.begin_with($begin).await.unwrap();
                        let moved = ORDERS.on(&mut *tx).transition(&order, state).await.unwrap();
                        tx.commit().await.unwrap();
                        (state, moved)
                    }
                })
                .await;
                let moved: Vec<_> = outcomes.iter().filter(|(_, outcome)| *outcome == Transition::Moved).collect();
                let [(to, _)] = moved[..] else { panic!("{outcomes:?}") };
                for (state, outcome) in &outcomes {
                    match outcome {
                        Transition::Moved => {}
                        Transition::AlreadyThere => assert_eq!(state, to),
                        outcome => assert_eq!((outcome, state != to), (&Transition::Refused(*to), true)),
                    }
                }
            }
        }

        /// Ten take what they like from one account: it never has less than nothing, and what is missing is what was taken.
        async fn nobody_takes_more_than_there_is(pool: &Pool<$database>) {
            let taken = all(10, |task| {
                let pool = pool.clone();
                async move {
                    let (mut dice, mut taken) = (Dice(task as u64 + 1), (0, 0));
                    let mut connection = pool.acquire().await.unwrap();
                    for _ in 0..20 {
                        let cents = dice.up_to(30);
                        loop {
                            let look = "SELECT version FROM accounts WHERE id = 1";
                            let version: i32 = sqlx::query(look).fetch_one(&mut *connection).await.unwrap().get(0);
                            let take = ACCOUNTS.on(&mut *connection).take(CENTS, cents);
                            match take.write(1, version.into()).await.unwrap() {
                                Written::Done => taken = (taken.0 + cents, taken.1 + 1),
                                Written::Refused => {}
                                Written::Stale => continue,
                                other => panic!("{other:?}"),
                            }
                            break;
                        }
                    }
                    taken
                }
            })
            .await;
            let (cents, writes) = taken.iter().fold((0, 0), |sum, taken| (sum.0 + taken.0, sum.1 + taken.1));
            let left = number(pool, "SELECT cents FROM accounts WHERE id = 1").await;
            assert!((0..30).contains(&left), "{left}");
            assert_eq!((cents + left, number(pool, "SELECT COUNT(*) FROM accounts WHERE cents < 0").await), (1000, 0));
            let mut connection = pool.acquire().await.unwrap();
            assert_eq!(ACCOUNTS.on(&mut *connection).add(CENTS, 0).write(1, writes).await.unwrap(), Written::Done);
        }

        /// Ten read, add one and write, in transactions: no update is lost, and nobody gives up.
        async fn no_update_is_lost(pool: &Pool<$database>) {
            all(10, |_| {
                let pool = pool.clone();
                async move {
                    for _ in 0..10 {
                        let mut tx = pool.begin_with($begin).await.unwrap();
                        let written = ACCOUNTS.on(&mut *tx).modify(2, CENTS, |cents: i64| Some(cents + 1)).await;
                        assert_eq!(written.unwrap(), Written::Done);
                        tx.commit().await.unwrap();
                    }
                }
            })
            .await;
            assert_eq!(number(pool, "SELECT cents FROM accounts WHERE id = 2 AND version = 100").await, 1100);

            // Without a transaction some may give up, and are refused.
            let done = all(10, |_| {
                let pool = pool.clone();
                async move {
                    let mut connection = pool.acquire().await.unwrap();
                    let mut done = 0;
                    for _ in 0..10 {
                        let write = ACCOUNTS.on(&mut *connection).tries(2);
                        match write.modify(2, CENTS, |cents: i64| Some(cents + 1)).await.unwrap() {
                            Written::Done => done += 1,
                            other => assert_eq!(other, Written::Stale),
                        }
                    }
                    done
                }
            })
            .await;
            let cents = number(pool, "SELECT cents FROM accounts WHERE id = 2").await;
            assert_eq!(cents, 1100 + done.iter().sum::<i64>());
        }

        /// Some of ten that find a number new roll back: it is new to exactly one that does not.
        async fn a_number_is_new_to_one_of_many(pool: &Pool<$database>) {
            for round in 0..10 {
                let serial = format!("R-{round}");
                let found = all(10, |task| {
                    let (pool, serial) = (pool.clone(), serial.clone());
                    async move {
                        let mut rolls_back = task < 3;
                        loop {
                            let mut tx = pool.begin_with($begin).await.unwrap();
                            match PAYMENTS.on(&mut *tx).set(CENTS, 1_i64).insert(&serial).await {
                                Ok(Inserted::New) if rolls_back => {
                                    rolls_back = false;
                                    tx.rollback().await.unwrap();
                                }
                                Ok(found) => {
                                    tx.commit().await.unwrap();
                                    return found;
                                }
                                // InnoDB ends a transaction that waits in a circle.
                                Err(error) => {
                                    assert_eq!(error.as_database_error().unwrap().code().unwrap(), "40001", "{error}");
                                }
                            }
                        }
                    }
                })
                .await;
                assert_eq!(found.iter().filter(|found| **found == Inserted::New).count(), 1, "{found:?}");
            }
            assert_eq!(number(pool, "SELECT COUNT(*) FROM payments").await, 10);
        }
    };
}
