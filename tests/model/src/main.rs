//! A model of the protocol, every path of which is searched. The store applies the crate's own rules
//! ([`RecordSlot`](tower_idempotency::store::RecordSlot)); requests, their processes, the network and the clock are modelled.
//!
//! - `config`: what a search allows: which mode, how many requests, which faults, and which rule is broken on purpose.
//! - `state`: the requests, the messages on their way, the record, and what has been observed so far.
//! - `store`: one message at the store. `process`: what a process does, and what its answers mean to it. `steps`: what can
//!   happen next. `properties`: what always holds.
//! - `tests`: the configurations, and for each broken rule the property that fails.
//!
//! README.md has the numbers of states, and how to search further.

mod config;
mod process;
mod properties;
mod state;
mod steps;
mod store;
#[cfg(test)]
mod tests;

use stateright::{Checker, Model};

use crate::config::Config;

/// Searches one configuration by its name, and prints the number of states, or the way to what should not be.
fn main() {
    let name = std::env::args().nth(1).unwrap_or_default();
    let Some((_, config)) = config::all().into_iter().find(|(known, _)| *known == name) else {
        let known: Vec<_> = config::all().into_iter().map(|(name, _)| name).collect();
        eprintln!("usage: protocol-model NAME, with one of {known:?}");
        std::process::exit(2);
    };
    println!("{}", search(config));
}

/// Searches a configuration, and returns its number of states, or the broken properties with the steps that lead there.
fn search(config: Config) -> String {
    let checker = config.checker().spawn_bfs().join();
    let mut text = format!("{} states, {} transitions\n", checker.unique_state_count(), checker.state_count());
    for (property, path) in checker.discoveries() {
        let steps: Vec<_> = path.into_actions().iter().map(|step| format!("  {step}\n")).collect();
        text = [&*text, "broken: ", property, "\n", &steps.concat()].concat();
    }
    text
}
