//! A lost answer, a double call, a deadline, a cancellation and killed servers, with each store and each client.

use std::time::Duration;

use crate::{
    clients::{Client, Learned, Until},
    process::{Options, Process},
    stand::{Stand, Store},
};

/// It works for a second before a transfer, and for another one after it.
const OPTIONS: Options = Options { lease: Duration::from_secs(2), work: Duration::from_secs(1), at_most_once: false };
/// After a call has begun, and before its transfer is made.
const SOON: Duration = Duration::from_millis(700);

struct Scene {
    stand: Stand,
    client: Client,
}

impl Scene {
    async fn create(&self, key: &str, until: Until) -> Learned {
        self.client.create(self.stand.proxy.port, key, until).await
    }

    /// The call is made, whatever happens to it, and its last try receives this. How often the transfer was made in
    /// the end is the other number.
    async fn expect(&self, key: &str, attempt: u32, is_replay: bool, effects: usize) {
        self.assert(key, self.create(key, Until::Answered).await, attempt, is_replay, effects).await;
    }

    async fn assert(&self, key: &str, learned: Learned, attempt: u32, is_replay: bool, effects: usize) {
        let Learned::Made { attempt: by, is_replay: replay, .. } = learned else { panic!("{key}: {learned:?}") };
        assert_eq!((by, replay), (attempt, is_replay), "{key} on {:?}", self.stand.store);
        assert_eq!(self.stand.made().await[key].len(), effects, "{key} on {:?}", self.stand.store);
    }

    async fn lost_answer(&self) {
        self.stand.proxy.lose_the_next_answer();
        let learned = self.create("lost", Until::Answered).await;
        let Learned::Made { calls, .. } = learned else { panic!("{learned:?}") };
        match self.client {
            Client::Grpcio => assert_eq!(calls, 1, "the retry policy has sent it again"),
            Client::Tonic => assert!(calls > 1),
        }
        self.assert("lost", learned, 1, true, 1).await;
    }

    async fn double_call(&self) {
        let (one, two) = tokio::join!(self.create("double", Until::Answered), self.create("double", Until::Answered),);
        let is_replay = |learned: &Learned| matches!(learned, Learned::Made { is_replay: true, .. });
        let (first, second) = if is_replay(&one) { (two, one) } else { (one, two) };
        self.assert("double", first, 1, false, 1).await;
        self.assert("double", second, 1, true, 1).await;
    }

    /// A client that leaves while its call runs. One that was gone before it began, on a loaded machine, does not count.
    async fn leaves(&self, server: &Process, what: &str, until: Until) {
        for number in 0..20 {
            let key = format!("{what}-{number}");
            assert_eq!(self.create(&key, until).await, Learned::Left);
            if server.has_said(&key, "begins") {
                return self.expect(&key, 1, true, 1).await;
            }
        }
        panic!("{what}: no call has begun in time");
    }

    /// Kills the server once it has said something, and starts another one.
    async fn kill(&self, key: &str, server: Process, once: &str) -> (Learned, Process) {
        let kill = async {
            server.says(key, once).await;
            server.kill();
            self.stand.start().await
        };
        tokio::join!(self.create(key, Until::Answered), kill)
    }

    async fn killed_before_the_transfer(&self, server: Process) -> Process {
        let (learned, server) = self.kill("before", server, "begins").await;
        // The record is gone with the memory, and with the transaction.
        let attempt = if self.stand.store == Store::Redis { 2 } else { 1 };
        self.assert("before", learned, attempt, false, 1).await;
        server
    }

    async fn killed_after_the_transfer(&self, server: Process) -> Process {
        let (learned, server) = self.kill("after", server, "has number").await;
        let (attempt, effects) = match self.stand.store {
            // Nobody knows of the first one any more: memory is for one process that does not die.
            Store::Memory => (1, 2),
            // The second attempt asks the ledger.
            Store::Redis => (2, 1),
            // The first one was rolled back.
            Store::Postgres => (1, 1),
        };
        self.assert("after", learned, attempt, false, effects).await;
        server
    }
}

async fn play(store: Store, client: Client) {
    let scene = Scene { stand: Stand::new(store, OPTIONS).await, client };
    let server = scene.stand.start().await;
    scene.lost_answer().await;
    scene.double_call().await;
    scene.leaves(&server, "deadline", Until::Deadline(SOON)).await;
    scene.leaves(&server, "cancelled", Until::Cancelled(SOON)).await;
    let server = scene.killed_before_the_transfer(server).await;
    scene.killed_after_the_transfer(server).await;
}

#[tokio::test]
async fn in_memory_by_tonic() {
    play(Store::Memory, Client::Tonic).await;
}

#[tokio::test]
async fn in_memory_by_grpcio() {
    play(Store::Memory, Client::Grpcio).await;
}

#[tokio::test]
async fn on_redis_by_tonic() {
    play(Store::Redis, Client::Tonic).await;
}

#[tokio::test]
async fn on_redis_by_grpcio() {
    play(Store::Redis, Client::Grpcio).await;
}

#[tokio::test]
async fn on_postgres_by_tonic() {
    play(Store::Postgres, Client::Tonic).await;
}

#[tokio::test]
async fn on_postgres_by_grpcio() {
    play(Store::Postgres, Client::Grpcio).await;
}
