//! The order in which records expire.
//!
//! Most records of a route expire in the order in which they were settled, so their times are appended to a queue that
//! is sorted by itself. A few queues side by side take the times of routes with different retention; a time that fits
//! into none goes to a heap. A record has one valid item. An item whose record has been removed or has got another item
//! becomes stale: its ticket is no longer that of the slot. Stale items are skipped when their time comes, and removed
//! together once there are more of them than of valid ones.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

use crate::store::memory::{
    record::{FOREVER, Moment},
    storage::Slots,
};

/// How many sorted queues there are at most.
const QUEUES: usize = 8;

/// So many stale items may always be there.
const STALE: usize = 64;

/// When to look at a record, in eleven bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Item {
    /// The time, first, since items are ordered by it.
    at: Moment,
    slot: [u8; 4],
    ticket: u8,
}

/// The times at which records of a shard may have expired.
pub(super) struct Expiries {
    queues: Vec<Queue>,
    heap: BinaryHeap<Reverse<Item>>,
    /// The earliest time of an item; the last moment if there is none.
    earliest: u64,
    /// How many items there are.
    items: usize,
    /// How many items are valid: the records.
    valid: usize,
}

/// Items in the order of their times.
struct Queue {
    items: VecDeque<Item>,
    /// The time of the first item; the last moment if there is none.
    first: u64,
    /// The time of the last item; 0 if there is none.
    last: u64,
}

impl Expiries {
    pub(super) fn new() -> Self {
        Self { queues: Vec::new(), heap: BinaryHeap::new(), earliest: FOREVER, items: 0, valid: 0 }
    }

    /// Adds the item of a record, under the ticket that its slot has.
    pub(super) fn insert(&mut self, at: u64, slot: u32, slots: &Slots) {
        self.valid += 1;
        self.items += 1;
        self.earliest = self.earliest.min(at);
        let item = Item { at: Moment::new(at), slot: slot.to_le_bytes(), ticket: slots.ticket(slot) };
        match self.queue_for(at) {
            Some(queue) => queue.push(at, item),
            None => self.heap.push(Reverse(item)),
        }
    }

    /// Makes the item of a record stale, by another ticket of its slot.
    pub(super) fn remove(&mut self, slot: u32, slots: &mut Slots) {
        slots.new_ticket(slot);
        self.valid -= 1;
        if self.items > 2 * self.valid + STALE {
            self.retain(slots);
        }
    }

    /// Takes the earliest item whose time has come, if `budget` suffices to find one that is valid. The record has no
    /// item any more: it is to be removed, or to be inserted again.
    #[inline]
    pub(super) fn pop_due(&mut self, now: u64, slots: &Slots, budget: &mut usize) -> Option<u32> {
        while self.earliest <= now && self.items > 0 && *budget > 0 {
            *budget -= 1;
            let item = self.pop()?;
            if item.is_valid(slots) {
                self.valid = self.valid.saturating_sub(1);
                return Some(item.slot());
            }
        }
        None
    }

    /// Returns the slot of the earliest valid item.
    pub(super) fn first(&mut self, slots: &Slots) -> Option<u32> {
        while let Some(item) = self.peek() {
            if item.is_valid(slots) {
                return Some(item.slot());
            }
            self.pop();
        }
        None
    }

    /// Counts the record of the last item as one that still has an item.
    pub(super) fn keep_count(&mut self) {
        self.valid += 1;
    }

    /// Removes the earliest item, which is of a record that has its item elsewhere.
    pub(super) fn skip(&mut self) {
        self.pop();
    }

    /// Returns the queue whose last time is the closest one before `at`, so that the others stay open for earlier times.
    fn queue_for(&mut self, at: u64) -> Option<&mut Queue> {
        let mut chosen = None;
        for (index, queue) in self.queues.iter().enumerate() {
            if queue.last <= at && chosen.is_none_or(|(_, last)| last < queue.last) {
                chosen = Some((index, queue.last));
            }
        }
        if chosen.is_none() && self.queues.len() < QUEUES {
            self.queues.push(Queue { items: VecDeque::new(), first: FOREVER, last: 0 });
            return self.queues.last_mut();
        }
        self.queues.get_mut(chosen?.0)
    }

    /// Returns the queue that has the earliest item, unless the heap has it.
    fn earliest_queue(&mut self) -> Option<&mut Queue> {
        let earliest = self.earliest;
        self.queues.iter_mut().find(|queue| queue.first == earliest && !queue.items.is_empty())
    }

    /// Returns the earliest item.
    fn peek(&mut self) -> Option<Item> {
        match self.earliest_queue() {
            Some(queue) => queue.items.front().copied(),
            None => self.heap.peek().map(|item| item.0),
        }
    }

    /// Takes the earliest item.
    fn pop(&mut self) -> Option<Item> {
        let item = match self.earliest_queue() {
            Some(queue) => queue.pop(),
            None => self.heap.pop().map(|item| item.0),
        };
        self.items -= usize::from(item.is_some());
        self.see_earliest();
        item
    }

