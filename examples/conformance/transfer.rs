//! `/transfer`: the effect is a row, written in the layer's own transaction.

use std::{collections::HashMap, error::Error, sync::Arc};

use axum::{
    Router,
    body::Body,
    extract::{MatchedPath, Query, State},
    http::{HeaderMap, StatusCode},
    response::Response,
    routing::{get, post},
};
use tower_idempotency::{
    IdempotencyLayer, Operation,
    sql::{SqlStore, Tx},
};

use crate::handler::{Failure, Server, failure, perform};

/// The routes of a database: its type, and the statements that insert and count.
macro_rules! transfer {
    ($feature:literal, $database:ident: $schema:literal, $insert:literal, $count:literal) => {
        #[cfg(feature = $feature)]
        impl Transfer for sqlx::$database {
            async fn routes(
                store: &SqlStore<Self>,
                layer: IdempotencyLayer,
            ) -> Result<Router<Arc<Server>>, Box<dyn Error>> {
                async fn transfer(
                    State(server): State<Arc<Server>>,
                    route: MatchedPath,
                    operation: Operation,
                    mut tx: Tx<sqlx::$database>,
                    headers: HeaderMap,
                    body: Body,
                ) -> Result<Response, Failure> {
                    let key = operation.key().to_owned();
                    perform(server, route, Some(operation), headers, body, async |told| {
                        let inserted = sqlx::query($insert).bind(key).execute(&mut *tx).await;
                        inserted.map_err(failure(StatusCode::INTERNAL_SERVER_ERROR))?;
                        if told.sql_error {
                            let _ = sqlx::query("SELECT * FROM there_is_no_such_table").execute(&mut *tx).await;
                        }
                        Ok(())
                    })
                    .await
                }

                sqlx::raw_sql($schema).execute(store.pool()).await?;
                let pool = store.pool().clone();
                let effects = async move |Query(asked): Query<HashMap<String, String>>| {
                    let key = asked.get("key").cloned().unwrap_or_default();
                    let count: Result<i64, _> = sqlx::query_scalar($count).bind(key).fetch_one(&pool).await;
                    count.map(|count| count.to_string()).map_err(failure(StatusCode::INTERNAL_SERVER_ERROR))
                };
                Ok(Router::new()
                    .route("/transfer", post(transfer).layer(layer))
                    .route("/transfer/effects", get(effects)))
            }
        }
    };
}

pub(crate) trait Transfer: tower_idempotency::sql::SqlDatabase {
    async fn routes(store: &SqlStore<Self>, layer: IdempotencyLayer) -> Result<Router<Arc<Server>>, Box<dyn Error>>;
}

transfer!("postgres", Postgres:
    "CREATE TABLE IF NOT EXISTS effects (number BIGSERIAL PRIMARY KEY, operation TEXT NOT NULL);
     CREATE INDEX IF NOT EXISTS effects_of ON effects (operation)",
    "INSERT INTO effects (operation) VALUES ($1)",
    "SELECT COUNT(*) FROM effects WHERE operation = $1"
);
transfer!("mysql", MySql:
    "CREATE TABLE IF NOT EXISTS effects (
         number BIGINT AUTO_INCREMENT PRIMARY KEY, operation VARCHAR(255) NOT NULL, INDEX (operation)
     )",
    "INSERT INTO effects (operation) VALUES (?)",
    "SELECT COUNT(*) FROM effects WHERE operation = ?"
);
transfer!("sqlite", Sqlite:
    "CREATE TABLE IF NOT EXISTS effects (number INTEGER PRIMARY KEY, operation TEXT NOT NULL);
     CREATE INDEX IF NOT EXISTS effects_of ON effects (operation)",
    "INSERT INTO effects (operation) VALUES (?)",
    "SELECT COUNT(*) FROM effects WHERE operation = ?"
);
