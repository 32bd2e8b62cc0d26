//! Generates the service's trait, its server and its client, as from `proto/transfers.proto`: `protoc` is not needed.

use tonic_build::manual::{Builder, Method, Service};

const CODEC: &str = "tonic_prost::ProstCodec";

fn main() {
    let create = Method::builder()
        .name("create")
        .route_name("Create")
        .comment("Moves money.")
        .input_type("crate::messages::Transfer")
        .output_type("crate::messages::Receipt")
        .codec_path(CODEC)
        .build();
    let list = Method::builder()
        .name("list")
        .route_name("List")
        .comment("Lists all transfers.")
        .input_type("crate::messages::ListRequest")
        .output_type("crate::messages::Receipt")
        .codec_path(CODEC)
        .server_streaming()
        .build();
    let transfers = Service::builder().name("Transfers").package("bank.v1").method(create).method(list).build();
    Builder::new().compile(&[transfers]);
    println!("cargo::rerun-if-changed=build.rs");
}
