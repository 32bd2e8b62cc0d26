//! A visitor of the page.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use fantoccini::{
    Client, Locator,
    actions::{InputSource, MOUSE_BUTTON_LEFT, MouseActions, PointerAction},
    elements::Element,
    key::Key,
    wd::WindowHandle,
};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::sleep,
};

use crate::{
    chrome::{Chrome, Options},
    shop,
};

/// Generous: the machine may have more to do than this.
const AT_MOST: Duration = Duration::from_secs(20);

pub(crate) struct Visit {
    browser: Client,
    address: String,
    // Ended last.
    _chrome: Chrome,
}

impl Visit {
    pub(crate) async fn start(token_life: Duration, options: Options) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(axum::serve(listener, shop::app(token_life)).into_future());
        let chrome = Chrome::start();
        Self { browser: chrome.open(options).await, address, _chrome: chrome }
    }

    pub(crate) async fn end(self) {
        self.browser.close().await.unwrap();
    }

    pub(crate) async fn open(&self, path: &str) {
        self.browser.goto(&format!("http://{}{path}", self.address)).await.unwrap();
    }

    pub(crate) async fn back(&self) {
        self.browser.back().await.unwrap();
    }

    pub(crate) async fn reload(&self) {
        self.browser.refresh().await.unwrap();
    }

    pub(crate) async fn new_tab(&self, path: &str) -> WindowHandle {
        let tab = self.browser.new_window(true).await.unwrap().handle;
        self.browser.switch_to_window(tab.clone()).await.unwrap();
        self.open(path).await;
        tab
    }

    pub(crate) async fn switch_to(&self, tab: WindowHandle) {
        self.browser.switch_to_window(tab).await.unwrap();
    }

    pub(crate) async fn click(&self, form: &str) {
        self.button(form).await.click().await.unwrap();
    }

    /// Two clicks as fast as a finger slips.
    pub(crate) async fn double_click(&self, form: &str) {
        let element = self.button(form).await;
        // A pointer does not scroll.
        let script = "arguments[0].scrollIntoView({ block: 'center', behavior: 'instant' })";
        self.browser.execute(script, vec![serde_json::to_value(&element).unwrap()]).await.unwrap();
        let move_there = PointerAction::MoveToElement { element, duration: None, x: 0., y: 0. };
        let down = || PointerAction::Down { button: MOUSE_BUTTON_LEFT };
        let up = || PointerAction::Up { button: MOUSE_BUTTON_LEFT };
        let between = PointerAction::Pause { duration: Duration::from_millis(120) };
        let twice = MouseActions::new("mouse".to_owned())
            .then(move_there)
            .then(down())
            .then(up())
            .then(between)
            .then(down())
            .then(up());
        self.browser.perform_actions(twice).await.unwrap();
    }

    pub(crate) async fn type_amount(&self, form: &str, amount: &str) {
        let field = self.find(&format!("#{form}-amount")).await;
        field.send_keys(&format!("{}a{}", char::from(Key::Control), char::from(Key::Null))).await.unwrap();
        field.send_keys(amount).await.unwrap();
    }

    pub(crate) async fn follow(&self, link: &str) {
        self.browser.find(Locator::LinkText(link)).await.unwrap().click().await.unwrap();
    }

    /// Waits until the page has this text in it.
    pub(crate) async fn reads(&self, text: &str) {
        let began = Instant::now();
        loop {
            let page = self.find("body").await.text().await.unwrap_or_default();
            if page.contains(text) {
                return;
            }
            assert!(began.elapsed() < AT_MOST, "{text:?} is not on the page: {page}");
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until the page shows how often a form was sent, and how many orders came of it.
    pub(crate) async fn shows(&self, form: &str, counts: (u64, u64)) {
        let began = Instant::now();
        loop {
            let shown = self.find(&format!("[data-counts={form}]")).await.text().await.unwrap_or_default();
            let numbers: Vec<u64> = shown.split_whitespace().filter_map(|word| word.parse().ok()).collect();
            if numbers == [counts.0, counts.1] {
                return;
            }
            assert!(began.elapsed() < AT_MOST, "{form}: {shown}");
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// What the server says of a form: how often it was sent, and how many orders came of it.
    pub(crate) async fn counts(&self, form: &str) -> (u64, u64) {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        let request = format!("GET /counts HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address);
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let counts: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
        (counts[form]["sent"].as_u64().unwrap(), counts[form]["orders"].as_u64().unwrap())
    }

    pub(crate) async fn token(&self) -> String {
        self.find("[name=_token]").await.prop("value").await.unwrap().unwrap()
    }

    pub(crate) async fn gets_another_token(&self) {
        let (began, before) = (Instant::now(), self.token().await);
        while self.token().await == before {
            assert!(began.elapsed() < AT_MOST, "the token stays as it is");
            sleep(Duration::from_millis(50)).await;
        }
    }

    pub(crate) async fn focused(&self) -> String {
        self.browser.active_element().await.unwrap().attr("id").await.unwrap().unwrap_or_default()
    }

    /// Nothing is cut off at the side.
    pub(crate) async fn fits(&self) {
        let script = "const { scrollWidth, clientWidth } = document.documentElement; return scrollWidth - clientWidth";
        assert_eq!(self.browser.execute(script, Vec::new()).await.unwrap(), 0);
    }

    pub(crate) async fn picture(&self, name: &str) {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("token_form");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("{name}.png")), self.browser.screenshot().await.unwrap()).unwrap();
    }

    async fn button(&self, form: &str) -> Element {
        self.find(&format!("#{form}-form button")).await
    }

    async fn find(&self, css: &str) -> Element {
        self.browser.wait().at_most(AT_MOST).for_element(Locator::Css(css)).await.unwrap()
    }
}
