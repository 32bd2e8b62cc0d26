//! Messages of a layer whose switch is not on.

use std::sync::{Arc, Mutex, PoisonError};

use tower_service::Service;

use super::{Consumed, settings::Settings};
use crate::{
    engine::{ClaimRequest, NotRun, Outcome, Task},
    value::{Event, Protection, RecordKey, is_sealed},
};

impl<M> Settings<M> {
    /// Returns whether messages are protected now. A layer that does not protect them is named in the log.
    pub(super) fn protection(&self) -> Protection {
        let protection = self.engine.protection();
        if protection != Protection::On {
            self.engine.name_unprotected(&self.name, protection);
        }
        if self.disabled { Protection::Off } else { protection }
    }

    /// Handles a message, claimed if its claim is granted, and otherwise without one.
    pub(super) async fn observe<S>(
        self: Arc<Self>,
        request: ClaimRequest,
        inner: S,
        message: M,
    ) -> Result<Consumed<S::Response, S::Error>, S::Error>
    where
        S: Service<M> + Send + 'static,
        S::Future: Send,
        S::Response: Send + 'static,
        S::Error: Send + 'static,
        M: Send + 'static,
    {
        let left = Arc::new(Mutex::new(Some((inner, message))));
        let take = |left: &Mutex<Option<_>>| left.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (handling, claimed) = (self.clone(), left.clone());
        let work = move |state| async move {
            match take(&claimed) {
                Some((inner, message)) => handling.handle(state, inner, message).await,
                None => unreachable!("a message is taken once"),
            }
        };
        let observing = self.clone();
        let map = move |key: &RecordKey, outcome: Outcome<_>| match outcome {
            Outcome::NotRun(why) => {
                observing.report_observed(key, &why);
                None
            }
            outcome => Some(observing.consumed(key, outcome)),
        };
        let ended = Task::execute(self.engine.clone(), request, self.fn_settings(), work, map).await;
        Ok(match (ended, take(&left)) {
            (Some(consumed), _) => consumed,
            (None, Some((mut inner, message))) => self.unprotected(inner.call(message).await),
            (None, None) => unreachable!("a message that was not claimed is still there"),
        })
    }

    fn report_observed(&self, key: &RecordKey, why: &NotRun) {
        match why {
            NotRun::Settled(payload, _) if !is_sealed(payload.as_ref()) => {
                self.engine.report(&Event::WouldReplay { key });
            }
            why => {
                let refusal = &why.refusal();
                self.engine.report(&Event::WouldRefuse { route: key.route(), key: Some(key), refusal });
            }
        }
    }
}
