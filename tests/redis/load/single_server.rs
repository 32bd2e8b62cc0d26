//! One server.

use std::{thread, time::Duration};

use super::{
    LEASE, LEFT, Load,
    log::{Run, Told, now},
};
use crate::server::Server;

/// What `appendfsync everysec` may lose, and how late the disk may be.
const UNSAVED: Duration = Duration::from_secs(3);
const ROUNDS: u32 = 18;

/// A time during which the server was away, and whether it may have lost what it had received.
struct Absence {
    began: Duration,
    ended: Duration,
    killed: bool,
}

#[test]
fn every_doubled_effect_is_explained() {
    let mut server = Server::start(&["--appendonly", "yes", "--appendfsync", "everysec"]);
    let load = Load::start(&server.url(), server.folder(), 1);
    let mut absences = Vec::new();
    for round in 0..ROUNDS {
        thread::sleep(Duration::from_millis(400));
        let away = if round % 6 >= 4 { LEASE + LEASE / 4 } else { Duration::from_millis(250) };
        let began = now();
        let killed = round % 3 == 2;
        match round % 3 {
            0 => server.cut(),
            1 => {
                server.pause();
                thread::sleep(away);
                server.resume();
            }
            _ => {
                server.kill();
                thread::sleep(away);
                server.start_again();
            }
        }
        absences.push(Absence { began, ended: now(), killed });
    }
    let log = load.end();
    let told = Told::read(&log);
    told.trace(|_, first, second| absences.iter().find_map(|absence| explains(absence, first, second)));
    told.all_is_answered();
}

/// The server was away for longer than the lease had left, or it was killed before it had saved what the first run's
/// record came to.
fn explains(absence: &Absence, first: &Run<'_>, second: &Run<'_>) -> Option<&'static str> {
    let written = first.settled.unwrap_or(first.at);
    let between = absence.ended >= first.asked && absence.began <= second.at;
    if between && absence.killed && (absence.began..absence.ended + UNSAVED).contains(&(written + UNSAVED)) {
        Some("killed before it had saved")
    } else if between && absence.ended >= absence.began + LEFT && second.at >= first.asked + LEASE {
        Some("away for longer than the lease")
    } else {
        None
    }
}
