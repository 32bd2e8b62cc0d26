//! What a server of Redis says of itself. The connection is a plain one, since the store refuses servers that are to be
//! reported here.

mod info;
mod servers;

use std::time::{Duration, Instant, SystemTime};

use redis::{aio::MultiplexedConnection, cmd};

use crate::{arguments::Place, failure::Failure, store_url::StoreUrl};

use self::info::Info;
use super::{
    encryption,
    finding::{Finding, Findings},
};

/// The longest round trip that is not reported, and the longest difference of two clocks.
pub(super) const SLOW: Duration = Duration::from_millis(100);
pub(super) const CLOCKS: Duration = Duration::from_secs(2);

/// How exactly clocks are compared: the databases answer in milliseconds.
const EXACT: Duration = Duration::from_millis(50);

/// How often the round trip is measured.
pub(super) const ROUNDS: usize = 5;

pub(super) async fn check(url: &StoreUrl, place: &Place, findings: &mut Findings) -> Result<(), Failure> {
    let servers = match servers::connect(url, place).await {
        Ok(servers) => servers,
        Err(failure @ Failure::Usage(_)) => return Err(failure),
        Err(failure) => {
            let remedy = "start the server, or correct the URL, the user or the network between them";
            findings.add(Finding::critical("connection", failure.to_string(), remedy));
            return Ok(());
        }
    };
    let several = servers.len() > 1;
    for (name, mut connection) in servers {
        let mut found = connection_checks(&mut connection).await;
        match ask_info(&mut connection).await {
            Some(text) => found.extend(info::checks(&Info::new(&text), url, &mut connection).await),
            None => found.push(Finding::unknown(
                "settings",
                "the user may not ask INFO: version, eviction and persistence are unknown",
            )),
        }
        for finding in found {
            findings.add(if several { finding.on(&name) } else { finding });
        }
    }
    let remedy = "use a URL of `rediss://`, and set `tls-port` on the server: what is kept passes the network";
    encryption(
        url,
        Some(url.exposed().starts_with("rediss") || url.exposed().starts_with("valkeys")),
        remedy,
        findings,
    );
    Ok(())
}

async fn ask_info(connection: &mut MultiplexedConnection) -> Option<String> {
    cmd("INFO").query_async(connection).await.ok()
}

/// Measures the round trip, and compares the clocks.
async fn connection_checks(connection: &mut MultiplexedConnection) -> Vec<Finding> {
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let began = Instant::now();
        match cmd("PING").query_async::<redis::Value>(connection).await {
            Ok(_) => rounds.push(began.elapsed()),
            Err(error) => {
                let remedy =
                    "the server is connected, and refuses even PING: look at its state and at the user's rights";
                return vec![Finding::critical("connection", error.to_string(), remedy)];
            }
        }
    }
    let asked = SystemTime::now();
    let time = cmd("TIME").query_async::<(u64, u64)>(connection).await.ok();
    let now = time
        .map(|(seconds, micros)| SystemTime::UNIX_EPOCH + Duration::new(seconds, 0) + Duration::from_micros(micros));
    vec![round_trip(rounds), clock(now, asked)]
}

/// Returns what the round trips say.
pub(super) fn round_trip(mut rounds: Vec<Duration>) -> Finding {
    rounds.sort_unstable();
    let median = rounds.get(rounds.len() / 2).copied().unwrap_or_default();
    let found = format!("{:.1} ms for a round trip", median.as_secs_f64() * 1_000.0);
    if median < SLOW {
        return Finding::good("connection", found);
    }
    Finding::warning(
        "connection",
        found,
        "each request waits for one to three round trips: bring application and store closer together",
    )
}

/// Compares the store's clock with this machine's, as it was when the store was asked.
pub(super) fn clock(store: Option<SystemTime>, asked: SystemTime) -> Finding {
    let Some(store) = store else { return Finding::unknown("clock", "the user may not ask for the time") };
    // The answer came within this time, so the difference is exact to it.
    let answered = SystemTime::now();
    let (ahead, behind) = (store.duration_since(answered).ok(), asked.duration_since(store).ok());
    let (off, word) = match (ahead, behind) {
        (Some(ahead), _) => (ahead, "ahead of"),
        (None, Some(behind)) => (behind, "behind"),
        (None, None) => return Finding::good("clock", "the same as this machine's"),
    };
    if off < EXACT {
        return Finding::good("clock", "the same as this machine's");
    }
    let found = format!("{:.1} s {word} this machine's", off.as_secs_f64());
    if off < CLOCKS {
        return Finding::good("clock", found);
    }
    let remedy =
        "set both clocks by NTP: leases are judged by the store's clock alone, but signed tokens and logs are not";
    Finding::warning("clock", found, remedy)
}
