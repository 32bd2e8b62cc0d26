//! Settings with rules of their own, and the check of all settings when a layer is put around a service.
//!
//! - `check`: combinations of settings that cannot work panic here, with the calls at fault, and never at a request.
//! - `exceptions`: routes and requests that are left out.
//! - `fail_open`: which store errors let a request through unprotected.
//! - `verify`: the application's check before the claim. `hooks`: its steps at a replay and at keeping an answer.

mod check;
mod exceptions;
mod fail_open;
mod hooks;
mod verify;

pub(super) use self::{exceptions::Exceptions, hooks::report as report_hook, verify::Stop};
pub(crate) use self::{fail_open::FailOpen, hooks::Hooks, verify::Verify};
use crate::value::TraceContext;

/// Returns the trace context of a request.
pub(crate) type TraceContextOf = dyn Fn(&http::request::Parts) -> Option<TraceContext> + Send + Sync;
