//! What always holds.

use stateright::{Model, Property};

use crate::{
    config::{Config, Mode},
    state::{Phase, State},
};

pub(crate) const ONE_HOLDER: &str = "at most one request holds the key";
pub(crate) const NO_FAULT: &str =
    "answers are those of the record, which do not change, and are for its caller and content";
pub(crate) const ONE_RUN: &str = "at most once does not run twice within its retention";
pub(crate) const ONE_EFFECT: &str =
    "there is one effect, unless a lease lapses before its record is there, and in a transaction always";
pub(crate) const ANSWERED: &str = "who waits is answered";
pub(crate) const NOT_BEGUN: &str = "an operation that never ran is not left as begun";

pub(crate) fn all() -> Vec<Property<Config>> {
    vec![
        Property::always(ONE_HOLDER, |_, state: &State| {
            let holders = (0..).zip(&state.requests).filter(|(number, _)| state.holds(*number)).count();
            holders <= 1 || state.seen.forgotten
        }),
        Property::always(NO_FAULT, |_, state: &State| state.seen.fault.is_none()),
        Property::always(ONE_RUN, |config: &Config, state: &State| {
            // What a reconciler has released may run again: it has found that there was no effect.
            let times = if config.reconciler { state.seen.effects } else { state.seen.runs };
            config.mode != Mode::AtMostOnce || state.seen.forgotten || times <= 1
        }),
        Property::always(ONE_EFFECT, |config: &Config, state: &State| {
            let Config { mode, crashes, losses, pauses, failover, reconciler, .. } = config;
            let is_calm = *crashes == 0 && *losses == 0 && !pauses && !failover && !reconciler;
            let applies = *mode == Mode::Transaction || is_calm;
            let is_excused = state.seen.forgotten || (*mode != Mode::Transaction && state.seen.late_record);
            !applies || is_excused || state.seen.effects <= 1
        }),
        Property::always(ANSWERED, |config: &Config, state: &State| {
            has_next(config, state)
                || state.requests.iter().all(|request| matches!(request.phase, Phase::Answered(_) | Phase::Died))
        }),
        Property::always(NOT_BEGUN, |config: &Config, state: &State| {
            // A copy of a claim that comes a lease after its withdrawal finds nobody who would withdraw it.
            let is_calm = config.losses == 0 && config.copies == 0 && !config.failover;
            let applies = config.mode == Mode::AtMostOnce && is_calm;
            !applies || has_next(config, state) || state.seen.runs > 0 || state.holder().is_none()
        }),
    ]
}

/// Returns whether anything but the passing of time can happen.
fn has_next(config: &Config, state: &State) -> bool {
    let mut steps = Vec::new();
    config.actions(state, &mut steps);
    steps.iter().any(|step| !matches!(step, crate::state::Step::Tick))
}
