use std::{
    fmt,
    str::FromStr,
    sync::{Arc, atomic::Ordering::Relaxed},
};

use axum::{
    Extension,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use tower_idempotency::Operation;

use super::{Service, answer};
use crate::{history::Line, time::pause};

/// When the request arrived. Its claim came after.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked(pub(crate) u64);

/// What a request asks for: how long the work takes, half of it before the effect, and how it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) work: u64,
    pub(crate) end: End,
}

/// A run that fails has had no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Succeed,
    Fail,
    Panic,
}

/// The name of the header that says what a request asks for.
pub(crate) const TOLD: &str = "x-told";

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = match self.end {
            End::Succeed => "succeed",
            End::Fail => "fail",
            End::Panic => "panic",
        };
        write!(f, "{} {end}", self.work)
    }
}

impl FromStr for Told {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (work, end) = text.split_once(' ').ok_or(())?;
        let end = match end {
            "succeed" => End::Succeed,
            "fail" => End::Fail,
            "panic" => End::Panic,
            _ => return Err(()),
        };
        Ok(Self { work: work.parse().map_err(drop)?, end })
    }
}

type Answer = (StatusCode, String);

pub(crate) async fn handle(
    State(service): State<Arc<Service>>,
    operation: Operation,
    asked: Extension<Asked>,
    headers: HeaderMap,
    body: String,
) -> Answer {
    let log = Arc::clone(&service.log);
    let effect = async |execution: &str| {
        log.add(Line::Effect { execution: execution.to_owned() });
        Ok(())
    };
    perform(&service, &operation, *asked, &headers, &body, effect).await
}

pub(crate) async fn perform(
    service: &Service,
    operation: &Operation,
    asked: Asked,
    headers: &HeaderMap,
    body: &str,
    effect: impl AsyncFnOnce(&str) -> Result<(), String>,
) -> Answer {
    let told = headers.get(TOLD).and_then(|told| told.to_str().ok()?.parse::<Told>().ok());
    let Some(Told { work, end }) = told else { return (StatusCode::BAD_REQUEST, TOLD.into()) };
    let number = service.executions.fetch_add(1, Relaxed);
    let execution = format!("{}.{}.{number}", service.name, service.began);
    service.log.add(Line::Began {
        service: service.name.clone(),
        key: operation.key().into(),
        body: body.into(),
        execution: execution.clone(),
        attempt: operation.attempt(),
        takeover: operation.is_takeover(),
        asked: asked.0,
    });
    pause(work / 2).await;
    match end {
        End::Succeed => {}
        End::Fail => return (StatusCode::INTERNAL_SERVER_ERROR, "failed".into()),
        End::Panic => panic!("told to panic"),
    }
    if let Err(error) = effect(&execution).await {
        return (StatusCode::INTERNAL_SERVER_ERROR, error);
    }
    pause(work / 2).await;
    (StatusCode::CREATED, answer::text(&execution, operation.key(), body))
}
