//! What the benches share: rounds that alternate, medians, the router that is measured, and the lines that
//! `scripts/bench` reads.

pub mod clock;
pub mod ideal;
pub mod nothing;
pub mod orders;
pub mod rounds;

use std::{env, fmt::Display};

/// Whether fewer rounds will do, as on the way to a better figure.
pub fn quick() -> bool {
    env::args().any(|argument| argument == "--quick")
}

/// A figure for `scripts/bench`, among lines for people.
pub fn row(name: &str, figure: impl Display) {
    println!("row\t{name}\t{figure}");
}

/// Spreads numbers evenly, the same way in every run.
pub fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
