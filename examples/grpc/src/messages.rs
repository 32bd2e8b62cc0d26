//! The messages of `proto/transfers.proto`.

/// Money that is to be moved.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Transfer {
    /// Whose account it goes to.
    #[prost(string, tag = "1")]
    pub to: String,
    /// In cents.
    #[prost(uint64, tag = "2")]
    pub amount: u64,
}

/// A transfer that was made.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Receipt {
    /// Its number in the ledger.
    #[prost(uint64, tag = "1")]
    pub number: u64,
    /// Which attempt has made it.
    #[prost(uint32, tag = "2")]
    pub attempt: u32,
}

/// A question for all transfers.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct ListRequest {}
