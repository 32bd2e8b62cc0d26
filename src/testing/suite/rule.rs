use std::{
    any::Any,
    fmt,
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    task::Poll,
    time::Duration,
};

use super::{
    factory::{AnyFactory, Local},
    lab::Lab,
};

/// What a rule may take, for stores that never answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A rule of the suite; see [`rules`](super::rules).
#[derive(Clone, Copy)]
pub struct Rule {
    pub(super) name: &'static str,
    pub(super) topic: &'static str,
    pub(super) waits: bool,
    pub(super) check: for<'a> fn(&'a Lab<'a>) -> Local<'a, ()>,
}

impl Rule {
    /// Returns its name: a sentence with underscores between the words.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns its topic: claims, callers, secrets, leases, endings, undoing, races, waiting, tokens or operators.
    #[must_use]
    pub fn topic(&self) -> &'static str {
        self.topic
    }

    pub(super) async fn apply(self, factory: &dyn AnyFactory) -> Option<Failure> {
        let lab = Lab::new(factory);
        let checked = tokio::time::timeout(PATIENCE, caught((self.check)(&lab))).await;
        let message = match checked {
            Ok(Ok(())) => return None,
            Ok(Err(panic)) => text(&*panic),
            Err(_) => format!("the store had not answered after {PATIENCE:?}"),
        };
        Some(Failure { rule: self, message })
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rule({}::{})", self.topic, self.name)
    }
}

/// A rule that a store does not keep, and how that showed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Failure {
    /// The rule.
    pub rule: Rule,
    /// What was expected, and what was the case instead.
    pub message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule.name, self.message)
    }
}

/// Makes the table of a topic's rules. Those behind `waiting` let time pass.
macro_rules! rules {
    ($topic:literal: $($quick:ident),+ $(; waiting: $($slow:ident),+)?) => {
        pub(super) const RULES: &[$crate::testing::suite::Rule] = &[
            $($crate::testing::suite::rule::rules!(@one $topic, $quick, false),)+
            $($($crate::testing::suite::rule::rules!(@one $topic, $slow, true),)+)?
        ];
    };
    (@one $topic:literal, $name:ident, $waits:literal) => {
        $crate::testing::suite::Rule {
            name: stringify!($name),
            topic: $topic,
            waits: $waits,
            check: |lab| Box::pin($name(lab)),
        }
    };
}
pub(super) use rules;

async fn caught(check: impl Future<Output = ()>) -> Result<(), Box<dyn Any + Send>> {
    let mut check = pin!(check);
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| check.as_mut().poll(cx))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(())) => Poll::Ready(Ok(())),
        Err(panic) => Poll::Ready(Err(panic)),
    })
    .await
}

fn text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without a message").to_owned()
}
