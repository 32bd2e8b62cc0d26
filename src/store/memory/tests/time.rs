use super::*;
use crate::store::Stats;

#[test]
fn purge_removes_exactly_what_has_expired() {
    let (store, clock) = store();
    for number in 0..500_u64 {
        store.settled(number, 1 + number * 1_000_003 % 7_000_000_000);
    }
    let mut left = 500;
    for step in [1, 999, 65_000, 3_000_000, 100_000_000, 2_000_000_000, 6_000_000_000] {
        clock.pass(step);
        let live = (0..500).filter(|number| store.record(number).is_some()).count();
        let stats = now(store.stats());
        assert_eq!(stats, Stats { settled: live as u64, ..Stats::default() });
        let purged = usize::try_from(now(store.purge(usize::MAX))).unwrap();
        assert!(purged <= left - live);
        left = live;
        assert_eq!(store.kept(), live);
    }
    assert_eq!(left, 0);
}

#[test]
fn purge_heeds_its_limit() {
    let (store, clock) = store();
    for number in 0..100 {
        store.settled(number, 10);
    }
    clock.pass(10);
    assert_eq!([0, 30, 1, 1000, 1000].map(|limit| now(store.purge(limit))), [0, 30, 1, 69, 0]);
}

#[test]
fn calls_give_memory_back_after_a_long_idle_time() {
    let (store, clock) = store();
    for number in 0..20_000 {
        store.settled(number, 86_400_000 + number % 1000 * 3_600_000);
        clock.pass(1);
    }
    assert_eq!(store.kept(), 20_000);
    clock.pass(100 * 86_400_000);
    store.grant("one", 1000, 1000);
    assert!(store.kept() >= 20_000 - 2 * 64, "a call removed {}", 20_001 - store.kept());
    // Calls on one key reach all shards in the end.
    for _ in 0..8 * 64 * 8 {
        store.record("one");
        now(store.renew(&key("one"), &claim(1, 1)));
    }
    assert_eq!(store.kept(), 1);
    let memory = &store.memory;
    for shard in 0..memory.shards() {
        let shard = memory.lock(shard);
        assert!(shard.records.chunks() <= 2 && shard.index_places() <= 512 && shard.records.slots.end() <= 512);
    }
}

#[test]
fn renewals_move_the_expiry_both_ways() {
    let (store, clock) = store();
    let mut claims = claim(10, 5_000_000_000);
    now(store.claim(&key("a"), &claims));
    claims.horizon = ms(20);
    now(store.renew(&key("a"), &claims));
    clock.pass(20);
    assert_eq!(now(store.purge(9)), 1);
    let mut claims = claim(10, 20);
    now(store.claim(&key("a"), &claims));
    claims.horizon = ms(5_000_000_000);
    for _ in 0..50 {
        now(store.renew(&key("a"), &claims));
        clock.pass(4_999_999_999);
        assert_eq!(now(store.purge(9)), 0);
        assert!(store.record("a").is_some());
    }
    clock.pass(1);
    assert_eq!(now(store.purge(9)), 1);
}

#[test]
fn a_renewal_sets_the_length_of_the_lease() {
    let (store, _) = store();
    // This lease, which most records have, takes no room in them.
    let mut claims = store.grant("a", 30_000, 60_000);
    for lease in [7, 9, 30_000, 30_000, 7] {
        claims.lease = ms(lease);
        now(store.renew(&key("a"), &claims));
        let record = store.record("a").unwrap();
        assert_eq!((record.lease, record.lease_left), (ms(lease), ms(lease)));
    }
    now(store.release(&key("a"), &Release::undo(claims.claimant, ms(1))));
    assert_eq!(store.memory.used(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn tokios_paused_time_expires_records() {
    let store = MemoryStore::new();
    store.settled("a", 1000);
    tokio::time::advance(ms(999)).await;
    assert!(store.record("a").is_some());
    tokio::time::advance(ms(1)).await;
    assert!(store.record("a").is_none());
}
