//! The layers as a service sees them: one binary, since each takes long to link.
#![cfg(feature = "memory")]

#[cfg(feature = "axum")]
mod answers;
mod applied_policies;
#[cfg(all(feature = "axum", feature = "testing"))]
mod at_most_once;
#[cfg(feature = "testing")]
mod attempt_retention;
mod auto_traits;
#[cfg(feature = "testing")]
mod background_tasks;
#[cfg(feature = "axum")]
mod callers;
#[cfg(feature = "testing")]
mod cancel;
#[cfg(feature = "testing")]
mod cancel_waiting;
#[cfg(feature = "axum")]
mod clients;
mod common;
#[cfg(all(feature = "axum", feature = "tracing"))]
mod credentials;
#[cfg(any(feature = "mysql", feature = "postgres"))]
#[allow(dead_code)]
#[path = "../sql/server.rs"]
mod database_server;
#[cfg(feature = "testing")]
mod events;
#[cfg(feature = "axum")]
mod excluded_requests;
#[cfg(feature = "axum")]
mod extractors;
#[cfg(feature = "testing")]
mod faulty_bench;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
#[allow(dead_code)]
#[path = "../sql/folder.rs"]
mod folder;
#[cfg(feature = "axum")]
mod hooks;
mod immediate_stores;
#[cfg(all(feature = "axum", feature = "json"))]
mod invalid_settings;
mod kept_request;
#[cfg(all(feature = "axum", feature = "json"))]
mod keyed_digests;
#[cfg(feature = "axum")]
mod large_answers;
#[cfg(feature = "testing")]
mod late_records;
#[cfg(feature = "axum")]
mod layer_order;
#[cfg(all(feature = "axum", feature = "tracing"))]
mod layer_order_of_checks;
#[cfg(feature = "axum")]
mod layer_positions;
#[cfg(feature = "testing")]
mod lost_claims;
#[cfg(all(feature = "axum", feature = "testing", feature = "tracing"))]
mod mistakes;
#[cfg(all(feature = "axum", feature = "testing", feature = "tracing"))]
mod mistakes_at_run_time;
#[cfg(feature = "testing")]
mod outages;
mod over_http2;
mod ownership;
#[cfg(feature = "testing")]
mod panics;
#[cfg(feature = "testing")]
mod panics_of_closures;
mod pass_through;
#[cfg(all(feature = "axum", feature = "presets"))]
mod presets;
#[cfg(feature = "testing")]
mod random_schedules;
mod readiness;
#[cfg(feature = "axum")]
mod routes;
#[cfg(all(feature = "axum", feature = "sealed", feature = "tracing"))]
mod sealed;
#[cfg(all(feature = "testing", feature = "tracing"))]
mod secrets;
#[cfg(feature = "axum")]
mod stream_body;
mod switch;
#[cfg(all(feature = "testing", feature = "tracing"))]
mod task_locals;
#[cfg(all(feature = "axum", feature = "form", feature = "testing"))]
mod tokens;
#[cfg(feature = "tracing")]
mod tracing_events;
mod trailers;
#[cfg(feature = "testing")]
mod unfinished_work;
#[cfg(feature = "testing")]
mod waiting;
#[cfg(feature = "testing")]
mod windows;
