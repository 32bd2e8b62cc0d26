//! One token, one operation: stored tokens and signed ones, on every store.

mod duplicates;
mod ends;
mod memory;
mod pages;
mod places;
mod renewed;
mod rules;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod servers;
mod settings;
mod shop;
#[cfg(feature = "signed-tokens")]
mod signed;
mod stores;
