//! The client's certificate as a scope.

use std::{
    env, fs,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    process::Command,
};

use http::uri::PathAndQuery;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{
    Code, Response, Status,
    client::Grpc,
    transport::{Certificate, Channel, ClientTlsConfig, Identity, Server, ServerTlsConfig},
};
use tonic_prost::ProstCodec;
use tower_idempotency::MemoryStore;
use tower_idempotency_grpc::{GrpcLayer, scope};

use crate::bank::{Bank, PAY, Receipt, info, order, seen};

/// One that signs certificates, in a folder of its own.
struct Authority(PathBuf);

impl Authority {
    fn new() -> Self {
        let folder = env::temp_dir().join(format!("tower-idempotency-grpc-authority-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("config"), "[req]\ndistinguished_name = name\n[name]\n").unwrap();
        make(&folder, "authority", &["-addext", "basicConstraints=critical,CA:TRUE"]);
        Self(folder)
    }

    fn certificate(&self) -> Certificate {
        Certificate::from_pem(self.read("authority.pem"))
    }

    fn identity(&self, name: &str) -> Identity {
        let signed = ["-CA", "authority.pem", "-CAkey", "authority.key", "-addext", "subjectAltName=IP:127.0.0.1"];
        make(&self.0, name, &[&signed[..], &["-addext", "basicConstraints=CA:FALSE"]].concat());
        Identity::from_pem(self.read(&format!("{name}.pem")), self.read(&format!("{name}.key")))
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap()
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn make(folder: &Path, name: &str, more: &[&str]) {
    let (key, pem, subject) = (format!("{name}.key"), format!("{name}.pem"), format!("/CN={name}"));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-config", "config", "-days", "1", "-nodes", "-newkey", "ec"])
        .args(["-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", &subject, "-keyout", &key, "-out", &pem])
        .args(more)
        .current_dir(folder)
        .output()
        .unwrap_or_else(|error| panic!("openssl is needed for these tests (Debian: openssl): {error}"));
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

async fn pay(channel: &Channel, amount: u64) -> Result<Response<Receipt>, Status> {
    let mut client = Grpc::new(channel.clone());
    client.ready().await.unwrap();
    client.unary(order("a", amount), PathAndQuery::from_static(PAY), ProstCodec::default()).await
}

#[tokio::test]
async fn two_clients_with_one_key() {
    let authority = Authority::new();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let tls = ServerTlsConfig::new().identity(authority.identity("server")).client_ca_root(authority.certificate());
    let layer = GrpcLayer::new(MemoryStore::new()).scope(scope::certificate());
    let mut server = Server::builder().tls_config(tls.client_auth_optional(true)).unwrap().layer(layer);
    tokio::spawn(server.add_service(Bank::paying()).serve_with_incoming(TcpListenerStream::new(listener)));

    let trusting = ClientTlsConfig::new().ca_certificate(authority.certificate()).domain_name("127.0.0.1");
    let connect = async |tls: ClientTlsConfig| {
        Channel::from_shared(url.clone()).unwrap().tls_config(tls).unwrap().connect().await.unwrap()
    };
    let ann = connect(trusting.clone().identity(authority.identity("ann"))).await;
    let bob = connect(trusting.clone().identity(authority.identity("bob"))).await;
    assert_eq!(seen(&pay(&ann, 7).await.unwrap()), (1, false));
    assert_eq!(seen(&pay(&bob, 8).await.unwrap()), (2, false));
    assert_eq!(seen(&pay(&ann, 7).await.unwrap()), (1, true));
    let status = pay(&connect(trusting).await, 7).await.unwrap_err();
    assert_eq!((status.code(), &*info(&status).reason), (Code::InvalidArgument, "scope-missing"));
}
