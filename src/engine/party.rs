use crate::value::{Caller, RecordKey};

/// Whose request it is, for bounds on what one caller may take.
#[derive(Clone, Debug)]
pub(crate) enum Party {
    /// The key's scope tells.
    Scope,
    /// The caller's credentials tell.
    Caller(Caller),
    /// A token's principal tells.
    Principal(Box<str>),
    /// Nothing tells: all such requests of a layer, by its address, are one party.
    Layer(usize),
}

/// A party by what tells it from others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Bucket {
    Name(Box<str>),
    Caller(Caller),
    Layer(usize),
}

impl Party {
    pub(super) fn bucket(&self, key: &RecordKey) -> Bucket {
        match self {
            Self::Scope => Bucket::Name(key.scope().unwrap_or_default().into()),
            Self::Caller(caller) => Bucket::Caller(*caller),
            Self::Principal(name) => Bucket::Name(name.clone()),
            Self::Layer(address) => Bucket::Layer(*address),
        }
    }
}

impl Bucket {
    pub(super) fn is_of_a_layer(&self) -> bool {
        matches!(self, Self::Layer(_))
    }
}
