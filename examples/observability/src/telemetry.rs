//! The recorder of Prometheus, and the page that it scrapes.

use axum::{Router, routing::get};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

/// From a claim in memory to a wait of a minute.
const SECONDS: &[f64] = &[0.0001, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0];

/// The page of metrics.
pub(crate) struct Page(PrometheusHandle);

/// Returns the recorder with buckets for durations: without them there would be quantiles, which cannot be added
/// up over processes.
pub(crate) fn builder() -> Result<PrometheusBuilder, BuildError> {
    PrometheusBuilder::new().set_buckets_for_metric(Matcher::Suffix("_seconds".into()), SECONDS)
}

/// Installs the recorder for this process.
pub(crate) fn install() -> Result<Page, BuildError> {
    builder()?.install_recorder().map(Page)
}

impl Page {
    /// Returns the service that Prometheus asks. It belongs on an address that clients cannot reach.
    pub(crate) fn router(self) -> Router {
        Router::new().route("/metrics", get(async move || self.0.render()))
    }
}
