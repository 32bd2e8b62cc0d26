//! Records in the server as each version wrote them.

use std::fmt::Write as _;

use redis::aio::MultiplexedConnection;

use crate::{
    server::Server,
    written_formats::{new_version, read, versions, write},
};

/// The life of a record: its first write.
const LIFE_MS: u64 = 100 * 365 * 86_400_000;

async fn connect(server: &Server) -> MultiplexedConnection {
    redis::Client::open(server.url()).unwrap().get_multiplexed_async_connection().await.unwrap()
}

#[tokio::test]
async fn records_of_each_version_are_read() {
    for version in versions() {
        let server = Server::start(&[]);
        let mut connection = connect(&server).await;
        for line in std::fs::read_to_string(version.join("redis.txt")).unwrap().lines() {
            let (name, value) = line.split_once(' ').unwrap();
            let mut set = redis::cmd("SET");
            set.arg(bytes(name)).arg(bytes(value)).arg("PX").arg(LIFE_MS);
            let () = set.query_async(&mut connection).await.unwrap();
        }
        read(server.store().await).await;
    }
}

#[tokio::test]
#[ignore = "scripts/freeze-formats runs it, for a new version"]
async fn write_the_fixtures() {
    let server = Server::start(&[]);
    write(server.store().await).await;
    let mut connection = connect(&server).await;
    let mut names: Vec<Vec<u8>> = redis::cmd("KEYS").arg("*").query_async(&mut connection).await.unwrap();
    names.sort();
    let mut lines = String::new();
    for name in names {
        let value: Vec<u8> = redis::cmd("GET").arg(&name).query_async(&mut connection).await.unwrap();
        writeln!(lines, "{} {}", hex(&name), hex(&value)).unwrap();
    }
    std::fs::write(new_version().join("redis.txt"), lines).unwrap();
}

fn hex(bytes: &[u8]) -> String {
    let digits: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.concat()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<_> = hex.chars().map(|digit| u8::try_from(digit.to_digit(16).unwrap()).unwrap()).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}
