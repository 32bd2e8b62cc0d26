//! Each preset, with notifications of the platform's shape and made-up values.

mod apis;
mod deliveries;
mod kept_failures;
mod platforms;
mod route;
mod unsigned_ids;
