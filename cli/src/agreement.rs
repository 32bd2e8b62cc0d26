//! Asking before a change: a person on a terminal, or `--yes`.

use std::io::{self, Write};

use crate::{failure::Failure, is_attended};

/// Shows what would be done, and returns an error unless it is agreed to.
pub(crate) fn ask(what: &str, yes: bool) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !is_attended() {
        return Err(Failure::Refused(format!("{what}\nnothing was changed: without a terminal, --yes is needed")));
    }
    let mut question = io::stderr().lock();
    let mut answer = String::new();
    let asked = write!(question, "{what}\nGo on? [y/N] ").and_then(|()| question.flush());
    drop(question);
    asked.and_then(|()| io::stdin().read_line(&mut answer)).map_err(|error| Failure::Setup(error.to_string()))?;
    if matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
        return Ok(());
    }
    Err(Failure::Refused("nothing was changed".into()))
}
