#![allow(dead_code, unreachable_pub)] // each test takes what it needs

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// Counts, in whatever clones it has.
#[derive(Clone, Debug, Default)]
pub struct Counter(Arc<AtomicUsize>);

impl Counter {
    /// The number of this call, from 1.
    pub fn next(&self) -> usize {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    pub fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}
