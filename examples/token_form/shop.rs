//! The shop: what is in front of each form, and the one handler behind all of them.

use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{
    Form, Json, Router,
    extract::{Extension, OriginalUri, Query, Request, State},
    http::{HeaderMap, StatusCode, header},
    middleware::{self, Next},
    response::{Html, IntoResponse, Redirect, Response},
    routing::{get, post},
};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;
use tower_idempotency::{
    IdempotencyLayer, MemoryStore, OnDuplicate, Tokens, WhileRunning, key, scope,
    token::{IssueError, TokenIssuer},
};

use crate::{
    page,
    words::{Language, Words},
};

/// What the handler does once the order is placed takes its time, so that there is some for a second click.
const WORK: Duration = Duration::from_secs(1);
/// A second click waits for the first one's end, and gets its word then.
const PATIENCE: Duration = Duration::from_secs(10);
/// The same order within this time counts as sent twice.
pub(crate) const SAME_WITHIN: Duration = Duration::from_secs(10);

/// What is in front of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Guard {
    Nothing,
    Content,
    Token,
    Key,
}

impl Guard {
    pub(crate) const ALL: [Self; 4] = [Self::Nothing, Self::Content, Self::Token, Self::Key];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Content => "content",
            Self::Token => "token",
            Self::Key => "key",
        }
    }
}

pub(crate) fn app(token_life: Duration) -> Router {
    let shop = Shop { tokens: Tokens::new(MemoryStore::new()).lifetime(token_life), ..Shop::default() };
    let mut app = Router::new()
        .route("/", get(choose_a_language))
        .route("/counts", get(counts))
        .route("/page.css", get(([(header::CONTENT_TYPE, "text/css")], include_str!("page.css"))))
        .route("/token.js", get(([(header::CONTENT_TYPE, "text/javascript")], include_str!("token.js"))))
        .route("/counts.js", get(([(header::CONTENT_TYPE, "text/javascript")], include_str!("counts.js"))));
    for language in Language::ALL {
        app = app.nest(&format!("/{}", language.code()), forms(&shop, language.words()));
    }
    app.layer(middleware::from_fn(know_the_visitor)).with_state(shop)
}

/// The four forms in one language. This is what the example is about.
fn forms(shop: &Shop, words: &'static Words) -> Router<Shop> {
    let visitor = || scope::extension(|Visitor(id): &Visitor| id.clone());
    let once = shop
        .idempotent
        .clone()
        .scope(visitor())
        .while_running(WhileRunning::Wait(PATIENCE))
        .render(|refused| page::refusal(words, refused.refusal()));
    let tokens = shop
        .tokens
        .layer("order")
        .principal(visitor())
        .while_running(WhileRunning::Wait(PATIENCE))
        .render(|refused| page::refusal(words, refused.refusal()));

    Router::new()
        // Whatever arrives is an order.
        .route("/nothing", post(order))
        // The same content twice within ten seconds is refused.
        .route(
            "/content",
            post(order)
                .layer(once.clone().key(key::content()).on_duplicate(OnDuplicate::Reject).retention(SAME_WITHIN)),
        )
        // One token, one order: the second submission is refused.
        .route("/token", post(order).layer(tokens.clone()))
        .route("/token/new", tokens.clone().endpoint())
        // One key, one order: the second submission gets the first one's answer.
        .route("/key", post(order).layer(once.key(key::query("key"))))
        .layer(middleware::from_fn_with_state(shop.clone(), count))
        // The page issues a token for its form.
        .route("/", get(front).layer(tokens))
        .layer(Extension(words))
}

#[derive(Clone)]
pub(crate) struct Shop {
    idempotent: IdempotencyLayer,
    tokens: Tokens,
    counts: Arc<Mutex<BTreeMap<Guard, Counts>>>,
}

impl Default for Shop {
    fn default() -> Self {
        let (store, counts) = (MemoryStore::new(), Guard::ALL.map(|guard| (guard, Counts::default())));
        Self {
            idempotent: IdempotencyLayer::new(store.clone()),
            tokens: Tokens::new(store),
            counts: Arc::new(Mutex::new(BTreeMap::from(counts))),
        }
    }
}

