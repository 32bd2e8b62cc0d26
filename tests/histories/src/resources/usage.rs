use std::{error::Error, fmt, fs};

use crate::clients::http::Connection;

/// What a service holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    /// What is allocated, in bytes.
    pub(super) heap: u64,
    /// The memory of its process, in bytes, with what its allocator keeps for later.
    pub(super) memory: u64,
    /// The tasks of its runtime.
    pub(super) tasks: usize,
    /// Work whose client has left.
    pub(super) background: usize,
    /// The open files and sockets of its process, those to the store among them.
    pub(super) descriptors: usize,
}

impl Usage {
    pub(super) async fn of(port: u16, process: u32) -> Result<Self, Box<dyn Error>> {
        let mut connection = Connection::open(port).await?;
        connection.send(b"GET /resources HTTP/1.1\r\nHost: localhost\r\n\r\n").await?;
        let text = connection.receive().await?.body;
        let mut numbers = text.split(' ').map(str::parse::<u64>);
        let mut number = || numbers.next().ok_or("a number is missing");
        let [heap, tasks, background] = [number()??, number()??, number()??];
        let status = fs::read_to_string(format!("/proc/{process}/status"))?;
        let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no memory")?;
        let kilobytes: u64 = memory.trim().trim_end_matches(" kB").parse()?;
        Ok(Self {
            heap,
            memory: kilobytes << 10,
            tasks: usize::try_from(tasks)?,
            background: usize::try_from(background)?,
            descriptors: fs::read_dir(format!("/proc/{process}/fd"))?.count(),
        })
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { heap, memory, tasks, descriptors, .. } = self;
        let (heap, memory) = (heap >> 10, memory >> 20);
        write!(f, "{heap:>6} KiB allocated ({memory:>3} MiB of memory), {tasks} tasks, {descriptors} descriptors")
    }
}
