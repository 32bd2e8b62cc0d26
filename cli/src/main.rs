//! `tower-idempotency`: a tool for those who operate a store of the crate.

// For maintainers, in reading order:
//
// - `arguments`: what can be asked. `store_url`, `connected`: which store, and the connection to it.
// - `verbs`: one file for each verb. A verb returns an `Answer`, as text and as JSON, and prints nothing by itself.
// - `subject`: which record is meant. `agreement`: asking before a change. `progress`: what is shown in between.
// - `show`: tables, times, records. `failure`: errors and exit codes.

mod agreement;
mod arguments;
mod connected;
mod failure;
mod progress;
mod show;
mod store_url;
mod subject;
mod verbs;

use std::{
    io::{self, IsTerminal, Write},
    process::ExitCode,
};

use clap::Parser;

use self::{
    arguments::Arguments,
    failure::Failure,
    show::{Answer, Look},
};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let (json, look) = (arguments.json, Look::new(&io::stdout()));
    let done = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(verbs::run(arguments, look)),
        Err(error) => Err(Failure::Setup(format!("the runtime cannot be started: {error}"))),
    };
    match done {
        Ok(answer) => print(&answer, json),
        Err(failure) => complain(&failure, json),
    }
}

/// Prints an answer. A reader that has left, such as `head`, changes nothing: what was asked for is done.
fn print(answer: &Answer, json: bool) -> ExitCode {
    let text = if json { format!("{:#}\n", answer.json) } else { answer.text.clone() };
    let mut output = io::stdout().lock();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            complain(&Failure::Setup(format!("the answer cannot be written: {error}")), json)
        }
        _ => ExitCode::from(answer.code),
    }
}

/// Prints an error on standard error.
fn complain(failure: &Failure, json: bool) -> ExitCode {
    let mut output = io::stderr().lock();
    let text = if json {
        format!("{:#}\n", failure.json())
    } else {
        let look = Look::new(&output);
        format!("{} {failure}\n", look.bad("error:"))
    };
    // There is nobody left to tell.
    let _ = output.write_all(text.as_bytes());
    ExitCode::from(failure.code())
}

/// Returns whether a person is at both ends, who can be asked.
fn is_attended() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}
