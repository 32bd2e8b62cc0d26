//! `stats`: how many records there are, by state.

use serde_json::json;
use tower_idempotency::store::Stats;

use crate::{
    failure::Failure,
    show::{Answer, Look, table::pairs, thousands},
};

use super::Context;

pub(super) async fn run(context: &Context) -> Result<Answer, Failure> {
    let stats = context.connected.admin().stats().await?;
    let mut lines = vec![("store", context.url.shown())];
    lines.extend(counts(&stats, context.look));
    Ok(Answer::new(pairs(&lines, context.look), json(&stats)))
}

/// Returns the counts as lines. Abandoned records stand out.
pub(super) fn counts(stats: &Stats, look: Look) -> [(&'static str, String); 5] {
    let abandoned = thousands(stats.abandoned);
    [
        ("issued", thousands(stats.issued)),
        ("running", thousands(stats.running)),
        ("abandoned", if stats.abandoned > 0 { look.bad(&abandoned) } else { abandoned }),
        ("settled", thousands(stats.settled)),
        ("released", thousands(stats.released)),
    ]
}

pub(super) fn json(stats: &Stats) -> serde_json::Value {
    json!({
        "issued": stats.issued,
        "running": stats.running,
        "abandoned": stats.abandoned,
        "settled": stats.settled,
        "released": stats.released,
    })
}
