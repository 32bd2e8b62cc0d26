use std::{error::Error, sync::Arc};

use axum::{
    Extension, Router,
    extract::State,
    http::{HeaderMap, StatusCode},
    routing::post,
};
use sqlx::Pool;
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

    /// Keys and executions of all rows.
    async fn rows(url: &str) -> sqlx::Result<Vec<(String, String)>>;
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

            async fn rows(url: &str) -> sqlx::Result<Vec<(String, String)>> {
                let pool = Pool::<Self>::connect(url).await?;
                sqlx::query_as("SELECT operation, execution FROM effects").fetch_all(&pool).await
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
