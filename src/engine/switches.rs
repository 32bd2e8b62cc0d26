//! The switches of a layer, and what was said of them.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use crate::value::{Protection, Switch};

/// How often a route that is not protected is named in the log.
const PAUSE: Duration = Duration::from_secs(60);

/// How many routes are remembered. There could be any number of paths that are not routes.
const ROUTES: usize = 1024;

/// The switches of a layer.
#[derive(Clone, Default)]
pub(crate) struct Switches {
    all: Vec<Switch>,
    /// Clones of a layer report together.
    reported: Arc<Reported>,
}

/// What was reported last, and when routes were named.
#[derive(Default)]
struct Reported {
    protection: AtomicU8,
    routes: Mutex<HashMap<Box<str>, Instant>>,
}

impl Switches {
    pub(crate) fn add(&mut self, switch: Switch) {
        self.all.push(switch);
        // What another layer has reported says nothing about this one.
        self.reported = Arc::default();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the position that protects least, and the one before if it has changed since the last call.
    pub(super) fn protection(&self) -> (Protection, Option<Protection>) {
        let protection = self.all.iter().map(Switch::get).max().unwrap_or_default();
        let reported = &self.reported.protection;
        if reported.load(Ordering::Relaxed) == protection as u8 {
            return (protection, None);
        }
        let before = Protection::from_u8(reported.swap(protection as u8, Ordering::Relaxed));
        (protection, Some(before).filter(|before| *before != protection))
    }

    /// Returns whether a route that is not protected is to be named again.
    pub(super) fn is_to_be_named(&self, route: &str) -> bool {
        let mut routes = self.reported.routes.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if routes.get(route).is_some_and(|named| now.duration_since(*named) < PAUSE) {
            return false;
        }
        if routes.len() >= ROUTES {
            routes.clear();
        }
        routes.insert(route.into(), now);
        true
    }
}
