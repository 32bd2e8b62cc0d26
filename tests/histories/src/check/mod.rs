//! Judges a history by what is promised, knowing nothing of how the crate does it.
//!
//! - `operation`: the lines of a history by operation
//! - `cause`: why an operation may have had an effect again
//! - `rules`: what must not be
//! - `report`: what was found, in words

mod cause;
mod operation;
mod report;
mod rules;
#[cfg(test)]
mod tests;

use crate::history::Entry;

pub(crate) use self::report::Report;

/// Checks a history.
pub(crate) fn check(entries: &[Entry]) -> Report {
    let told = operation::Told::read(entries);
    let mut report = Report::new(&told);
    for (key, operation) in &told.operations {
        rules::apply(&told, key, operation, &mut report);
    }
    report
}
