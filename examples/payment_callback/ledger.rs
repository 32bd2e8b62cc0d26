//! The books of both sides, side by side.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tower_idempotency::sql::{
    SqlStore,
    guard::RowState as _,
    message_log::{LoggedMessage, MessageFilter},
};

use crate::{Failure, MESSAGES, database::Database, platform::Platform, play::price, shop::Notice};

/// An account, as each of the books has it.
#[derive(Default)]
struct Account {
    platform: i64,
    balance: i64,
    entries: i64,
    orders: i64,
    /// How many entries have moved money, and how often the balance was written.
    moves: i64,
    version: i64,
}

impl Account {
    fn balances(&self) -> bool {
        [self.balance, self.entries, self.orders] == [self.platform; 3] && self.moves == self.version
    }
}

/// Prints the ledger and says whether it balances.
pub(crate) async fn close<D: Database>(
    store: &SqlStore<D>,
    platform: &Platform,
    accounts: impl Fn(&str) -> &'static str,
) -> Result<bool, Failure> {
    let pool = store.pool();
    let mut books = BTreeMap::<String, Account>::new();
    let acknowledged = platform.acknowledged();
    for (notice, _) in acknowledged.values() {
        books.entry(accounts(&notice.order).into()).or_default().platform += notice.gain();
    }
    for (name, _, cents) in D::rows(pool, "SELECT name, name, cents FROM payment_callback_accounts").await? {
        books.entry(name).or_default().balance = cents;
    }
    for (name, _, version) in D::rows(pool, "SELECT name, name, version FROM payment_callback_accounts").await? {
        books.entry(name).or_default().version = version;
    }
    let entries = D::rows(pool, "SELECT account, serial, cents FROM payment_callback_entries").await?;
    for (account, _, cents) in &entries {
        let account = books.entry(account.clone()).or_default();
        account.entries += cents;
        account.moves += i64::from(*cents != 0);
    }
    for (account, state, cents) in D::rows(pool, "SELECT account, state, cents FROM payment_callback_orders").await? {
        books.entry(account).or_default().orders += if state == "paid" { cents } else { 0 };
    }
    let messages = on_record(store).await?;
    let refused = messages.iter().filter(|logged| logged.status.is_some_and(|status| (400..500).contains(&status)));

    println!("\n{:10}{:>14}{:>14}{:>14}{:>14}", "account", "platform", "balance", "entries", "paid orders");
    for (name, account) in &books {
        let [platform, balance, entries, orders] =
            [account.platform, account.balance, account.entries, account.orders].map(money);
        let verdict = if account.balances() { "" } else { "  <- does not balance" };
        println!("{name:10}{platform:>14}{balance:>14}{entries:>14}{orders:>14}{verdict}");
    }
    // What was acknowledged is in the books, and nothing else is.
    let same =
        entries.len() == acknowledged.len() && entries.iter().all(|(_, serial, _)| acknowledged.contains_key(serial));
    println!(
        "\n{} messages were sent, and {} came in and are on record. {} notifications were acknowledged, by {} answers, \
         and have {} entries. {} messages were refused.",
        platform.sent(),
        messages.len(),
        acknowledged.len(),
        acknowledged.values().map(|(_, times)| times).sum::<usize>(),
        entries.len(),
        refused.clone().count(),
    );
    for message in unheard(refused, &acknowledged) {
        println!("To be looked at: {message}");
    }
    let balances = same && books.values().all(Account::balances);
    println!("{}", if balances { "The ledger balances to the cent." } else { "THE LEDGER DOES NOT BALANCE." });
    Ok(balances)
}

/// All that has come in and was signed.
async fn on_record<D: Database>(store: &SqlStore<D>) -> Result<Vec<LoggedMessage>, Failure> {
    let log = store.message_log().table(MESSAGES)?;
    let (mut next, mut messages) = (MessageFilter::new().route("payment-notices"), Vec::new());
    loop {
        let page = log.list(&next, 500).await?;
        let Some(last) = page.last() else { return Ok(messages) };
        next = next.after(last);
        messages.extend(page);
    }
}

/// The signed notices that the platform has sent without success, and that are not in the books.
fn unheard<'a>(
    refused: impl Iterator<Item = &'a LoggedMessage>,
    acknowledged: &HashMap<String, (Notice, usize)>,
) -> BTreeSet<String> {
    let notices = refused.filter_map(|logged| serde_json::from_slice::<Notice>(&logged.message.body).ok());
    notices
        .filter(|notice| notice.cents == price(&notice.order) && !acknowledged.contains_key(&notice.serial))
        .map(|notice| format!("{} is {}, {}", notice.order, notice.status.as_str(), money(notice.cents)))
        .collect()
}

fn money(cents: i64) -> String {
    let sign = if cents < 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", cents.abs() / 100, cents.abs() % 100)
}
