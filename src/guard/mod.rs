//! Guards for what idempotency alone does not cover.
//!
//! A record of idempotency knows one request. A row of the business knows more: that its order is closed, that its
//! balance is too small, that somebody else has written it. Guards are small, typed statements that judge and write in
//! one step, in the transaction of whoever calls them:
//!
//! | guard | for | outcomes |
//! | --- | --- | --- |
//! | [`StateMachine`] | a state that moves along legal edges only | [`Transition`]: moved, already there, refused, no such row |
//! | [`Versioned`] | a row that is written only as it was read, a balance that must suffice | [`Written`]: done, stale, refused, no such row |
//! | [`FlowTable`] | a business number that is acted upon once | [`Flow`]: new, known |
//!
//! They work on connections of `sqlx` to PostgreSQL, MariaDB (MySQL: not run) and SQLite: see [`Connection`]. Names are
//! checked when a guard is made, by the compiler if it is a constant; values are always bound.
//!
//! Which guard for what, and what each alone does not cover, is in the [guide](crate::guide::guards).

mod connection;
mod flow;
mod name;
mod outcome;
mod state;
mod text;
mod version;

pub use self::{
    connection::{Bind, Connection},
    flow::{Entry, FlowTable},
    name::Column,
    outcome::{Flow, Transition, Written},
    state::{Move, State, StateMachine},
    version::{Versioned, Write},
};
