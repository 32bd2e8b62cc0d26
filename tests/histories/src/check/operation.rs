use std::{collections::BTreeMap, fmt};

use crate::history::{Answered, Entry, Line};

/// The lines of a history, put in order.
#[derive(Debug, Default)]
pub(super) struct Told<'a> {
    pub(super) lease: u64,
    pub(super) operations: BTreeMap<&'a str, Operation<'a>>,
    pub(super) faults: Vec<Struck<'a>>,
    /// When all faults were over.
    pub(super) healed: u64,
}

/// A fault that has been.
#[derive(Clone, Copy, Debug)]
pub(super) struct Struck<'a> {
    pub(super) name: &'a str,
    pub(super) target: &'a str,
    pub(super) began: u64,
    pub(super) ended: u64,
}

#[derive(Debug, Default)]
pub(super) struct Operation<'a> {
    /// In the order of their attempts.
    pub(super) runs: Vec<Run<'a>>,
    /// When each arrived, and what it was.
    pub(super) answers: Vec<(u64, &'a Answered)>,
    /// The executions of its rows.
    pub(super) rows: Vec<&'a str>,
}

/// An execution of the handler.
#[derive(Clone, Debug)]
pub(super) struct Run<'a> {
    pub(super) service: &'a str,
    pub(super) body: &'a str,
    pub(super) execution: &'a str,
    pub(super) attempt: u32,
    pub(super) takeover: bool,
    /// When the request arrived. Its claim came after.
    pub(super) asked: u64,
    pub(super) began: u64,
    /// When its effect, outside the database, took place.
    pub(super) effect: Option<u64>,
}

impl<'a> Told<'a> {
    pub(super) fn read(entries: &'a [Entry]) -> Self {
        let mut told = Self { healed: u64::MAX, ..Self::default() };
        let mut effects = BTreeMap::new();
        for Entry { at, line } in entries {
            match line {
                Line::Lease(lease) => told.lease = *lease,
                Line::Fault { name, target, began } => {
                    told.faults.push(Struck { name, target, began: *began, ended: *at });
                }
                Line::Began { service, key, body, execution, attempt, takeover, asked } => {
                    told.operations.entry(key).or_default().runs.push(Run {
                        service,
                        body,
                        execution,
                        attempt: *attempt,
                        takeover: *takeover,
                        asked: *asked,
                        began: *at,
                        effect: None,
                    });
                }
                Line::Effect { execution } => {
                    effects.insert(&**execution, *at);
                }
                Line::Row { key, execution } => told.operations.entry(key).or_default().rows.push(execution),
                Line::Answer(answered) => {
                    told.operations.entry(&answered.key).or_default().answers.push((*at, answered));
                }
                Line::Healed => told.healed = *at,
                Line::Up { .. } => {}
            }
        }
        for operation in told.operations.values_mut() {
            for run in &mut operation.runs {
                run.effect = effects.get(run.execution).copied();
            }
            operation.runs.sort_by_key(|run| (run.attempt, run.began));
        }
        told
    }
}

impl<'a> Operation<'a> {
    pub(super) fn run(&self, execution: &str) -> Option<&Run<'a>> {
        self.runs.iter().find(|run| run.execution == execution)
    }

    /// When a client first had the answer of a run.
    pub(super) fn answered(&self, run: &Run<'_>) -> Option<u64> {
        self.answers_of(run).map(|(at, _)| at).min()
    }

    /// When a client first had the answer of a run as a replay, so that it was kept.
    pub(super) fn kept(&self, run: &Run<'_>) -> Option<u64> {
        self.answers_of(run).filter(|(_, answered)| answered.replayed).map(|(at, _)| at).min()
    }

    fn answers_of(&self, run: &Run<'_>) -> impl Iterator<Item = (u64, &'a Answered)> {
        self.answers.iter().copied().filter(|(_, answered)| answered.execution.as_deref() == Some(run.execution))
    }
}

/// Its lines, in the order of time.
impl fmt::Display for Operation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = Vec::new();
        for Run { service, body, execution, attempt, takeover, asked, began, effect } in &self.runs {
            let claim = if *takeover { "takeover" } else { "claim" };
            lines.push((*began, format!("began {service} {body} {execution} {attempt} {claim} {asked}")));
            lines.extend(effect.map(|at| (at, format!("effect {execution}"))));
        }
        for (at, answered) in &self.answers {
            lines.push((*at, Line::Answer((*answered).clone()).to_string()));
        }
        lines.sort();
        lines.extend(self.rows.iter().map(|execution| (u64::MAX, format!("row {execution}"))));
        lines.iter().try_for_each(|(at, line)| match at {
            &u64::MAX => writeln!(f, "      {line}"),
            at => writeln!(f, "      {at} {line}"),
        })
    }
}
