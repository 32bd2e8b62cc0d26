//! One server for all that run at the same time, and a database of its own for each.

use std::sync::{
    Arc, Weak,
    atomic::{AtomicU32, Ordering::Relaxed},
};

use tokio::sync::Mutex;

use crate::server::Server;

/// A database, and the server that it is on.
pub(crate) struct Database {
    pub(crate) name: String,
    server: Arc<Server>,
}

impl Database {
    pub(crate) fn port(&self) -> u16 {
        self.server.port()
    }
}

/// A server that lives as long as one of its databases is used.
pub(crate) struct Shared(Mutex<Weak<Server>>);

impl Shared {
    pub(crate) const fn new() -> Self {
        Self(Mutex::const_new(Weak::new()))
    }

    /// The server, or one that is started now, with a name for a database.
    pub(crate) async fn database(&self, start: impl AsyncFnOnce() -> Server) -> Database {
        static NEXT: AtomicU32 = AtomicU32::new(0);

        let mut shared = self.0.lock().await;
        let server = match shared.upgrade() {
            Some(server) => server,
            None => Arc::new(start().await),
        };
        *shared = Arc::downgrade(&server);
        Database { name: format!("shop{}", NEXT.fetch_add(1, Relaxed)), server }
    }
}
