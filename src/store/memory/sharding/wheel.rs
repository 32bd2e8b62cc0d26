//! The order of expiry: insertion, removal and the next expired entry in constant time.
//!
//! The lists are doubly linked and circular, through `previous` and `next` of the entries, so a wheel allocates
//! nothing. `bucket` of an entry names the list that it was put into.

use super::slab::Slab;
use crate::store::memory::record::{FOREVER, NIL};

/// The bits of a digit: each level has 64 places.
const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
/// Eight digits of six bits are the 48 bits of a moment.
const LEVELS: usize = 8;

/// A hierarchical timing wheel over the expiries of entries, in lists that run through the entries themselves.
///
/// Level `n` has 64 places of `64^n` milliseconds. An entry is at the level of the highest digit, to base 64, in which
/// its expiry differs from the elapsed time. So each place comes after all places of lower levels, and the next place
/// that is due is found by checking each level once, however much time has passed. The entries of a place that is due
/// go to `pending` at once, and from there, one by one, to a lower level or are removed.
pub(in crate::store::memory) struct Wheel {
    /// The time up to which the wheel has turned. All entries in its places expire after it.
    elapsed: u64,
    /// No place is due before this.
    next: u64,
    /// The list of entries whose place was due. They are removed or put into a lower level one by one.
    pending: u32,
    /// The places of each level that have a list, one bit each.
    occupied: [u64; LEVELS],
    /// The first entry of each list.
    heads: [u32; LEVELS * SLOTS],
}

impl Wheel {
    /// Creates an empty wheel, at the beginning of time.
    pub(in crate::store::memory) fn new() -> Self {
        Self { elapsed: 0, next: u64::MAX, pending: NIL, occupied: [0; LEVELS], heads: [NIL; LEVELS * SLOTS] }
    }

    /// Appends an entry to the list that its expiry belongs to. If its expiry becomes later, it may stay there; if it
    /// becomes earlier, the entry has to be removed and inserted again.
    pub(in crate::store::memory) fn insert(&mut self, slab: &mut Slab, slot: u32) {
        let expires = slab[slot].expires().min(FOREVER);
        if expires <= self.elapsed {
            slab[slot].bucket = 0;
            append(&mut self.pending, slab, slot);
            return;
        }
        let level = (expires ^ self.elapsed).ilog2() / BITS;
        let digit = digit(expires, level);
        let bucket = level as usize * SLOTS + digit;
        slab[slot].bucket = u16::try_from(bucket).unwrap_or_default(); // less than 512
        append(&mut self.heads[bucket], slab, slot);
        self.occupied[level as usize] |= 1 << digit;
        self.next = self.next.min(expires >> (level * BITS) << (level * BITS));
    }

    /// Removes an entry.
    pub(in crate::store::memory) fn remove(&mut self, slab: &mut Slab, slot: u32) {
        let entry = &slab[slot];
        let (previous, next, bucket) = (entry.previous, entry.next, usize::from(entry.bucket));
        let new_head = if next == slot { NIL } else { next };
        // A pending entry still names its former place, but no longer heads the list of that place.
        if self.heads[bucket] == slot {
            self.heads[bucket] = new_head;
            if new_head == NIL {
                self.occupied[bucket / SLOTS] &= !(1 << (bucket % SLOTS));
            }
        } else if self.pending == slot {
            self.pending = new_head;
        }
        slab[previous].next = next;
        slab[next].previous = previous;
    }

    /// Returns an expired entry, if there is one and `budget` suffices to find it.
    ///
    /// The caller removes the entry. Each visited entry costs one of the budget; if some of the budget is left, nothing
    /// else is due.
    pub(in crate::store::memory) fn next_expired(
        &mut self,
        slab: &mut Slab,
        now: u64,
        budget: &mut usize,
    ) -> Option<u32> {
        loop {
            if self.pending == NIL && !self.advance(now) {
                return None;
            }
            *budget = budget.checked_sub(1)?;
            let slot = self.pending;
            if slab[slot].expires() <= now {
                return Some(slot);
            }
            self.remove(slab, slot);
            self.insert(slab, slot);
        }
    }

    /// Returns an entry such that no other expires much earlier.
    pub(in crate::store::memory) fn first(&self) -> Option<u32> {
        if self.pending != NIL {
            return Some(self.pending);
        }
        self.next_bucket().map(|(level, digit)| self.heads[level * SLOTS + digit])
    }

