//! What PostgreSQL says of itself.

use sqlx::PgPool;

use crate::store_url::StoreUrl;

use super::{
    super::{
        encryption,
        finding::{Finding, Findings},
    },
    Asked, clocks,
};

pub(super) async fn check(pool: &PgPool, url: &StoreUrl, findings: &mut Findings) {
    findings.add(match pool.ask("SHOW server_version").await {
        Ok(version) => Finding::good("version", format!("PostgreSQL {version}")),
        Err(_) => Finding::unknown("version", "the server does not say"),
    });
    clocks(pool, "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint::text", findings).await;
    let role = "SELECT CASE WHEN pg_is_in_recovery() THEN 'replica' \
                ELSE current_setting('transaction_read_only') END";
    findings.add(match pool.ask(role).await.as_deref() {
        Ok("off") => Finding::good("role", "primary, takes writes"),
        Ok("replica") => {
            let remedy = "connect to the primary, with `target_session_attrs` or the address of the primary";
            Finding::critical("role", "a replica: nothing can be claimed", remedy)
        }
        Ok(_) => {
            let remedy = "set `default_transaction_read_only = off` for the user and the database";
            Finding::critical("role", "read-only: nothing can be claimed", remedy)
        }
        Err(_) => Finding::unknown("role", "the server does not say"),
    });
    durability(pool, findings).await;
    let encrypted = pool.ask("SELECT ssl::text FROM pg_stat_ssl WHERE pid = pg_backend_pid()").await;
    let remedy = "add `sslmode=verify-full` to the URL, and switch `ssl` on: what is kept passes the network";
    encryption(url, encrypted.ok().map(|text| text == "true"), remedy, findings);
}

async fn durability(pool: &PgPool, findings: &mut Findings) {
    let setting = "SELECT concat_ws(' ', current_setting('fsync'), current_setting('full_page_writes'), \
                   current_setting('synchronous_commit'))";
    findings.add(match pool.ask(setting).await {
        Err(_) => Finding::unknown("persistence", "the server does not say"),
        Ok(settings) => match settings.split(' ').collect::<Vec<_>>()[..] {
            ["off", ..] => {
                Finding::critical("persistence", "`fsync` is off: a crash damages the database", "set `fsync = on`")
            }
            [_, "off", ..] => {
                let remedy = "set `full_page_writes = on`";
                Finding::critical("persistence", "`full_page_writes` is off: a crash may damage the database", remedy)
            }
            [_, _, "off"] => {
                let remedy = "set `synchronous_commit = on`, at least for this user";
                Finding::warning("persistence", "`synchronous_commit` is off: a crash loses the last answers", remedy)
            }
            _ => Finding::good("persistence", "each commit is on the disk"),
        },
    });
}
