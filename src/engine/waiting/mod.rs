//! Duplicates that wait for the first request: the room that their bodies take, and who asks the store for all.
//!
//! A duplicate that waits holds its body in memory, since it has to run if the first request fails. `WaitingBodies`
//! bounds the bytes of all of them; past the bound a duplicate is answered at once.

mod waiters;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

pub(super) use self::waiters::{Waiter, Waiters};

/// The bodies of duplicates that wait for the first request: they are held in memory, since one of them may have to
/// run.
#[derive(Debug)]
pub(crate) struct WaitingBodies {
    held: AtomicUsize,
    limit: usize,
}

/// Room for the body of one duplicate that waits, given back when it is dropped.
pub(super) struct BodyPermit {
    bodies: Arc<WaitingBodies>,
    bytes: usize,
}

impl WaitingBodies {
    /// 64 MiB.
    pub(crate) const LIMIT: usize = 64 * 1024 * 1024;

    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { held: AtomicUsize::new(0), limit })
    }

    /// Takes room for a body, if there is any.
    pub(super) fn hold(self: &Arc<Self>, bytes: usize) -> Option<BodyPermit> {
        let more = |held: usize| held.checked_add(bytes).filter(|&held| held <= self.limit);
        self.held.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok()?;
        Some(BodyPermit { bodies: Arc::clone(self), bytes })
    }
}

impl Drop for BodyPermit {
    fn drop(&mut self) {
        self.bodies.held.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_holds_64_mib_unless_told_otherwise() {
        assert_eq!(WaitingBodies::LIMIT, 67_108_864);
    }

    #[test]
    fn room_is_bounded_and_given_back() {
        let bodies = WaitingBodies::new(10);
        let first = bodies.hold(6).unwrap();
        assert!(bodies.hold(5).is_none() && bodies.hold(usize::MAX).is_none());
        let second = bodies.hold(4).unwrap();
        drop((first, second));
        assert!(bodies.hold(10).is_some());
    }
}
