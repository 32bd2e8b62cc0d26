//! For tests: a manual clock.

mod clock;

pub use self::clock::ManualClock;
