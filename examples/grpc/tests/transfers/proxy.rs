//! A wire between a client and the server that loses answers, delays and cuts. It reads the frames of HTTP/2.

use std::{
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    time::sleep,
};

/// Types of frames (RFC 9113, section 6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
/// What a client sends first.
const PREFACE: usize = 24;
/// The length, the type, flags and the stream.
const FRAME_HEAD: usize = 9;

/// What goes wrong, one time in so many.
const LOST_ANSWERS: u64 = 60;
const CUT_REQUESTS: u64 = 90;
const DELAYS: u64 = 10;
const LONGEST_DELAY: u64 = 30;

pub(crate) struct Proxy {
    pub(crate) port: u16,
    faults: Arc<Faults>,
}

#[derive(Default)]
struct Faults {
    next_answer: AtomicBool,
    bad_weather: AtomicBool,
    dice: AtomicU64,
    lost: AtomicU64,
    cut: AtomicU64,
}

impl Proxy {
    pub(crate) async fn to(server: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let (port, faults) = (listener.local_addr().unwrap().port(), Arc::new(Faults::default()));
        let told = faults.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, server, told.clone()));
            }
        });
        Self { port, faults }
    }

    /// The next answer does not reach its client, and the connection breaks.
    pub(crate) fn lose_the_next_answer(&self) {
        self.faults.next_answer.store(true, SeqCst);
    }

    /// Whether answers are lost, requests are cut and everything is late now and then.
    pub(crate) fn bad_weather(&self, is_bad: bool) {
        self.faults.bad_weather.store(is_bad, SeqCst);
    }

    /// How many answers were lost, and how many requests were cut.
    pub(crate) fn faults(&self) -> (u64, u64) {
        (self.faults.lost.load(SeqCst), self.faults.cut.load(SeqCst))
    }
}

impl Faults {
    /// Returns whether it happens, one time in `times`.
    fn happens(&self, times: u64) -> bool {
        self.bad_weather.load(SeqCst) && self.draw().is_multiple_of(times)
    }

    /// `SplitMix64`.
    fn draw(&self) -> u64 {
        let mut z = self.dice.fetch_add(0x9e37_79b9_7f4a_7c15, SeqCst);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    async fn delay(&self) {
        if self.happens(DELAYS) {
            sleep(Duration::from_millis(self.draw() % LONGEST_DELAY)).await;
        }
    }

    /// Returns whether the frame gets through.
    fn passes(&self, from_client: bool, kind: u8) -> bool {
        let (counter, breaks) = match (from_client, kind) {
            (true, DATA) => (&self.cut, self.happens(CUT_REQUESTS)),
            (false, HEADERS) => (&self.lost, self.next_answer.swap(false, SeqCst) || self.happens(LOST_ANSWERS)),
            _ => return true,
        };
        if breaks {
            counter.fetch_add(1, SeqCst);
        }
        !breaks
    }
}

/// Carries one connection until it breaks. All calls on it break then.
async fn carry(client: TcpStream, server: u16, faults: Arc<Faults>) {
    // A server that was killed may not be there yet.
    let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, server)).await else { return };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::select! {
        _ = frames(true, from_client, to_server, &faults) => {}
        _ = frames(false, from_server, to_client, &faults) => {}
    }
}

async fn frames(
    from_client: bool,
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    faults: &Faults,
) -> std::io::Result<()> {
    if from_client {
        let mut preface = [0; PREFACE];
        from.read_exact(&mut preface).await?;
        to.write_all(&preface).await?;
    }
    loop {
        let mut frame = vec![0; FRAME_HEAD];
        from.read_exact(&mut frame).await?;
        let length = usize::from(frame[0]) << 16 | usize::from(frame[1]) << 8 | usize::from(frame[2]);
        frame.resize(FRAME_HEAD + length, 0);
        from.read_exact(&mut frame[FRAME_HEAD..]).await?;
        faults.delay().await;
        if !faults.passes(from_client, frame[3]) {
            return Ok(());
        }
        to.write_all(&frame).await?;
    }
}
