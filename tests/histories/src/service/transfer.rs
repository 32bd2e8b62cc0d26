use std::{error::Error, sync::Arc};

use axum::{
    Extension, Router,
    extract::State,
    http::{HeaderMap, StatusCode},
    routing::post,
};
use tower_idempotency::{
    IdempotencyLayer, Operation,
    sql::{SqlDatabase, SqlStore, Tx},
};

use super::{
    Service,
    handler::{Asked, perform},
};

/// A database whose transactions hold record and effect.
pub(crate) trait Transfer: SqlDatabase {
    /// The route whose handler inserts a row, in the transaction of its claim.
    async fn route(store: &SqlStore<Self>, layer: IdempotencyLayer) -> Result<Router<Arc<Service>>, Box<dyn Error>>;

    /// Keys and executions of all rows, once the table of the records is complete again.
    async fn rows(url: &str) -> Result<Vec<(String, String)>, Box<dyn Error>>;
}

macro_rules! transfer {
    ($database:ident: $schema:literal, $insert:literal) => {
        impl Transfer for sqlx::$database {
            async fn route(
                store: &SqlStore<Self>,
                layer: IdempotencyLayer,
            ) -> Result<Router<Arc<Service>>, Box<dyn Error>> {
                async fn transfer(
                    State(service): State<Arc<Service>>,
                    operation: Operation,
                    mut tx: Tx<sqlx::$database>,
                    asked: Extension<Asked>,
                    headers: HeaderMap,
                    body: String,
                ) -> (StatusCode, String) {
                    let effect = async |execution: &str| {
                        let insert = sqlx::query($insert).bind(operation.key()).bind(execution);
                        insert.execute(&mut *tx).await.map(drop).map_err(|error| error.to_string())
                    };
                    perform(&service, &operation, *asked, &headers, &body, effect).await
                }

                sqlx::raw_sql($schema).execute(store.pool()).await?;
                Ok(Router::new().route("/transfer", post(transfer).layer(layer)))
            }

            async fn rows(url: &str) -> Result<Vec<(String, String)>, Box<dyn Error>> {
                let store = SqlStore::<Self>::builder().connect(url).await?;
                store.migrate().await?;
                Ok(sqlx::query_as("SELECT operation, execution FROM effects").fetch_all(store.pool()).await?)
            }
        }
    };
}

transfer!(Postgres:
    "CREATE TABLE IF NOT EXISTS effects (operation TEXT NOT NULL, execution TEXT NOT NULL)",
    "INSERT INTO effects (operation, execution) VALUES ($1, $2)"
);
transfer!(MySql:
    "CREATE TABLE IF NOT EXISTS effects (operation VARCHAR(255) NOT NULL, execution VARCHAR(255) NOT NULL)",
    "INSERT INTO effects (operation, execution) VALUES (?, ?)"
);
