use std::sync::atomic::AtomicUsize;

use super::*;

#[test]
fn one_grant_for_each_key() {
    const KEYS: usize = 2000;
    let (store, _) = store();
    let grants: Vec<_> = (0..KEYS).map(|_| AtomicUsize::new(0)).collect();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (store, grants) = (store.clone(), &grants);
            scope.spawn(move || {
                for turn in 0..KEYS {
                    let number = if thread % 2 == 0 { turn } else { KEYS - 1 - turn };
                    if now(store.claim(&key(number), &claim(10_000, 10_000))) == granted(1) {
                        grants[number].fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert!(grants.iter().all(|grants| grants.load(Ordering::Relaxed) == 1));
    assert_eq!(store.kept(), KEYS);
}

#[test]
fn attempts_on_one_key_are_counted_one_by_one() {
    const ROUNDS: u32 = 20_000;
    let (store, _) = store();
    let inside = AtomicUsize::new(0);
    let last = std::thread::scope(|scope| {
        let work = || {
            let mut last = 0;
            while last < ROUNDS {
                let claim = claim(10_000, 10_000);
                let Claimed::Granted(granted) = now(store.claim(&key("a"), &claim)) else { continue };
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                assert!(granted.attempt > last);
                last = granted.attempt;
                inside.fetch_sub(1, Ordering::SeqCst);
                assert!(matches!(now(store.release(&key("a"), &release(claim.claimant, 10_000))), Finished::Done));
            }
            last
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).max()
    });
    assert_eq!(store.record("a").unwrap().attempt, last.unwrap());
}

#[test]
fn everything_at_once_stays_sound() {
    let (store, clock) = sized(300);
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (store, clock) = (store.clone(), clock.clone());
            scope.spawn(move || {
                let mut random = Random(thread + 1);
                for _ in 0..20_000 {
                    let name = random.below(500);
                    let claim = claim(random.below(50), random.below(500));
                    if try_now(store.claim(&key(name), &claim)).is_ok_and(|claimed| claimed == granted(1)) {
                        match random.below(4) {
                            0 => drop(now(store.settle(&key(name), &settlement(claim.claimant, random.below(900))))),
                            1 => drop(now(store.release(&key(name), &release(claim.claimant, random.below(900))))),
                            2 => drop(now(store.forget(&key(name)))),
                            _ => {}
                        }
                    }
                    clock.pass(random.below(2));
                }
            });
        }
    });
    assert!(store.kept() <= 300);
    clock.pass(10_000);
    now(store.purge(usize::MAX));
    assert_eq!(store.kept(), 0);
}
