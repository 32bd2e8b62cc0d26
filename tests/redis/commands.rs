//! What a request costs the server.

use tower_idempotency::store::{Claimed, Store, StoreAdmin};

use crate::{claim, granted, key, replays, server::Server, settled, settlement};

/// Returns how often the server received each command since the last time, without `CONFIG` and the like.
fn since(server: &Server) -> Vec<(String, u32)> {
    let said = server.tell("INFO commandstats");
    let counted = said.lines().filter_map(|line| {
        let (command, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        let (calls, _) = rest.split_once(',')?;
        Some((command.to_owned(), calls.parse().ok()?))
    });
    let mut counted: Vec<_> =
        counted.filter(|(command, _)| !command.starts_with("config") && command != "info").collect();
    counted.sort();
    server.tell("CONFIG RESETSTAT");
    counted
}

#[tokio::test]
async fn a_claim_and_a_replay_are_one_command() {
    let server = Server::start(&[]);
    let (store, compares) = (server.store().await, server.compares());
    // The scripts are known from then on.
    let before = claim();
    granted(&store, &key("before"), &before).await;
    store.renew(&key("before"), &before).await.unwrap();
    store.settle(&key("before"), &settlement(&before)).await.unwrap();
    store.inspect(&key("before")).await.unwrap();
    since(&server);
    let told = |commands: &[(&str, u32)]| {
        let commands: Vec<_> = commands.iter().map(|&(command, calls)| (command.to_owned(), calls)).collect();
        assert_eq!(since(&server), commands);
    };

    let first = claim();
    granted(&store, &key("a"), &first).await;
    told(&[("set", 1)]);
    // Only of a record that runs it matters how old it is.
    assert!(matches!(store.claim(&key("a"), &claim()).await.unwrap(), Claimed::Running { .. }));
    // What the script calls counts too.
    told(&[("evalsha", 1), ("get", 1), ("getrange", 1), ("pexpiretime", 1), ("pttl", 1), ("set", 1)]);
    settled(&store, &key("b")).await;
    if compares {
        told(&[("set", 2)]);
    } else {
        told(&[("evalsha", 1), ("getrange", 1), ("pexpiretime", 1), ("set", 2)]);
    }
    for _ in 0..10 {
        replays(&store, &key("b")).await;
    }
    told(&[("set", 10)]);
}
