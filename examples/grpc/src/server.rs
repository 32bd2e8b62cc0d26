//! The server: the service, and the layer around it.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use sqlx::Postgres;
use tokio::time::sleep;
use tonic::{Request, Response, Status, transport::Server};
use tower_idempotency::{BackgroundTasks, MemoryStore, Operation, Policy, PostgresStore, RedisStore};
use tower_idempotency_grpc::GrpcLayer;

use crate::{
    Failure,
    api::transfers_server::{Transfers, TransfersServer},
    ledger::{self, FileLedger, TABLE},
    messages::{ListRequest, Receipt, Transfer},
};

/// What a server is started with.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address to listen on.
    pub address: SocketAddr,
    /// `memory`, or the URL of a Redis or a PostgreSQL server.
    pub store: String,
    /// The file of the ledger, with a store that is not PostgreSQL.
    pub ledger: PathBuf,
    /// How long a dead process holds its keys.
    pub lease: Duration,
    /// How long a transfer takes before it is in the ledger, and again after that.
    pub work: Duration,
    /// What nobody knows the end of does not run again.
    pub at_most_once: bool,
}

/// The service.
#[derive(Debug)]
struct Bank {
    /// Not with PostgreSQL, which has the transfers in a table.
    ledger: Option<FileLedger>,
    work: Duration,
}

#[tonic::async_trait]
impl Transfers for Bank {
    async fn create(&self, request: Request<Transfer>) -> Result<Response<Receipt>, Status> {
        let operation = request.extensions().get::<Operation>().cloned();
        let operation = operation.ok_or_else(|| Status::internal("the layer is missing"))?;
        let transfer = request.into_inner();
        if transfer.amount == 0 {
            return Err(Status::invalid_argument("a transfer of nothing"));
        }
        let (key, attempt) = (operation.key(), operation.attempt());
        println!("{key}: attempt {attempt} begins");
        sleep(self.work).await;
        let number = match &self.ledger {
            Some(ledger) => in_file(ledger, &operation, &transfer)?,
            None => in_table(&operation, &transfer).await?,
        };
        println!("{key}: attempt {attempt} has number {number}");
        sleep(self.work).await;
        Ok(Response::new(Receipt { number, attempt }))
    }

    type ListStream = tokio_stream::Iter<std::vec::IntoIter<Result<Receipt, Status>>>;

    /// Reads, so it needs no key.
    async fn list(&self, _: Request<ListRequest>) -> Result<Response<Self::ListStream>, Status> {
        let ledger = self.ledger.as_ref().ok_or_else(|| Status::unimplemented("the transfers are in a table"))?;
        let receipts: Vec<_> = (1..=ledger.len()).map(|number| Ok(Receipt { number, attempt: 0 })).collect();
        Ok(Response::new(tokio_stream::iter(receipts)))
    }
}

/// The file knows nothing of the record, so an attempt after a crash asks it first.
fn in_file(ledger: &FileLedger, operation: &Operation, transfer: &Transfer) -> Result<u64, Status> {
    let (key, attempt) = (operation.key(), operation.attempt());
    let made = if attempt > 1 { ledger.find(key) } else { None };
    match made {
        Some(number) => Ok(number),
        None => ledger.add(key, attempt, transfer).map_err(|error| Status::unavailable(error.to_string())),
    }
}

/// The row and the record are committed together.
async fn in_table(operation: &Operation, transfer: &Transfer) -> Result<u64, Status> {
    let mut tx = operation.transaction::<Postgres>().map_err(|error| Status::internal(error.to_string()))?;
    let added = ledger::add_row(&mut tx, operation.key(), operation.attempt(), transfer).await;
    added.map_err(|error| Status::unavailable(error.to_string()))
}

/// Serves until `stop`, and then until the work of clients that have left has ended.
///
/// # Errors
///
/// Returns an error if the store cannot be opened or the address cannot be bound.
pub async fn serve(options: Options, stop: impl Future<Output = ()>) -> Result<(), Failure> {
    let Options { address, store, ledger, lease, work, at_most_once } = options;
    let mut table = false;
    let layer = match store.split(':').next() {
        Some("memory") => GrpcLayer::new(MemoryStore::new()),
        Some("redis") => GrpcLayer::new(RedisStore::connect(&store).await?),
        Some("postgres") => {
            let store = PostgresStore::connect(&store).await?;
            store.migrate().await?;
            sqlx::query(TABLE).execute(store.pool()).await?;
            table = true;
            GrpcLayer::transactional(store)
        }
        _ => return Err(format!("{store}: neither `memory` nor the URL of a Redis or PostgreSQL server").into()),
    };
    let tasks = BackgroundTasks::new();
    let policy = if at_most_once { Policy::at_most_once() } else { Policy::replay() };
    let layer = layer.only(["bank.v1.Transfers/Create"]).policy(policy).lease(lease).background_tasks(tasks.clone());
    let ledger = if table { None } else { Some(FileLedger::open(&ledger)?) };
    let bank = TransfersServer::from_arc(Arc::new(Bank { ledger, work }));
    Server::builder().layer(layer).add_service(bank).serve_with_shutdown(address, stop).await?;
    tasks.wait().await;
    Ok(())
}