    /// Makes the next place pending if it is due, else lets time pass.
    fn advance(&mut self, now: u64) -> bool {
        if now < self.next {
            self.elapsed = self.elapsed.max(now);
            return false;
        }
        let Some((level, digit)) = self.next_bucket() else {
            self.next = u64::MAX;
            return self.advance(now.min(FOREVER));
        };
        let width = 1 << (BITS * u32::try_from(level).unwrap_or_default());
        let start = self.elapsed / (width * SLOTS as u64) * (width * SLOTS as u64) + digit as u64 * width;
        if now < start {
            self.next = start;
            return self.advance(now);
        }
        self.pending = std::mem::replace(&mut self.heads[level * SLOTS + digit], NIL);
        self.occupied[level] &= !(1 << digit);
        self.elapsed = now.min(start + (width - 1));
        true
    }

    /// Returns the next occupied place, by level and digit.
    fn next_bucket(&self) -> Option<(usize, usize)> {
        (0u32..).zip(&self.occupied).find_map(|(level, &occupied)| {
            let ahead = occupied & (u64::MAX << digit(self.elapsed, level) << 1);
            (ahead != 0).then(|| (level as usize, ahead.trailing_zeros() as usize))
        })
    }
}

/// Returns the digit of a time at a level, to base 64.
fn digit(time: u64, level: u32) -> usize {
    usize::try_from(time >> (level * BITS) & (SLOTS as u64 - 1)).unwrap_or_default()
}

/// Appends an entry to a circular list.
fn append(head: &mut u32, slab: &mut Slab, slot: u32) {
    if *head == NIL {
        *head = slot;
        slab[slot].previous = slot;
        slab[slot].next = slot;
        return;
    }
    let last = slab[*head].previous;
    slab[last].next = slot;
    slab[*head].previous = slot;
    slab[slot].previous = last;
    slab[slot].next = *head;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{
        store::memory::{record::MemoryRecord, tests::Random},
        value::{Binding, RecordKey},
    };

    fn insert(wheel: &mut Wheel, slab: &mut Slab, key: &RecordKey, expires: u64) -> u32 {
        let mut entry = MemoryRecord::new(0, key, 0);
        entry.issue(Binding::new("", None), expires);
        let slot = slab.insert(entry);
        wheel.insert(slab, slot);
        slot
    }

    #[test]
    fn finds_all_that_is_due_and_nothing_else_however_small_its_budget() {
        let key = RecordKey::new("/", None, "k").unwrap();
        let mut random = Random(7);
        let (mut wheel, mut slab, mut live, mut now) = (Wheel::new(), Slab::default(), BTreeMap::new(), 0);
        for step in 0..200_000 {
            match random.below(9) {
                0..4 => {
                    let expires = (now + 1 + random.span()).min(FOREVER);
                    live.insert(insert(&mut wheel, &mut slab, &key, expires), expires);
                }
                4 => {
                    let slot = u32::try_from(random.below(1 + u64::from(slab.end()))).unwrap();
                    if live.remove(&slot).is_some() {
                        wheel.remove(&mut slab, slot);
                        slab.remove(slot);
                    }
                }
                5 => now += random.span() / 4,
                6 => {
                    // A record whose expiry was extended since is moved to its new place when it is looked at.
                    let slot = u32::try_from(random.below(1 + u64::from(slab.end()))).unwrap();
                    if let Some(expires) = live.get_mut(&slot) {
                        *expires = (*expires + random.span()).min(FOREVER);
                        slab[slot].issue(Binding::new("", None), *expires);
                    }
                }
                _ => {
                    let mut budget = usize::try_from(random.below(200)).unwrap();
                    while let Some(slot) = wheel.next_expired(&mut slab, now, &mut budget) {
                        assert!(live.remove(&slot).unwrap() <= now);
                        wheel.remove(&mut slab, slot);
                        slab.remove(slot);
                    }
                    if budget > 0 {
                        assert!(live.values().all(|&expires| expires > now), "{step}");
                    }
                    assert_eq!(wheel.first().is_some(), !live.is_empty());
                }
            }
        }
        assert!(!live.is_empty());
    }

    #[test]
    fn a_thousand_years_are_passed_in_a_few_steps() {
        let key = RecordKey::new("/", None, "k").unwrap();
        let (mut wheel, mut slab) = (Wheel::new(), Slab::default());
        let start = 1_795_960_123_457;
        for slot in 0..1000 {
            let expires = start + u64::from(slot) * 31_536_000_000 + 17;
            assert_eq!(insert(&mut wheel, &mut slab, &key, expires), slot);
        }
        let mut budget = 2000 + 1;
        for slot in 0..1000 {
            assert_eq!(wheel.first(), Some(slot));
            assert_eq!(wheel.next_expired(&mut slab, FOREVER, &mut budget), Some(slot));
            wheel.remove(&mut slab, slot);
        }
        assert_eq!(wheel.next_expired(&mut slab, FOREVER, &mut budget), None);
        assert!(budget > 0);
    }
}
