//! Transaction mode: the effect and the record are committed together, or neither is.

use std::{
    env, fs,
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use sqlx::Sqlite;
use tonic::{Code, Request, Response, Status};
use tower_idempotency::{Operation, SqliteStore};
use tower_idempotency_grpc::GrpcLayer;

use crate::bank::{Bank, Order, Receipt, order, pay, seen, serve};

/// A database in a file of its own.
struct Database(PathBuf);

impl Database {
    async fn new() -> (Self, SqliteStore) {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("tower-idempotency-grpc-{}-{}.db", std::process::id(), COUNT.fetch_add(1, Relaxed));
        let file = env::temp_dir().join(name);
        let store = SqliteStore::connect(&format!("sqlite://{}", file.display())).await.unwrap();
        store.migrate().await.unwrap();
        (Self(file), store)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        for end in ["", "-wal", "-shm"] {
            let _ = fs::remove_file(format!("{}{end}", self.0.display()));
        }
    }
}

/// Writes a row, and answers with how many there are: odd runs fail after that.
async fn transfer(request: Request<Order>, run: usize) -> Result<Response<Receipt>, Status> {
    let operation = request.extensions().get::<Operation>().unwrap();
    let mut tx = operation.transaction::<Sqlite>().unwrap();
    sqlx::query("CREATE TABLE IF NOT EXISTS transfers (amount INTEGER)").execute(&mut *tx).await.unwrap();
    sqlx::query("INSERT INTO transfers VALUES (?)").bind(7).execute(&mut *tx).await.unwrap();
    let (rows,): (i64,) = sqlx::query_as("SELECT count(*) FROM transfers").fetch_one(&mut *tx).await.unwrap();
    if run % 2 == 1 {
        return Err(Status::unavailable("the bank is away"));
    }
    Ok(Response::new(Receipt::of(usize::try_from(rows).unwrap())))
}

#[tokio::test]
async fn what_a_failed_call_did_is_rolled_back() {
    let (_database, store) = Database::new().await;
    let bank = Bank::new(transfer);
    let service = serve(&GrpcLayer::transactional(store), &bank);
    for (rows, key) in [(1, "a"), (2, "b")] {
        assert_eq!(pay(&service, order(key, 7)).await.unwrap_err().code(), Code::Unavailable);
        assert_eq!(seen(&pay(&service, order(key, 7)).await.unwrap()), (rows, false));
        assert_eq!(seen(&pay(&service, order(key, 7)).await.unwrap()), (rows, true));
    }
    assert_eq!(bank.runs(), 4);
}
