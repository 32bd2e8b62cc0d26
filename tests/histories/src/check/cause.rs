use super::operation::{Operation, Run, Struck, Told};

/// By how much two clocks of one machine differ, if both are read in milliseconds.
const ROUNDED: u64 = 5;

impl Told<'_> {
    /// Why an operation had an effect in a second run, although the first one had it: the claim of the first one lapsed,
    /// before its answer was kept, because of a fault.
    pub(super) fn cause(&self, operation: &Operation<'_>, first: &Run<'_>, second: &Run<'_>) -> Option<&'static str> {
        // An answer that was kept stays.
        let may_be = operation.kept(first).is_none() && second.attempt > first.attempt;
        let has_lapsed = second.began + ROUNDED >= first.asked + self.lease;
        let lapsed = (may_be && has_lapsed).then(|| self.lapse(operation, first, second.began)).flatten();
        let lost = || self.is_lost_between(operation, first, second).then_some("a failover lost its record");
        lapsed.or_else(lost)
    }

    /// Whether a failover may have lost what the earlier one of two runs has written. The number of the later one may then
    /// be the lower.
    pub(super) fn is_lost_between(&self, operation: &Operation<'_>, one: &Run<'_>, other: &Run<'_>) -> bool {
        let (earlier, later) = if one.began <= other.began { (one, other) } else { (other, one) };
        self.is_lost(operation, earlier, later.began)
    }

    /// Whether a failover before a time may have lost what a run has written: its claim, or how that ended. It
    /// begins when the replicas have confirmed all that there was, and ends when the master is killed.
    pub(super) fn is_lost(&self, operation: &Operation<'_>, run: &Run<'_>, until: u64) -> bool {
        let last = operation.answered(run).unwrap_or(until);
        let mut failovers = self.faults.iter().filter(|fault| fault.name == "failover");
        failovers.any(|failover| failover.began <= last.min(until) && failover.ended >= run.asked)
    }

    /// Why the claim of a run may have lapsed before a time: its process was killed, or it and the store could not
    /// reach each other for half of the time of a lease or more. A lease is renewed each third of it.
    pub(super) fn lapse(&self, operation: &Operation<'_>, run: &Run<'_>, until: u64) -> Option<&'static str> {
        // The answer is kept before a client has it, save if a fault is in the way for long.
        let known = operation.answered(run).unwrap_or(u64::MAX);
        let touches = |fault: &&Struck<'_>| {
            let concerned = [run.service, "store", "host"].contains(&fault.target);
            concerned && fault.name != "kill" && fault.ended >= run.asked && fault.began <= until.min(known)
        };
        let faults: Vec<_> = self.faults.iter().filter(touches).collect();
        let spans = |names: &[&str], until: u64| {
            let faults = faults.iter().filter(|fault| names.is_empty() || names.contains(&fault.name));
            faults.map(|fault| (fault.began.max(run.asked), fault.ended.min(until))).collect::<Vec<_>>()
        };
        let mut kills = self.faults.iter().filter(|fault| fault.name == "kill" && fault.target == run.service);
        let last_words = if covered(spans(&[], known.min(until))) >= self.lease / 3 { until } else { known.min(until) };
        if kills.any(|kill| (run.asked..=last_words).contains(&kill.began)) {
            return Some("its process was killed");
        }
        let away = |names: &[&str]| most_of(self.lease, &spans(names, until));
        let parts = [
            ("its process stood still", away(&["stop", "still"])),
            ("its link was faulty", away(&["cut", "half-open", "held", "unanswered", "slow"])),
            ("the store was away", away(&["store-kill", "store-stop"])),
        ];
        let longest = parts.into_iter().max_by_key(|(_, time)| *time)?;
        (away(&[]) >= self.lease / 2).then_some(longest.0)
    }
}

/// How much of any time of this length it is, at most, that at least one of these spans lasts.
fn most_of(length: u64, spans: &[(u64, u64)]) -> u64 {
    let starts = spans.iter().flat_map(|(from, to)| [*from, to.saturating_sub(length)]);
    let within =
        |start: u64| covered(spans.iter().map(|(from, to)| ((*from).max(start), (*to).min(start + length))).collect());
    starts.map(within).max().unwrap_or_default()
}

/// How long it is that at least one of these spans lasts.
fn covered(mut spans: Vec<(u64, u64)>) -> u64 {
    spans.sort_unstable();
    let (mut sum, mut end) = (0, 0);
    for (from, to) in spans {
        sum += to.saturating_sub(from.max(end));
        end = end.max(to);
    }
    sum
}

#[test]
fn spans_that_overlap_count_once() {
    assert_eq!(covered(vec![(10, 20), (15, 30), (40, 50), (42, 45)]), 30);
    assert_eq!(covered(vec![(9, 5)]), 0);
    assert_eq!(most_of(30, &[(10, 20), (15, 30), (45, 50), (100, 105)]), 20);
    assert_eq!(most_of(40, &[(10, 20), (15, 30), (45, 50), (100, 105)]), 25);
}
