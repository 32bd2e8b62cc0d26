//! Database crates on PostgreSQL that are not the library's own.

#[path = "../../../sql/folder.rs"]
mod folder;
#[path = "../../../sql/server.rs"]
mod server;
#[path = "../../common/steps.rs"]
mod steps;

use diesel::{Connection as _, RunQueryDsl, sql_query, sql_types};
use sqlx::{Connection, Executor};
use tokio_postgres::{NoTls, types::ToSql};
use tower_idempotency::{
    PostgresStore,
    sql::{SqlStatement, SqlValue},
};

use self::{
    server::Server,
    steps::{Driver, a_lost_claim_is_told, child, killed_between_every_two_steps},
};

struct Sqlx08(sqlx::PgConnection);

impl Driver for Sqlx08 {
    async fn connect(place: &str) -> Self {
        Self(sqlx::PgConnection::connect(place).await.unwrap())
    }

    async fn say(&mut self, text: &str) {
        self.0.execute(text).await.unwrap();
    }

    async fn execute(&mut self, statement: &SqlStatement) -> u64 {
        let mut query = sqlx::query(&statement.text);
        for value in &statement.values {
            query = match value {
                SqlValue::Int(number) => query.bind(number),
                SqlValue::Bool(flag) => query.bind(flag),
                SqlValue::Text(text) => query.bind(text),
                SqlValue::Bytes(bytes) => query.bind(bytes),
                other => panic!("{other:?}"),
            };
        }
        query.execute(&mut self.0).await.unwrap().rows_affected()
    }

    async fn count(&mut self, text: &str) -> i64 {
        sqlx::query_scalar(text).fetch_one(&mut self.0).await.unwrap()
    }
}

struct TokioPostgres(tokio_postgres::Client);

impl Driver for TokioPostgres {
    async fn connect(place: &str) -> Self {
        let (client, connection) = tokio_postgres::connect(place, NoTls).await.unwrap();
        tokio::spawn(connection);
        Self(client)
    }

    async fn say(&mut self, text: &str) {
        self.0.batch_execute(text).await.unwrap();
    }

    async fn execute(&mut self, statement: &SqlStatement) -> u64 {
        let values = statement.values.iter().map(|value| match value {
            SqlValue::Int(number) => number as &(dyn ToSql + Sync),
            SqlValue::Bool(flag) => flag,
            SqlValue::Text(text) => text,
            SqlValue::Bytes(bytes) => bytes,
            other => panic!("{other:?}"),
        });
        self.0.execute(&statement.text, &values.collect::<Vec<_>>()).await.unwrap()
    }

    async fn count(&mut self, text: &str) -> i64 {
        self.0.query_one(text, &[]).await.unwrap().get(0)
    }
}

struct Diesel(diesel::PgConnection);

#[derive(diesel::QueryableByName)]
struct Count {
    #[diesel(sql_type = sql_types::BigInt)]
    count: i64,
}

impl Driver for Diesel {
    async fn connect(place: &str) -> Self {
        Self(diesel::PgConnection::establish(place).unwrap())
    }

    async fn say(&mut self, text: &str) {
        sql_query(text).execute(&mut self.0).unwrap();
    }

    async fn execute(&mut self, statement: &SqlStatement) -> u64 {
        let mut query = sql_query(&statement.text).into_boxed::<diesel::pg::Pg>();
        for value in &statement.values {
            query = match value {
                SqlValue::Int(number) => query.bind::<sql_types::BigInt, _>(*number),
                SqlValue::Bool(flag) => query.bind::<sql_types::Bool, _>(*flag),
                SqlValue::Text(text) => query.bind::<sql_types::Nullable<sql_types::Text>, _>(text.clone()),
                SqlValue::Bytes(bytes) => query.bind::<sql_types::Nullable<sql_types::Binary>, _>(bytes.clone()),
                other => panic!("{other:?}"),
            };
        }
        query.execute(&mut self.0).unwrap() as u64
    }

    async fn count(&mut self, text: &str) -> i64 {
        let text = text.replace("COUNT(*)", "COUNT(*) AS count");
        sql_query(text).get_result::<Count>(&mut self.0).unwrap().count
    }
}

async fn store(place: &str) -> PostgresStore {
    PostgresStore::connect(place).await.unwrap()
}

macro_rules! driver {
    ($name:ident: $driver:ty) => {
        mod $name {
            use super::*;

            #[tokio::test(flavor = "multi_thread")]
            async fn one_effect() {
                let server = Server::postgres();
                let place = format!("postgres://tests@127.0.0.1:{}/postgres", server.port());
                let store = store(&place).await;
                let child = concat!(stringify!($name), "::process");
                killed_between_every_two_steps::<$driver, _>(&place, child, &store).await;
                a_lost_claim_is_told::<$driver, _>(&place, &store).await;
            }

            /// It is what the processes of the test above run.
            #[tokio::test(flavor = "multi_thread")]
            async fn process() {
                child::<$driver, _>(async |place| store(place).await).await;
            }
        }
    };
}

driver!(sqlx_0_8: Sqlx08);
driver!(tokio_postgres_0_7: TokioPostgres);
driver!(diesel_2: Diesel);
