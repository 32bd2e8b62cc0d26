//! What settling takes in Redis: microseconds of the server for the answers to claims that were made before. By the store
//! that made the claims, which settles by a plain command if the server has one that compares; and by another one, which
//! does not know them and takes the script.

use std::{error::Error, time::Duration};

use redis::aio::MultiplexedConnection;
use tokio::task::JoinSet;
use tower_idempotency::{
    RedisStore,
    store::{Claim, Claimed, Finished, RecordKey, Settlement, Store},
};

const DAY: Duration = Duration::from_secs(86_400);
const AT_ONCE: usize = 64;
const CALLS: u16 = 2_000;

/// Prints both.
pub async fn show(url: &str) -> Result<(), Box<dyn Error>> {
    let (own, other) = (RedisStore::connect(url).await?, RedisStore::connect(url).await?);
    let connection = redis::Client::open(url)?.get_multiplexed_async_connection().await?;
    // The first round is for the script to be known.
    for _ in 0..2 {
        let plain = settle(&own, &own, connection.clone()).await?;
        let script = settle(&own, &other, connection.clone()).await?;
        println!("{plain} {script}");
    }
    Ok(())
}

async fn settle(
    claiming: &RedisStore,
    settling: &RedisStore,
    mut connection: MultiplexedConnection,
) -> Result<f64, Box<dyn Error>> {
    let mut claims = Vec::with_capacity(CALLS.into());
    for _ in 0..CALLS {
        let claim = Claim::new(DAY, DAY);
        let key = RecordKey::new("/bench", None, &format!("{:032x}", u128::from_be_bytes(claim.claimant.to_bytes())))?;
        if !matches!(claiming.claim(&key, &claim).await?, Claimed::Granted(_)) {
            return Err("a free key was not granted".into());
        }
        claims.push((key, claim));
    }
    let () = redis::cmd("CONFIG").arg("RESETSTAT").query_async(&mut connection).await?;
    let mut tasks = JoinSet::new();
    for (key, claim) in claims {
        if tasks.len() == AT_ONCE {
            tasks.join_next().await;
        }
        let store = settling.clone();
        tasks.spawn(async move {
            let settlement = Settlement::new(claim.claimant, Some(vec![b'x'; 300].into()), DAY);
            let settled = store.settle(&key, &settlement).await;
            assert!(matches!(settled, Ok(Finished::Done)), "{settled:?}");
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended?;
    }
    let stats: String = redis::cmd("INFO").arg("commandstats").query_async(&mut connection).await?;
    // What a script calls is counted in its own time.
    let spent = ["evalsha", "set"].into_iter().find_map(|command| {
        let line = stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")))?;
        line.split("usec=").nth(1)?.split(',').next()?.parse::<f64>().ok()
    });
    Ok(spent.ok_or("nothing was settled")? / f64::from(CALLS))
}