/// How often a form was sent, and how many orders came of that.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Counts {
    pub(crate) sent: u32,
    pub(crate) orders: u32,
}

impl Shop {
    /// Changes the counts of a form and gives them back.
    fn counted(&self, guard: Guard, change: impl FnOnce(&mut Counts)) -> Counts {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = counts.entry(guard).or_default();
        change(counts);
        *counts
    }

    pub(crate) fn counts(&self, guard: Guard) -> Counts {
        self.counted(guard, |_| ())
    }
}

/// A form as it was sent.
#[derive(Debug, Deserialize)]
pub(crate) struct Order {
    pub(crate) item: String,
    pub(crate) amount: String,
    #[serde(rename = "_token")]
    pub(crate) token: Option<String>,
}

/// Knows nothing of tokens and keys: whenever it runs, and the order is one, there is one more.
async fn order(
    State(shop): State<Shop>,
    Extension(words): Extension<&'static Words>,
    OriginalUri(uri): OriginalUri,
    Extension(guard): Extension<Guard>,
    Form(order): Form<Order>,
) -> Response {
    let Ok(1..=9) = order.amount.trim().parse::<u8>() else {
        // The token comes back with this answer, and so does the key: the corrected form is sent with the same.
        let action = uri.path_and_query().map_or(uri.path(), |uri| uri.as_str());
        return (StatusCode::UNPROCESSABLE_ENTITY, page::correction(words, guard, action, &order)).into_response();
    };
    let number = shop.counted(guard, |counts| counts.orders += 1).orders;
    sleep(WORK).await;
    Redirect::to(&format!("/{}?form={}&number={number}#{}", words.code, guard.name(), guard.name())).into_response()
}

/// The order that a page shows after it was placed.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Placed {
    pub(crate) form: Option<Guard>,
    pub(crate) number: Option<u32>,
}

async fn front(
    State(shop): State<Shop>,
    Extension(words): Extension<&'static Words>,
    Query(placed): Query<Placed>,
    tokens: TokenIssuer,
) -> Result<Html<String>, IssueError> {
    let token = tokens.issue().await?;
    Ok(page::front(words, &shop, &token, &random(), placed))
}

async fn counts(State(shop): State<Shop>) -> Json<BTreeMap<Guard, Counts>> {
    Json(Guard::ALL.map(|guard| (guard, shop.counts(guard))).into())
}

/// Outside the layers: it sees what is refused and what is replayed as well.
async fn count(State(shop): State<Shop>, mut request: Request, next: Next) -> Response {
    let path = request.uri().path().trim_matches('/').to_owned();
    if let Some(guard) = Guard::ALL.into_iter().find(|guard| guard.name() == path) {
        shop.counted(guard, |counts| counts.sent += 1);
        request.extensions_mut().insert(guard);
    }
    next.run(request).await
}

async fn choose_a_language(headers: HeaderMap) -> Redirect {
    let wanted = headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    Redirect::to(if wanted.starts_with("zh") { "/zh" } else { "/en" })
}

/// Whom a token is issued to, and whose key it is. Here a random number in a cookie; elsewhere the session.
#[derive(Clone)]
struct Visitor(String);

async fn know_the_visitor(mut request: Request, next: Next) -> Response {
    let cookies = request.headers().get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let known = cookies.flat_map(|line| line.split("; ")).find_map(|cookie| cookie.strip_prefix("visitor="));
    let (id, is_new) = known.map_or_else(|| (random(), true), |id| (id.to_owned(), false));
    request.extensions_mut().insert(Visitor(id.clone()));
    let mut response = next.run(request).await;
    let cookie = format!("visitor={id}; Path=/; HttpOnly; SameSite=Lax");
    if let (true, Ok(cookie)) = (is_new, cookie.parse()) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

fn random() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the operating system has a source of randomness");
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
