use super::{
    operation::{Operation, Run, Told},
    report::Report,
};
use crate::{
    clients::is_final,
    history::{Answered, Mode},
};

pub(super) const DOUBLED: &str = "an effect again without a cause";
pub(super) const RAN_AFTER: &str = "a run after the answer was kept";
pub(super) const TWICE: &str = "at most once, and run twice";
pub(super) const NO_EFFECT: &str = "an answer without its effect";
pub(super) const CHANGED: &str = "another answer than before";
pub(super) const UNRECORDED: &str = "a replay of what nobody ran";
pub(super) const FIRST_TWICE: &str = "a first answer given twice";
pub(super) const FORGOTTEN: &str = "an answer forgotten";
pub(super) const FALSE_422: &str = "another body claimed, and there is none";
pub(super) const GARBLED: &str = "an answer to another request";
pub(super) const UNKNOWN: &str = "an answer that is none of those documented";
pub(super) const SILENT: &str = "no answer, and no fault";
pub(super) const UNDECIDED: &str = "no final answer in the end";

/// Complains of what an operation breaks.
pub(super) fn apply(told: &Told<'_>, key: &str, operation: &Operation<'_>, report: &mut Report) {
    let mode = Mode::of(key);
    let mut broken = Vec::new();
    if mode == Some(Mode::Transfer) {
        broken.extend((operation.rows.len() > 1).then_some(DOUBLED));
    } else {
        broken.extend(effects(told, operation, report));
    }
    broken.extend(runs_after_answers(told, operation));
    broken.extend((mode == Some(Mode::Once) && ran_twice(told, operation)).then_some(TWICE));
    for (at, answered) in &operation.answers {
        let fault = answer(told, operation, *at, answered, mode);
        broken.extend(fault);
    }
    broken.extend(replays(told, operation));
    let last = operation.answers.iter().filter(|(_, answered)| answered.asked >= told.healed);
    let decided = last.clone().any(|(_, answered)| is_final(answered));
    broken.extend((!decided && told.healed != u64::MAX).then_some(UNDECIDED));
    for rule in broken {
        report.complain(rule, key, operation);
    }
}

/// Each effect after the first one needs a cause, with each of those before it.
fn effects(told: &Told<'_>, operation: &Operation<'_>, report: &mut Report) -> Option<&'static str> {
    let runs: Vec<_> = operation.runs.iter().filter(|run| run.effect.is_some()).collect();
    let mut untraced = None;
    for (number, second) in runs.iter().enumerate().skip(1) {
        let causes = runs[..number].iter().map(|first| told.cause(operation, first, second));
        // The last one before it is the one that it took over from.
        match causes.collect::<Option<Vec<_>>>().and_then(|causes| causes.last().copied()) {
            Some(cause) => *report.doubled.entry(cause).or_default() += 1,
            None => untraced = Some(DOUBLED),
        }
    }
    untraced
}

/// What was kept stays: no later attempt runs, and nothing runs that was asked for after a replay.
fn runs_after_answers(told: &Told<'_>, operation: &Operation<'_>) -> Option<&'static str> {
    let after = operation.runs.iter().any(|kept| {
        let Some(at) = operation.kept(kept) else { return false };
        let is_after = |run: &&Run<'_>| run.attempt > kept.attempt || run.asked > at;
        operation.runs.iter().filter(is_after).any(|run| !told.is_lost_between(operation, kept, run))
    });
    after.then_some(RAN_AFTER)
}

fn ran_twice(told: &Told<'_>, operation: &Operation<'_>) -> bool {
    operation.runs.windows(2).any(|pair| !told.is_lost_between(operation, &pair[0], &pair[1]))
}

fn answer(
    told: &Told<'_>,
    operation: &Operation<'_>,
    at: u64,
    answered: &Answered,
    mode: Option<Mode>,
) -> Option<&'static str> {
    let said = answered.said.as_deref();
    match (answered.status, said) {
        (201, None) => success(operation, answered, mode),
        (201, _) => Some(GARBLED),
        (422, Some("key-reused")) => {
            let others = |(_, other): &(u64, &Answered)| other.body != answered.body && other.asked <= at;
            (!operation.answers.iter().any(others)).then_some(FALSE_422)
        }
        (409, Some("outcome-unknown")) if mode == Some(Mode::Once) => forgotten(told, operation, at),
        (409, Some("request-in-progress"))
        | (503, Some("store-unavailable"))
        | (500, Some("failed"))
        | (0, Some("panicked" | "left")) => None,
        (500, Some("handler-failed")) if mode == Some(Mode::Once) => None,
        (503, Some("commit-unknown")) | (500, _) if mode == Some(Mode::Transfer) => None,
        (0, Some("broken")) => (!was_down(told, answered, at)).then_some(SILENT),
        (0, _) => Some(SILENT),
        _ => Some(UNKNOWN),
    }
}

fn success(operation: &Operation<'_>, answered: &Answered, mode: Option<Mode>) -> Option<&'static str> {
    let execution = answered.execution.as_deref()?;
    let Some(run) = operation.run(execution) else { return Some(UNRECORDED) };
    let has_effect = match mode {
        Some(Mode::Transfer) => operation.rows.contains(&execution),
        _ => run.effect.is_some(),
    };
    if !has_effect {
        Some(NO_EFFECT)
    } else if run.body != answered.body || (!answered.replayed && run.service != answered.service) {
        Some(GARBLED)
    } else {
        None
    }
}

/// At most once: after a client had the answer, that the outcome is unknown needs a cause. It may become known again, as
/// long as the process tries to keep the answer.
fn forgotten(told: &Told<'_>, operation: &Operation<'_>, at: u64) -> Option<&'static str> {
    let before = |time: Option<u64>| time.is_some_and(|time| time < at);
    let mut given = operation.runs.iter().filter(|run| before(operation.answered(run)));
    let forgotten = |run: &Run<'_>| {
        let is_kept = before(operation.kept(run)) || told.lapse(operation, run, at).is_none();
        is_kept && !told.is_lost(operation, run, at)
    };
    given.any(forgotten).then_some(FORGOTTEN)
}

/// All replays are of one execution, and the first answer of each is given once.
fn replays(told: &Told<'_>, operation: &Operation<'_>) -> Option<&'static str> {
    let named = |replayed| {
        let answers = operation.answers.iter().filter(move |(_, answered)| answered.replayed == replayed);
        answers.filter_map(|(_, answered)| answered.execution.as_deref()).collect::<Vec<_>>()
    };
    let (replays, mut firsts) = (named(true), named(false));
    let lost = |execution| operation.run(execution).is_some_and(|run| told.is_lost(operation, run, u64::MAX));
    if replays.windows(2).any(|pair| pair[0] != pair[1] && !lost(pair[0])) {
        return Some(CHANGED);
    }
    firsts.sort_unstable();
    firsts.windows(2).any(|pair| pair[0] == pair[1]).then_some(FIRST_TWICE)
}

/// Whether the service that was asked was killed meanwhile, or had just been.
fn was_down(told: &Told<'_>, answered: &Answered, at: u64) -> bool {
    let mut kills = told.faults.iter().filter(|fault| fault.name == "kill" && fault.target == answered.service);
    kills.any(|kill| kill.began <= at && kill.ended >= answered.asked)
}
