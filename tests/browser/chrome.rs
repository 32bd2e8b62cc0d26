//! A Chromium of the test's own, with its driver.

use std::{
    env, fs,
    io::{BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, TcpStream},
    path::PathBuf,
    process::{Child, ChildStdout, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    time::Duration,
};

use fantoccini::{Client, ClientBuilder, wd::Capabilities};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};

#[derive(Clone, Copy)]
pub(crate) struct Options {
    pub(crate) scripts: bool,
    pub(crate) dark: bool,
    pub(crate) width: u32,
    pub(crate) height: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { scripts: true, dark: false, width: 1180, height: 1080 }
    }
}

/// It ends with its value, after a failed test too, and the browser with it.
pub(crate) struct Chrome {
    driver: Child,
    port: u16,
    folder: PathBuf,
    /// Read on by nobody, and open as long as the driver may write to it.
    _output: BufReader<ChildStdout>,
}

impl Chrome {
    pub(crate) fn start() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("tower-idempotency-chrome-{}-{}", std::process::id(), COUNT.fetch_add(1, Relaxed));
        let folder = env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .env("TMPDIR", &folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| {
                panic!("chromedriver is needed for these tests (Debian: chromium-driver): {error}")
            });
        let mut output = BufReader::new(driver.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("started successfully on port") {
            line.clear();
            assert_ne!(output.read_line(&mut line).unwrap(), 0, "chromedriver does not start");
        }
        let port = line.trim().trim_end_matches('.').rsplit(' ').next().unwrap().parse().unwrap();
        Self { driver, port, folder, _output: output }
    }

    pub(crate) async fn open(&self, options: Options) -> Client {
        let Options { scripts, dark, width, height } = options;
        let mut args = vec![
            // Its sandbox refuses to run for root; what it shows is the test's own.
            "--no-sandbox".to_owned(),
            "--headless".to_owned(),
            "--disable-gpu".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--disable-quic".to_owned(),
            "--no-first-run".to_owned(),
            "--disable-background-networking".to_owned(),
            "--disable-component-update".to_owned(),
            "--disable-sync".to_owned(),
            "--hide-scrollbars".to_owned(),
            format!("--window-size={width},{height}"),
            format!("--user-data-dir={}", self.folder.join("profile").display()),
        ];
        if dark {
            args.push("--blink-settings=preferredColorScheme=0".to_owned());
        }
        let mut chrome = json!({ "args": args });
        if !scripts {
            chrome["prefs"] = json!({ "profile.managed_default_content_settings.javascript": 2 });
        }
        if width < 500 {
            // A window of a desktop is never so narrow.
            let metrics = json!({ "width": width, "height": height, "pixelRatio": 2.0, "touch": true });
            chrome["mobileEmulation"] = json!({ "deviceMetrics": metrics });
        }
        let mut capabilities = Capabilities::new();
        capabilities.insert("goog:chromeOptions".to_owned(), chrome);
        capabilities.insert("pageLoadStrategy".to_owned(), Value::from("normal"));
        let address = format!("http://127.0.0.1:{}", self.port);
        ClientBuilder::new(HttpConnector::new()).capabilities(capabilities).connect(&address).await.unwrap()
    }

    /// The driver ends the browsers that it has started, and itself.
    fn shut_down(&self) -> std::io::Result<()> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        write!(stream, "GET /shutdown HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n\r\n", self.port)?;
        stream.read_to_end(&mut Vec::new())?;
        Ok(())
    }
}

impl Drop for Chrome {
    fn drop(&mut self) {
        if self.shut_down().is_err() {
            let _ = self.driver.kill();
        }
        let _ = self.driver.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
