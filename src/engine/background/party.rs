//! Whom a request counts for, if callers are bounded.
//!
//! A party is the scope, the credentials, the principal of a token, or the layer. Requests without an identified caller
//! share the bound of their layer, which is larger: they may be many clients.

use crate::value::{Caller, RecordKey};

/// The party that a request belongs to, for bounds on what one caller may take.
#[derive(Clone, Debug)]
pub(crate) enum Party {
    /// The caller, by the key's scope.
    Scope,
    /// The caller, by its credentials.
    Caller(Caller),
    /// The principal of a token.
    Principal(Box<str>),
    /// A layer, by its address: all its requests whose caller is not identified are one party.
    Layer(usize),
}

/// A party, by what distinguishes it from others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Bucket {
    Name(Box<str>),
    Caller(Caller),
    Layer(usize),
}

impl Party {
    pub(crate) fn bucket(&self, key: &RecordKey) -> Bucket {
        match self {
            Self::Scope => Bucket::Name(key.scope().unwrap_or_default().into()),
            Self::Caller(caller) => Bucket::Caller(*caller),
            Self::Principal(name) => Bucket::Name(name.clone()),
            Self::Layer(address) => Bucket::Layer(*address),
        }
    }
}

impl Bucket {
    pub(crate) fn is_of_a_layer(&self) -> bool {
        matches!(self, Self::Layer(_))
    }
}
