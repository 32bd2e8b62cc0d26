//! `doctor`: what the server says of itself, what is in the store, and what to set right.
//!
//! - `finding`: a finding, its severity, the screen. `records`: counts, abandoned records, the outbox.
//! - `redis`, `sql`: what each kind of server is asked.

mod finding;
mod records;
mod redis;
mod sql;

use serde_json::json;

use crate::{
    arguments::{Doctor, Place},
    connected::Connected,
    failure::Failure,
    show::{Answer, Look},
    store_url::{Kind, StoreUrl},
};

use self::finding::{Finding, Findings};

/// Checks a store. Only arguments that are wrong are an error: whatever else fails is a finding.
pub(super) async fn run(url: &StoreUrl, place: &Place, doctor: &Doctor, look: Look) -> Result<Answer, Failure> {
    let mut findings = Findings::default();
    if url.kind == Kind::Redis {
        redis::check(url, place, &mut findings).await?;
    }
    let connected = match Connected::open(url, place, false).await {
        Ok(connected) => Some(connected),
        Err(failure @ Failure::Usage(_)) => return Err(failure),
        Err(failure) => {
            refused(&failure.to_string(), &mut findings);
            None
        }
    };
    let mut counts = records::Counts::default();
    if let Some(connected) = &connected {
        sql::check(connected, url, &mut findings).await;
        counts = records::check(connected, doctor, &mut findings).await;
    }
    let severity = findings.severity();
    let json = json!({
        "store": url.shown(),
        "severity": severity.word(),
        "checks": findings.json(|text| url.conceal(text)),
        "records": counts.records,
        "oldest_abandoned_ms": counts.oldest_abandoned,
        "outbox": counts.outbox,
    });
    let screen = url.conceal(findings.render(&url.shown(), look));
    Ok(Answer { code: severity.code(), ..Answer::new(screen, json) })
}

/// Adds that the store does not take this server, unless another finding says why it cannot be reached.
fn refused(why: &str, findings: &mut Findings) {
    if !findings.has("connection") {
        let remedy = "start the server, or correct the URL, the user or the network between them";
        findings.add(Finding::critical("connection", why, remedy));
    } else if !findings.is_critical("connection") {
        findings.add(Finding::critical(
            "store",
            why,
            "the application's store refuses this server for the same reason",
        ));
    }
}

/// Returns whether all servers of a URL are on this machine.
fn is_local(url: &StoreUrl) -> bool {
    let is_local = |host: &String| {
        let name = host.rsplit_once(':').map_or(&**host, |(name, _)| name).trim_matches(['[', ']']);
        name.is_empty() || name == "localhost" || name == "::1" || name.starts_with("127.") || name.starts_with('/')
    };
    url.hosts().iter().all(is_local)
}

/// Adds whether the connection is encrypted.
fn encryption(url: &StoreUrl, encrypted: Option<bool>, remedy: &str, findings: &mut Findings) {
    findings.add(match encrypted {
        Some(true) => Finding::good("tls", "the connection is encrypted"),
        _ if is_local(url) => Finding::good("tls", "not needed: the server is on this machine"),
        Some(false) => Finding::warning("tls", "the connection is not encrypted", remedy),
        None => Finding::unknown("tls", "the server does not say"),
    });
}
