//! The handler of every protected route, and those that tell what it did.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Json,
    body::Body,
    extract::{MatchedPath, State},
    http::{HeaderMap, StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::time::sleep;
use tower_idempotency::{
    Operation,
    store::{Filter, StoreAdmin},
};

use crate::{executions::Executions, instructions::Instructions};

pub(crate) struct Server {
    pub(crate) store: Arc<dyn StoreAdmin>,
    pub(crate) executions: Executions,
}

pub(crate) type Failure = (StatusCode, String);

/// Counts its execution, then does what the request's header `X-Do` says.
pub(crate) async fn handle(
    State(server): State<Arc<Server>>,
    route: MatchedPath,
    operation: Option<Operation>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Failure> {
    perform(server, route, operation, headers, body, async |_| Ok(())).await
}

/// The same, with an effect before all of that.
pub(crate) async fn perform(
    server: Arc<Server>,
    route: MatchedPath,
    operation: Option<Operation>,
    headers: HeaderMap,
    body: Body,
    effect: impl AsyncFnOnce(&Instructions) -> Result<(), Failure>,
) -> Result<Response, Failure> {
    // A request that the layer let through unprotected has no key, and was never claimed.
    let key = operation.as_ref().map_or("", Operation::key);
    let attempt = operation.as_ref().map_or(0, Operation::attempt);
    let execution = server.executions.count(route.as_str(), key).map_err(failure(StatusCode::INTERNAL_SERVER_ERROR))?;

    let told = Instructions::of(&headers).map_err(failure(StatusCode::BAD_REQUEST))?;
    effect(&told).await?;
    let echo = if told.drain { drain(body).await? } else { read(body).await? };
    sleep(told.delay).await;
    assert!(!told.panic, "told to panic");

    let report = json!({ "execution": execution.number, "key": key, "attempt": attempt, "echo": echo });
    let failed = execution.number <= told.fail_first;
    let status = if failed { StatusCode::INTERNAL_SERVER_ERROR } else { told.status };
    let content = told.content.into_response(report);
    let mut response = (status, [("x-execution", execution.id)], content).into_response();
    let fields = response.headers_mut();
    for (name, value) in told.set {
        if name == CONTENT_TYPE {
            fields.insert(name, value);
        } else {
            fields.append(name, value);
        }
    }
    Ok(response)
}

/// `{"ROUTE KEY": n}` of this process.
pub(crate) async fn executions(State(server): State<Arc<Server>>) -> Json<BTreeMap<String, u64>> {
    Json(server.executions.by_operation())
}

/// The running records whose lease has lapsed.
pub(crate) async fn abandoned(State(server): State<Arc<Server>>) -> Result<Json<Vec<Value>>, Failure> {
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let page = server
            .store
            .list(Filter::Abandoned, after, 100)
            .await
            .map_err(failure(StatusCode::INTERNAL_SERVER_ERROR))?;
        found.extend(page.entries.iter().map(
            |entry| json!({ "route": entry.key.route(), "key": entry.key.key(), "attempt": entry.record.attempt }),
        ));
        after = page.next;
        if after.is_none() {
            return Ok(Json(found));
        }
    }
}

async fn read(body: Body) -> Result<String, Failure> {
    let whole = body.collect().await.map_err(failure(StatusCode::BAD_REQUEST))?.to_bytes();
    Ok(String::from_utf8_lossy(&whole).into_owned())
}

async fn drain(mut body: Body) -> Result<String, Failure> {
    while let Some(frame) = body.frame().await {
        frame.map_err(failure(StatusCode::BAD_REQUEST))?;
    }
    Ok(String::new())
}

pub(crate) fn failure<E: ToString>(status: StatusCode) -> impl FnOnce(E) -> Failure {
    move |error| (status, error.to_string())
}
