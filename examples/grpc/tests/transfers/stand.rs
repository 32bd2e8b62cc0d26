//! A server with its store, its ledger and the wire that leads to it.

use std::{collections::BTreeMap, fs, net::TcpListener};

use sqlx::{Connection, PgConnection};

use crate::{
    folder::Folder,
    process::{Options, Process},
    proxy::Proxy,
    redis, server,
};

/// The place of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    Memory,
    Redis,
    Postgres,
}

/// What keeps the records, if it is a process.
enum Keeper {
    Nobody,
    Redis(redis::Server),
    Postgres(server::Server),
}

pub(crate) struct Stand {
    pub(crate) store: Store,
    pub(crate) proxy: Proxy,
    port: u16,
    keeper: Keeper,
    folder: Folder,
    options: Options,
}

impl Stand {
    pub(crate) async fn new(store: Store, options: Options) -> Self {
        let keeper = match store {
            Store::Memory => Keeper::Nobody,
            Store::Redis => Keeper::Redis(redis::Server::start(&[])),
            Store::Postgres => Keeper::Postgres(server::Server::postgres()),
        };
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Self { store, proxy: Proxy::to(port).await, port, keeper, folder: Folder::new(), options }
    }

    /// Starts the server, on the same port as the one before.
    pub(crate) async fn start(&self) -> Process {
        Process::start(self.port, &self.url(), &self.folder.path().join("ledger"), self.options).await
    }

    fn url(&self) -> String {
        match &self.keeper {
            Keeper::Nobody => "memory".to_owned(),
            Keeper::Redis(server) => server.url(),
            Keeper::Postgres(server) => format!("postgres://tests@127.0.0.1:{}/postgres", server.port()),
        }
    }

    /// The attempts that have made each transfer, by its key.
    pub(crate) async fn made(&self) -> BTreeMap<String, Vec<i32>> {
        let mut made = BTreeMap::<_, Vec<_>>::new();
        for (key, attempt) in self.transfers().await {
            made.entry(key).or_default().push(attempt);
        }
        made
    }

    async fn transfers(&self) -> Vec<(String, i32)> {
        if let Keeper::Postgres(_) = self.keeper {
            let mut connection = PgConnection::connect(&self.url()).await.unwrap();
            let select = "SELECT key, attempt FROM transfers ORDER BY number";
            return sqlx::query_as(select).fetch_all(&mut connection).await.unwrap();
        }
        let text = fs::read_to_string(self.folder.path().join("ledger")).unwrap();
        let fields = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        fields.map(|fields| (fields[0].to_owned(), fields[1].parse().unwrap())).collect()
    }
}