    /// Removes the stale items.
    fn retain(&mut self, slots: &Slots) {
        for queue in &mut self.queues {
            queue.items.retain(|item| item.is_valid(slots));
            queue.items.shrink_to(queue.items.len() * 2);
            queue.see_ends();
        }
        self.heap.retain(|item| item.0.is_valid(slots));
        self.items = self.queues.iter().map(|queue| queue.items.len()).sum::<usize>() + self.heap.len();
        self.see_earliest();
    }

    fn see_earliest(&mut self) {
        let heap = self.heap.peek().map_or(FOREVER, |item| item.0.at.ms());
        self.earliest = self.queues.iter().fold(heap, |earliest, queue| earliest.min(queue.first));
    }

    #[cfg(test)]
    pub(super) fn items(&self) -> usize {
        self.items
    }
}

impl Queue {
    fn push(&mut self, at: u64, item: Item) {
        if self.items.is_empty() {
            self.first = at;
        }
        self.last = at;
        if self.items.len() == self.items.capacity() {
            // By a quarter, so that a million of them have little room to spare.
            self.items.reserve_exact(self.items.len() / 4 + 16);
        }
        self.items.push_back(item);
    }

    fn pop(&mut self) -> Option<Item> {
        let item = self.items.pop_front();
        match self.items.front() {
            Some(next) => self.first = next.at.ms(),
            None => self.see_ends(),
        }
        if self.items.capacity() > STALE && self.items.len() * 4 < self.items.capacity() {
            self.items.shrink_to(self.items.len() * 2);
        }
        item
    }

    fn see_ends(&mut self) {
        self.first = self.items.front().map_or(FOREVER, |item| item.at.ms());
        self.last = self.items.back().map_or(0, |item| item.at.ms());
    }
}

impl Item {
    fn slot(&self) -> u32 {
        u32::from_le_bytes(self.slot)
    }

    fn is_valid(&self, slots: &Slots) -> bool {
        slots.ticket(self.slot()) == self.ticket
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::memory::{storage::Blocks, tests::Random};

    /// An order of expiry, and the times that it should have.
    struct Walk {
        expiries: Expiries,
        slots: Slots,
        times: Vec<(u32, u64)>,
    }

    impl Walk {
        fn new() -> Self {
            Self { expiries: Expiries::new(), slots: Slots::default(), times: Vec::new() }
        }

        fn insert(&mut self, at: u64) {
            let slot = self.slots.take(Blocks::default().take(1));
            self.expiries.insert(at, slot, &self.slots);
            self.times.push((slot, at));
        }

        fn remove(&mut self, index: usize) {
            let (slot, _) = self.times.swap_remove(index);
            self.expiries.remove(slot, &mut self.slots);
            self.slots.give_back(slot);
        }

        /// Takes everything that is due, and compares.
        fn pop(&mut self, now: u64) {
            let mut due: Vec<_> = std::iter::from_fn(|| {
                let slot = self.expiries.pop_due(now, &self.slots, &mut usize::MAX.clone())?;
                self.slots.new_ticket(slot);
                self.slots.give_back(slot);
                Some(slot)
            })
            .collect();
            due.sort_unstable();
            let mut expected: Vec<_> = self.times.extract_if(.., |(_, at)| *at <= now).map(|(slot, _)| slot).collect();
            expected.sort_unstable();
            assert_eq!(due, expected);
        }
    }

    #[test]
    fn whatever_the_order_of_their_times_what_is_due_comes_and_nothing_else() {
        for (seed, spread) in [(1, 1), (2, 50), (3, 100_000)] {
            let (mut walk, mut random) = (Walk::new(), Random(seed));
            for now in 0..5000 {
                walk.insert(now + 100 + random.below(spread));
                if random.below(3) == 0 {
                    let index = usize::try_from(random.below(walk.times.len() as u64)).unwrap();
                    walk.remove(index);
                }
                let first =
                    walk.expiries.first(&walk.slots).and_then(|slot| walk.times.iter().find(|(at, _)| *at == slot));
                assert_eq!(first.map(|(_, at)| *at), walk.times.iter().map(|(_, at)| *at).min());
                walk.pop(now);
            }
            walk.pop(FOREVER);
            assert_eq!(walk.expiries.items(), 0);
        }
    }

    #[test]
    fn stale_items_are_removed_once_they_outnumber_the_valid_ones() {
        let mut walk = Walk::new();
        (0..100).for_each(|at| walk.insert(1_000_000 + at));
        for at in 0..100_000 {
            walk.insert(2_000_000 + at);
            walk.remove(walk.times.len() - 1);
            assert!(walk.expiries.items() <= 2 * 100 + STALE + 1);
        }
        walk.pop(FOREVER);
    }
}
