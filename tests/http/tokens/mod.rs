//! One token, one operation: stored tokens and signed ones, on every store.

mod ends;
mod memory;
mod pages;
mod places;
mod renewed;
mod rules;
mod shop;
#[cfg(feature = "signed-tokens")]
mod signed;
mod stores;
