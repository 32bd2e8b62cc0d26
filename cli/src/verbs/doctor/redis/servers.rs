//! The servers of a URL: one, the masters of a cluster, or the master that sentinels name.

use redis::{AsyncConnectionConfig, Client, RedisError, TlsCertificates, aio::MultiplexedConnection, cmd};

use crate::{
    arguments::Place,
    connected::certificates,
    failure::{Failure, with_sources},
    store_url::StoreUrl,
};

/// A server's address, and a connection to it.
type Server = (String, MultiplexedConnection);

/// Connects to all servers that have records.
pub(super) async fn connect(url: &StoreUrl, place: &Place) -> Result<Vec<Server>, Failure> {
    let roots = certificates(place)?;
    let dial = async |address: &str| {
        let server = url.server(address);
        open(&server, roots.clone(), place).await.map_err(|error| Failure::Store(with_sources(&error)))
    };
    let mut first = Err(Failure::Store("the URL names no server".into()));
    for host in url.hosts() {
        first = dial(&host).await.map(|connection| (host, connection));
        if first.is_ok() {
            break;
        }
    }
    let (host, mut connection) = first?;
    let addresses = if url.is_cluster() {
        masters(&mut connection, &host).await
    } else if let Some(name) = url.sentinel_master() {
        vec![named_master(&mut connection, name).await?]
    } else {
        return Ok(vec![(host, connection)]);
    };
    let mut servers = Vec::new();
    for address in addresses {
        let connection = dial(&address).await.map_err(|failure| failure.map(|text| format!("{address}: {text}")))?;
        servers.push((address, connection));
    }
    Ok(servers)
}

async fn open(url: &str, roots: Option<Vec<u8>>, place: &Place) -> Result<MultiplexedConnection, RedisError> {
    let client = match roots {
        Some(_) if url.starts_with("rediss") || url.starts_with("valkeys") => {
            Client::build_with_tls(url, TlsCertificates { client_tls: None, root_cert: roots })?
        }
        _ => Client::open(url)?,
    };
    let limits = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(place.timeout()))
        .set_response_timeout(Some(place.timeout()));
    client.get_multiplexed_async_connection_with_config(&limits).await
}

/// Returns the masters of a cluster, or the server that was asked if it does not tell.
async fn masters(connection: &mut MultiplexedConnection, asked: &str) -> Vec<String> {
    let nodes = cmd("CLUSTER").arg("NODES").query_async::<String>(connection).await.unwrap_or_default();
    let masters: Vec<_> = nodes.lines().filter_map(master).collect();
    if masters.is_empty() { vec![asked.to_owned()] } else { masters }
}

/// Reads the address from a line such as `id host:port@bus flags ...`, if it is that of a master that is there.
fn master(line: &str) -> Option<String> {
    let mut words = line.split_whitespace().skip(1);
    let (address, flags) = (words.next()?, words.next()?);
    let there = flags.split(',').any(|flag| flag == "master") && !flags.contains("fail") && !flags.contains("noaddr");
    let address = address.split(['@', ',']).next()?;
    there.then(|| address.to_owned())
}

/// Asks a sentinel for the master.
async fn named_master(connection: &mut MultiplexedConnection, name: &str) -> Result<String, Failure> {
    let asked = cmd("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(name).query_async(connection).await;
    match asked {
        Ok(Some((host, port))) => {
            let (host, port): (String, String) = (host, port);
            Ok(format!("{host}:{port}"))
        }
        Ok(None) => Err(Failure::Store(format!("the sentinels know no master of the name {name}"))),
        Err(error) => Err(Failure::Store(with_sources(&error))),
    }
}

#[cfg(test)]
mod tests {
    use super::master;

    #[test]
    fn masters_that_are_there_are_found() {
        let lines = [
            "07c3 127.0.0.1:30004@31004 slave e7d1 0 1 4 connected",
            "67ed 127.0.0.1:30002@31002,hostname2 master - 0 1 2 connected 5461-10922",
            "292f 127.0.0.1:30003@31003 master,fail - 0 1 3 connected 10923-16383",
            "e7d1 127.0.0.1:30001@31001 myself,master - 0 0 1 connected 0-5460",
        ];
        let found: Vec<_> = lines.iter().filter_map(|line| master(line)).collect();
        assert_eq!(found, ["127.0.0.1:30002", "127.0.0.1:30001"]);
    }
}
