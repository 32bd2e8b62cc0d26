use tokio::sync::watch;

/// A gate that holds calls until it is opened; see [`Fault::hold`](super::Fault::hold).
///
/// A gate that is dropped is open, so that a test that fails does not hang.
#[derive(Debug)]
#[must_use = "a gate that is dropped is open"]
pub struct Gate {
    open: watch::Sender<bool>,
    arrived: watch::Receiver<usize>,
}

/// The side of the calls.
#[derive(Clone, Debug)]
pub(super) struct Barrier {
    open: watch::Receiver<bool>,
    arrived: watch::Sender<usize>,
}

impl Gate {
    pub(super) fn new() -> (Self, Barrier) {
        let (open, opened) = watch::channel(false);
        let (arrive, arrived) = watch::channel(0);
        (Self { open, arrived }, Barrier { open: opened, arrived: arrive })
    }

    /// Lets through all calls that wait at the gate, and those still to come to it.
    pub fn open(&self) {
        self.open.send_replace(true);
    }

    /// Resolves once this many calls have come to the gate.
    pub async fn reached(&self, calls: usize) {
        // The other side is gone only if the fault is, and then nobody comes any more.
        if self.arrived.clone().wait_for(|&arrived| arrived >= calls).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Barrier {
    pub(super) async fn pass(mut self) {
        self.arrived.send_modify(|arrived| *arrived += 1);
        // An error means that the gate was dropped.
        let _ = self.open.wait_for(|&open| open).await;
    }
}
