//! The setters that both layers have, each written once; see [`builder`](crate::builder).

mod answers;
mod requests;

pub(crate) use self::{
    answers::{answer_setter, answer_setters},
    requests::{request_setter, request_setters},
};
