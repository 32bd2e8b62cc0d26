//! What MariaDB says of itself.

use sqlx::MySqlPool;

use crate::store_url::StoreUrl;

use super::{
    super::{
        encryption,
        finding::{Finding, Findings},
    },
    Asked, clocks,
};

pub(super) async fn check(pool: &MySqlPool, url: &StoreUrl, findings: &mut Findings) {
    findings.add(match pool.ask("SELECT VERSION()").await {
        Ok(version) if version.contains("MariaDB") => Finding::good("version", version),
        Ok(version) => {
            Finding::warning("version", format!("MySQL {version}"), "the store is tested on MariaDB, and not on MySQL")
        }
        Err(_) => Finding::unknown("version", "the server does not say"),
    });
    clocks(pool, "SELECT CAST(CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED) AS CHAR)", findings).await;
    findings.add(match pool.ask("SELECT CAST(@@global.read_only AS CHAR)").await.as_deref() {
        Ok("0" | "OFF") => Finding::good("role", "takes writes"),
        Ok(_) => {
            let remedy = "connect to the primary, or `SET GLOBAL read_only = 0` if this is the primary";
            Finding::critical("role", "`read_only` is on, as on a replica: nothing can be claimed", remedy)
        }
        Err(_) => Finding::unknown("role", "the server does not say"),
    });
    findings.add(match pool.ask("SELECT CAST(@@global.innodb_flush_log_at_trx_commit AS CHAR)").await.as_deref() {
        Ok("1" | "3") => Finding::good("persistence", "each commit is on the disk"),
        Ok(value) => {
            let found = format!("`innodb_flush_log_at_trx_commit` is {value}: a crash loses the answers of a second");
            Finding::warning("persistence", found, "set `innodb_flush_log_at_trx_commit = 1`")
        }
        Err(_) => Finding::unknown("persistence", "the server does not say"),
    });
    let cipher = "SELECT CAST(VARIABLE_VALUE AS CHAR) FROM information_schema.SESSION_STATUS \
                  WHERE VARIABLE_NAME = 'SSL_CIPHER'";
    let encrypted = pool.ask(cipher).await.ok().map(|cipher| !cipher.is_empty());
    let remedy =
        "add `ssl-mode=VERIFY_IDENTITY` to the URL, and give the server a certificate: what is kept passes the network";
    encryption(url, encrypted, remedy, findings);
}
