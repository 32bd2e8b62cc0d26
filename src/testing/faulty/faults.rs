use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::watch;

use crate::{
    StoreError,
    store::{StoreErrorKind, StoreVerb},
};

use super::gate::{Barrier, Gate};

/// A script of the faults of a [`FaultyStore`](super::FaultyStore), and a count of its calls.
///
/// It is a handle: its clones control the same store, and a test keeps one while a layer owns the store.
///
/// Faults on one verb follow one another in the order in which they were scripted. A fault without an end lasts until
/// it is [healed](Self::heal) or the next one on its verb is scripted.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<FaultScript>);

#[derive(Debug, Default)]
struct FaultScript {
    script: Mutex<HashMap<StoreVerb, VecDeque<Scripted>>>,
    calls: watch::Sender<HashMap<StoreVerb, usize>>,
}

#[derive(Debug)]
struct Scripted {
    skip: usize,
    /// `None`: until healed.
    left: Option<usize>,
    strike: Injected,
}

/// The fault of one call.
#[derive(Clone, Debug)]
pub(super) struct Injected {
    pub(super) after_effect: bool,
    pub(super) kind: FaultKind,
}

#[derive(Clone, Debug)]
pub(super) enum FaultKind {
    Fail(StoreErrorKind),
    Hang,
    Delay(Duration),
    Hold(Barrier),
}

const VERBS: [StoreVerb; 6] =
    [StoreVerb::Issue, StoreVerb::Claim, StoreVerb::Renew, StoreVerb::Settle, StoreVerb::Release, StoreVerb::Changed];

impl Faults {
    /// Begins a fault on a verb. It strikes every call until healed, unless an end is set before.
    pub fn on(&self, verb: StoreVerb) -> Fault<'_> {
        Fault { faults: self, verbs: vec![verb], skip: 0, times: None, after_effect: false }
    }

    /// Begins a fault on each of the verbs, as when the whole store is unreachable.
    ///
    /// Skips and times are counted for each verb by itself.
    pub fn on_all(&self) -> Fault<'_> {
        Fault { verbs: VERBS.to_vec(), ..self.on(StoreVerb::Claim) }
    }

    /// Ends all faults. A call that hangs goes on hanging; one that is held waits for its gate.
    pub fn heal(&self) {
        self.script().clear();
    }

    /// Returns how often a verb was called, struck or not.
    #[must_use]
    pub fn calls(&self, verb: StoreVerb) -> usize {
        self.0.calls.borrow().get(&verb).copied().unwrap_or(0)
    }

    /// Resolves once a verb was called this many times, for what a layer does in the background.
    pub async fn called(&self, verb: StoreVerb, times: usize) {
        let mut calls = self.0.calls.subscribe();
        // No error: `self` keeps the sender.
        let _ = calls.wait_for(|calls| calls.get(&verb).is_some_and(|&calls| calls >= times)).await;
    }

    /// Counts a call, and returns the fault that strikes it.
    pub(super) fn strike(&self, verb: StoreVerb) -> Option<Injected> {
        let struck = self.next(verb);
        self.0.calls.send_modify(|calls| *calls.entry(verb).or_default() += 1);
        struck
    }

    fn next(&self, verb: StoreVerb) -> Option<Injected> {
        let mut script = self.script();
        let queue = script.get_mut(&verb)?;
        let fault = queue.front_mut()?;
        if fault.skip > 0 {
            fault.skip -= 1;
            return None;
        }
        let strike = fault.strike.clone();
        if let Some(left) = &mut fault.left {
            *left -= 1;
            if *left == 0 {
                queue.pop_front();
            }
        }
        Some(strike)
    }

    fn script(&self) -> MutexGuard<'_, HashMap<StoreVerb, VecDeque<Scripted>>> {
        self.0.script.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A fault that is being scripted; see [`Faults::on`].
///
/// First set when it strikes ([`once`](Self::once), [`times`](Self::times), [`skip`](Self::skip),
/// [`after_effect`](Self::after_effect)), then what it does, which puts it into force.
#[derive(Debug)]
#[must_use = "it says when a fault strikes; `fail`, `hang`, `delay` or `hold` puts it into force"]
pub struct Fault<'a> {
    faults: &'a Faults,
    verbs: Vec<StoreVerb>,
    skip: usize,
    times: Option<usize>,
    after_effect: bool,
}

impl Fault<'_> {
    /// Strikes one call.
    pub fn once(self) -> Self {
        self.times(1)
    }

    /// Strikes this many calls.
    pub fn times(self, times: usize) -> Self {
        Self { times: Some(times), ..self }
    }

    /// Lets this many calls through before the first that the fault strikes.
    pub fn skip(self, calls: usize) -> Self {
        Self { skip: calls, ..self }
    }

    /// Strikes the answer and not the request: the store does what it was asked to, and the caller receives no answer,
    /// or a late one.
    pub fn after_effect(self) -> Self {
        Self { after_effect: true, ..self }
    }

    /// Fails the call with an error of this kind.
    pub fn fail(self, kind: StoreErrorKind) {
        self.script(&FaultKind::Fail(kind));
    }

    /// Never answers the call.
    pub fn hang(self) {
        self.script(&FaultKind::Hang);
    }

    /// Answers the call after this time.
    pub fn delay(self, time: Duration) {
        self.script(&FaultKind::Delay(time));
    }

    /// Answers the call once the gate is opened.
    pub fn hold(self) -> Gate {
        let (gate, barrier) = Gate::new();
        self.script(&FaultKind::Hold(barrier));
        gate
    }

    fn script(self, kind: &FaultKind) {
        let mut script = self.faults.script();
        for verb in self.verbs {
            let queue = script.entry(verb).or_default();
            queue.retain(|fault| fault.left.is_some());
            if self.times != Some(0) {
                let strike = Injected { after_effect: self.after_effect, kind: kind.clone() };
                queue.push_back(Scripted { skip: self.skip, left: self.times, strike });
            }
        }
    }
}

impl FaultKind {
    /// Applies the fault.
    pub(super) async fn apply(self) -> Result<(), StoreError> {
        match self {
            Self::Fail(kind) => return Err(StoreError::new(kind, "a scripted fault")),
            Self::Hang => std::future::pending::<()>().await,
            Self::Delay(time) => tokio::time::sleep(time).await,
            Self::Hold(barrier) => barrier.pass().await,
        }
        Ok(())
    }
}
