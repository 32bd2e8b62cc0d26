//! What happened, as lines of a file to which all processes append: [`Line`] says what a line can be, [`Log`] writes.

mod line;
mod log;

pub(crate) use self::{
    line::{Answered, Entry, Line, Mode, parse},
    log::Log,
};
