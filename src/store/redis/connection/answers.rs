//! Noticing a connection that does not answer.
//!
//! A dead connection gives no error until the operating system gives up, which takes minutes. So answers are counted:
//! if none came for a quarter of a second while a command was waiting, the connection is suspected. Suspicion costs
//! nothing that works: another connection is opened beside it and takes over only if the first one stays silent.
//!
//! The timeouts of the driver are switched off: they end one command and say nothing about the connection. Here all
//! commands of a connection count together, also those whose callers have given up, so that callers with short limits
//! do not keep a dead connection in use.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::Poll,
    time::Duration,
};

use redis::RedisError;
use tokio::time::{Instant, timeout};

use crate::store::redis::error::CommandError;

/// If nothing at all was answered for this long after a command was sent, the connection is suspected to be dead.
pub(in crate::store::redis) const SILENCE_LIMIT: Duration = Duration::from_millis(250);

/// Counts the answers of a server, and notices if none arrive.
///
/// A caller may give up long before its command is late: the layer's store timeout may be a tenth of the limit for a
/// command. The silence that such a caller has seen counts too; otherwise callers with short limits would keep using a
/// dead connection.
#[derive(Default)]
pub(in crate::store::redis) struct Answers {
    /// How many answers have arrived.
    count: AtomicU64,
    /// The first command that a caller gave up since the last answer: the number of answers before it, and when it was
    /// sent.
    given_up: Mutex<Option<(u64, Instant)>>,
}

impl Answers {
    /// Returns how many answers have arrived.
    pub(in crate::store::redis) fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// Waits for the answer to a command, but not longer than `limit`; calls `suspect` if the connection seems to be
    /// dead. A command that has waited for some time is aborted if `replaced` resolves.
    ///
    /// A caller that drops the future early counts as well: how long it has waited in silence is remembered until the
    /// next answer.
    pub(in crate::store::redis) async fn wait<T>(
        &self,
        limit: Duration,
        answer: impl Future<Output = Result<T, RedisError>>,
        replaced: impl Future<Output = ()>,
        suspect: impl Fn(),
    ) -> Result<T, CommandError> {
        let mut pending =
            PendingCommand { answers: self, suspect, before: self.count(), sent: Instant::now(), answered: false };
        let (mut answer, patience) = (pin!(answer), SILENCE_LIMIT.min(limit));
        let soon = timeout(patience, answer.as_mut()).await;
        let ended = if soon.is_ok() {
            soon
        } else {
            pending.check_silence();
            timeout(limit.saturating_sub(patience), unless(answer, replaced)).await
        };
        match ended {
            Ok(Err(error)) if error.is_unrecoverable_error() => {
                // A connection that is known to be broken need not be observed.
                pending.answered = true;
                Err(CommandError::Failed(error))
            }
            Ok(answer) => {
                pending.answered = true;
                self.count.fetch_add(1, Relaxed);
                answer.map_err(CommandError::Failed)
            }
            Err(_) => Err(CommandError::NoAnswer),
        }
    }

    /// Returns since when nothing was answered, as far as callers that gave up can tell, and one whose command was sent
    /// at `sent` after `before` answers.
    fn silent_since(&self, before: u64, sent: Instant) -> Option<Instant> {
        if self.count() != before {
            return None;
        }
        let mut given_up = self.given_up.lock().unwrap_or_else(PoisonError::into_inner);
        match *given_up {
            Some((count, first)) if count == before => Some(first.min(sent)),
            _ => {
                *given_up = Some((before, sent));
                Some(sent)
            }
        }
    }
}

/// A command that is under way.
struct PendingCommand<'a, F: Fn()> {
    answers: &'a Answers,
    suspect: F,
    /// How many answers there were when the command was sent.
    before: u64,
    /// When it was sent.
    sent: Instant,
    /// Its answer has arrived, so its drop proves nothing.
    answered: bool,
}

impl<F: Fn()> PendingCommand<'_, F> {
    /// Calls `suspect` if nothing was answered for long enough.
    fn check_silence(&self) {
        let silent = self.answers.silent_since(self.before, self.sent);
        if silent.is_some_and(|since| since.elapsed() >= SILENCE_LIMIT) {
            (self.suspect)();
        }
    }
}

impl<F: Fn()> Drop for PendingCommand<'_, F> {
    fn drop(&mut self) {
        if !self.answered {
            self.check_silence();
        }
    }
}

/// Returns the answer, unless the connection is replaced before it arrives.
async fn unless<T>(
    mut answer: Pin<&mut impl Future<Output = Result<T, RedisError>>>,
    replaced: impl Future<Output = ()>,
) -> Result<T, RedisError> {
    let mut replaced = pin!(replaced);
    poll_fn(|cx| match answer.as_mut().poll(cx) {
        Poll::Pending if replaced.as_mut().poll(cx).is_ready() => {
            Poll::Ready(Err(std::io::Error::from(std::io::ErrorKind::BrokenPipe).into()))
        }
        answer => answer,
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::{
        cell::Cell,
        future::{pending, ready},
    };

    use super::*;

    const LIMIT: Duration = Duration::from_secs(2);

    async fn unanswered(answers: &Answers, patience: Duration) -> u32 {
        let suspected = Cell::new(0);
        let answer = answers.wait(LIMIT, pending::<Result<(), _>>(), pending(), || suspected.set(suspected.get() + 1));
        assert!(timeout(patience, answer).await.is_err());
        suspected.get()
    }

    async fn answered(answers: &Answers) {
        assert!(answers.wait(LIMIT, ready(Ok(())), pending(), || panic!("it is answered")).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn callers_in_a_hurry_notice_a_silence_together() {
        let (answers, hurry) = (Answers::default(), SILENCE_LIMIT / 5 * 2);
        assert_eq!(unanswered(&answers, hurry).await, 0);
        assert_eq!(unanswered(&answers, hurry).await, 0);
        assert_eq!(unanswered(&answers, hurry).await, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_ends_a_silence() {
        let (answers, hurry) = (Answers::default(), SILENCE_LIMIT / 5 * 2);
        for _ in 0..10 {
            assert_eq!(unanswered(&answers, hurry).await, 0);
            assert_eq!(unanswered(&answers, hurry).await, 0);
            answered(&answers).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_who_waits_notices_it_before_the_command_is_late() {
        assert_eq!(unanswered(&Answers::default(), SILENCE_LIMIT * 4 / 5).await, 0);
        assert!(unanswered(&Answers::default(), SILENCE_LIMIT * 6 / 5).await > 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_command_that_waits_is_cut_off_when_its_connection_is_replaced() {
        let began = Instant::now();
        let replaced = tokio::time::sleep(SILENCE_LIMIT * 2);
        let ended = Answers::default().wait(LIMIT, pending::<Result<(), _>>(), replaced, || ()).await;
        assert!(ended.is_err_and(|error| error.is_disconnect()));
        assert!(began.elapsed() < LIMIT / 2);
    }
}
