//! Guards for what idempotency alone does not cover.
//!
//! An idempotency record covers one request. A business row covers more: that the order is closed, that the balance is
//! too small, that somebody else has written the row. Guards are small, typed statements that check and write in one
//! step, in the caller's transaction:
//!
//! | guard | for | outcomes |
//! | --- | --- | --- |
//! | [`StateMachine`] | a state that moves along legal edges only | [`Transition`]: moved, already there, refused, no such row |
//! | [`Versioned`] | a row that is written only as it was read, a balance that must suffice | [`Written`]: done, stale, refused, no such row |
//! | [`DedupTable`] | a business number that is acted upon once | [`Inserted`]: new, already there |
//!
//! They work on `sqlx` connections to PostgreSQL, MariaDB (MySQL is not tested) and SQLite: see [`Connection`]. Names
//! are checked when a guard is created, by the compiler if it is a constant; values are always bound.
//!
//! The [guide](crate::guide::guards) explains which guard fits which case, and what each alone does not cover.

// For maintainers: `state` (over the states in `row_state`), `version` and `dedup` are the guards, each one statement
// and, if it changed no row, a second one that says why. `connection` is what they run on, `text` puts their statements
// together, `name` checks names, `outcome` is what they return.

mod connection;
mod dedup;
mod name;
mod outcome;
mod row_state;
mod state;
mod text;
mod version;

pub use self::{
    connection::{Bind, Connection},
    dedup::{DedupTable, Insert},
    name::Column,
    outcome::{Inserted, Transition, Written},
    row_state::RowState,
    state::{Move, StateMachine},
    version::{Versioned, Write},
};
