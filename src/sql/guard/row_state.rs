/// The states of a row, and which of them may become which.
///
/// ```
/// use tower_idempotency::sql::guard::RowState;
///
/// #[derive(Clone, Copy, Debug, PartialEq, Eq)]
/// enum Order {
///     Unpaid,
///     Paid,
///     Closed,
/// }
///
/// impl RowState for Order {
///     const ALL: &'static [Self] = &[Self::Unpaid, Self::Paid, Self::Closed];
///
///     fn as_str(self) -> &'static str {
///         match self {
///             Self::Unpaid => "unpaid",
///             Self::Paid => "paid",
///             Self::Closed => "closed",
///         }
///     }
///
///     fn may_become(self, next: Self) -> bool {
///         matches!((self, next), (Self::Unpaid, Self::Paid | Self::Closed))
///     }
/// }
///
/// assert_eq!(Order::from_text("paid"), Some(Order::Paid));
/// ```
pub trait RowState: Copy + PartialEq + Send + Sync + 'static {
    /// All states.
    const ALL: &'static [Self];

    /// Returns the state's word in the column of states: text, or a value of an enumeration of the database's.
    fn as_str(self) -> &'static str;

    /// Returns whether a row in this state may move to `next`. The result for a state and itself is ignored: a row that
    /// is in that state already makes no move.
    fn may_become(self, next: Self) -> bool;

    /// Returns the state of a word.
    fn from_text(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|state| state.as_str() == word)
    }
}
