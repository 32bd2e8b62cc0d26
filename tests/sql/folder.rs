//! A temporary folder, gone with its value.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

pub(crate) struct Folder(PathBuf);

impl Folder {
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn new() -> Self {
        Self::within(&env::temp_dir())
    }

    /// One where writing to the end takes no time, if there is such a place: the suite knows leases of 400 ms, which a
    /// busy disk makes too short.
    #[cfg(feature = "sqlite")]
    pub(crate) fn quick() -> Self {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() { Self::within(memory) } else { Self::within(&env::temp_dir()) }
    }

    fn within(folder: &Path) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("tower-idempotency-{}-{}", process::id(), NEXT.fetch_add(1, Relaxed));
        let path = folder.join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
