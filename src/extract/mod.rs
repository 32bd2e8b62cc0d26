//! What a request says about itself: key, scope, caller, fingerprint, route.

mod caller;
pub mod fingerprint;
pub mod key;
mod multipart;
mod route;
pub mod scope;
mod structured;

pub(crate) use self::{
    caller::{Credentials, caller},
    route::route,
};
