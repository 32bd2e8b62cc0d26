//! The sizes of what each request has.

use std::convert::Infallible;

use axum::{body::Body, routing::future::RouteFuture};

use super::run::HandlerJob;
use crate::engine::{Execution, RunState};

#[test]
fn a_run_of_an_axum_handler_stays_below_640_bytes() {
    let size = size_of::<Execution<HandlerJob<RouteFuture<Infallible>, Body, Infallible>>>();
    assert!(size < 640, "{size} bytes");
}

#[test]
fn the_state_of_a_run_stays_below_640_bytes() {
    let size = size_of::<RunState>();
    assert!(size < 640, "{size} bytes");
}
