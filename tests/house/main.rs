//! The sources keep to the plan of the house: a room uses what stands above it, never what stands below, never its
//! neighbour. Files, folders and names keep to their bounds, and what the manifests and the docs say is so.
#![allow(clippy::expect_used)]

mod builders;
mod circles;
mod known;
mod leaves;
mod manifests;
mod modules;
mod panics;
mod paths;
mod readme;
mod rooms;
mod shape;
mod sources;
