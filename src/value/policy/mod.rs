//! What happens to a repeated operation, as the application sets it.
//!
//! [`RunPolicy`] has what every edge has, and is the policy of messages and functions. [`Policy`] is HTTP's, around it:
//! it adds answers, statuses and bodies. HTTP's has the shorter name, since most users write only routes, and a route
//! says `Policy::reject()`. There is no setting that an edge takes and does not follow: answers of one's own
//! cannot be given to a message. For the same reason `retry_after` is a setting of HTTP and of consumers, and not of
//! `RunPolicy`: a function has nobody to send it to.
//!
//! A policy holds only what was set, so that a layer can apply it and leave everything else as it was ([`Setting`]). It
//! is resolved to plain values at the builder call ([`Resolved`]), so that no request pays for it.

mod axes;
mod directives;
mod http;
mod http_settings;
mod resolved;
mod run;
mod setting;

use std::time::Duration;

use self::{resolved::Resolve, setting::Setting};

pub use self::{
    axes::{AfterCrash, OnDuplicate, WhileRunning},
    http::Policy,
    run::RunPolicy,
};
pub(crate) use self::{
    directives::{HandlerDirectives, Retain},
    resolved::Resolved,
    run::RunSettings,
};

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const MILLISECOND: Duration = Duration::from_millis(1);
pub(crate) const UNRECONCILED: Duration = Duration::from_secs(30 * 24 * 60 * 60);
