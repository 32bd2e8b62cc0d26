use std::sync::{Arc, Mutex};

use tower_idempotency::{Event, Observer};

/// Records what a layer does, a line for each event.
#[derive(Clone, Debug, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    /// Takes the lines since the last time.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// Returns how often a line was recorded.
    pub fn count(&self, line: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|heard| *heard == line).count()
    }
}

impl Observer for Log {
    fn on_event(&self, event: &Event<'_>) {
        let line = match *event {
            Event::Refused { refusal, .. } => format!("refused: {}", refusal.name()),
            Event::Replayed { .. } => "replayed".to_owned(),
            Event::Responded { .. } => "responded".to_owned(),
            Event::Claimed { attempt, takeover: false, .. } => format!("claimed: {attempt}"),
            Event::Claimed { attempt, .. } => format!("taken over: {attempt}"),
            Event::Settled { not_kept: None, .. } => "settled".to_owned(),
            Event::Settled { not_kept: Some(why), .. } => format!("settled as a tombstone: {why}"),
            Event::Released { .. } | Event::Withdrawn { .. } | Event::Waiting { .. } | Event::Keyless { .. } => {
                event.name().to_owned()
            }
            Event::Waited { end, .. } => format!("waited: {end}"),
            Event::ClaimLost { attempt, .. } => format!("lost: {attempt}"),
            Event::StoreFailed { verb, error, retried, .. } => {
                format!("{verb} failed: {:?}{}", error.kind(), if retried { ", again" } else { "" })
            }
            Event::NotRecorded { verb, .. } => format!("not recorded: {verb}"),
            Event::FailedOpen { .. } => "failed open".to_owned(),
            Event::Detached { .. } => "detached".to_owned(),
            Event::BackgroundEnded { after, .. } => format!("ended in the background after {after:?}"),
            Event::Dropped { reason, after, .. } => format!("dropped after {after:?}: {reason}"),
            _ => format!("unknown: {event:?}"),
        };
        self.0.lock().unwrap().push(line);
    }
}
