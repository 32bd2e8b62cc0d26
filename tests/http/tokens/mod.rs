//! One token, one operation: stored tokens and signed ones, on every store.

#[cfg(any(feature = "mysql", feature = "postgres"))]
mod database_servers;
mod duplicates;
mod faulty_store;
mod fixture;
mod pages;
mod renewed;
mod rules;
mod settings;
#[cfg(feature = "signed-tokens")]
mod signed;
mod stores;
mod token_locations;
mod unanswered_submissions;
