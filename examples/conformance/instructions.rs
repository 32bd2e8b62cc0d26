//! What a request asks of the handler: the header `X-Do`, a list of items with `;` between them.

use std::{fmt::Display, str::FromStr, time::Duration};

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::answer::Content;

pub(crate) struct Instructions {
    pub(crate) status: StatusCode,
    pub(crate) delay: Duration,
    pub(crate) content: Content,
    pub(crate) set: Vec<(HeaderName, HeaderValue)>,
    pub(crate) panic: bool,
    pub(crate) fail_first: u64,
    pub(crate) drain: bool,
    pub(crate) sql_error: bool,
}

impl Default for Instructions {
    fn default() -> Self {
        Self {
            status: StatusCode::CREATED,
            delay: Duration::ZERO,
            content: Content::Report,
            set: Vec::new(),
            panic: false,
            fail_first: 0,
            drain: false,
            sql_error: false,
        }
    }
}

impl Instructions {
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, String> {
        let Some(value) = headers.get("x-do") else { return Ok(Self::default()) };
        let value = value.to_str().map_err(|error| format!("X-Do: {error}"))?;
        let mut told = Self::default();
        for item in value.split(';').map(str::trim).filter(|item| !item.is_empty()) {
            told.add(item).map_err(|why| format!("X-Do: {item}: {why}"))?;
        }
        Ok(told)
    }

    fn add(&mut self, item: &str) -> Result<(), String> {
        let (name, value) = item.split_once('=').unwrap_or((item, ""));
        match name {
            "status" => self.status = parse(value)?,
            "delay" => self.delay = Duration::from_millis(parse(value)?),
            "size" => self.content = Content::Size(parse(value)?),
            "stream" => self.content = Content::Stream(parse(value)?),
            "drip" => self.content = Content::Drip(Duration::from_millis(parse(value)?)),
            "break" => self.content = Content::Break,
            "trailers" => self.content = Content::Trailers,
            "empty" => self.content = Content::Empty,
            "set" => {
                let (name, value) = value.split_once(':').ok_or("NAME:VALUE is wanted")?;
                self.set.push((parse(name)?, parse(value)?));
            }
            "panic" => self.panic = true,
            "sql-error" => self.sql_error = true,
            "fail-first" => self.fail_first = parse(value)?,
            "drain" => self.drain = true,
            _ => return Err("no such item".into()),
        }
        Ok(())
    }
}

fn parse<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}
