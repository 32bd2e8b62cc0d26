//! Tokens that the server issues, each good for one operation.

mod issuer;
mod layer;

pub use self::{
    issuer::{Token, Tokens},
    layer::TokenLayer,
};
