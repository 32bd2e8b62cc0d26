//! Settings with rules of their own, and the check of all settings when a layer is put around a service.

mod check;
mod exceptions;
mod fail_open;
mod verify;

pub(super) use self::{exceptions::Exceptions, verify::Stop};
pub(crate) use self::{fail_open::FailOpen, verify::Verify};
