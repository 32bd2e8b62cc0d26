//! The four forms of the example `token_form` in a real browser: Chromium, without a window.
//!
//! Each test starts a `chromedriver` of its own. What they see is kept as pictures in the target folder.

mod chrome;
#[allow(unreachable_pub)]
#[path = "../../examples/token_form/page.rs"]
mod page;
#[path = "../../examples/token_form/shop.rs"]
mod shop;
mod visit;
#[path = "../../examples/token_form/words.rs"]
mod words;

use std::time::Duration;

use chrome::Options;
use visit::Visit;

/// Nobody waits for so long.
const LONG: Duration = Duration::from_secs(15 * 60);

async fn visit(options: Options) -> Visit {
    Visit::start(LONG, options).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_double_click() {
    let visit = visit(Options::default()).await;
    for (form, orders, seen) in [
        ("nothing", 2, "Order 2 was placed."),
        ("content", 1, "You have just ordered the same"),
        ("token", 1, "This form was sent before"),
        ("key", 1, "Order 1 was placed."),
    ] {
        visit.open("/en").await;
        visit.double_click(form).await;
        visit.reads(seen).await;
        visit.picture(&format!("double-click-{form}")).await;
        assert_eq!(visit.counts(form).await, (2, orders), "{form}");
    }
    // The page keeps up by itself.
    visit.open("/en").await;
    visit.shows("nothing", (2, 2)).await;
    visit.shows("key", (2, 1)).await;
    visit.picture("after-double-clicks").await;
    visit.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn back_and_submit_again() {
    let visit = visit(Options::default()).await;
    for (form, orders, seen) in [
        ("nothing", 2, "Order 2 was placed."),
        ("content", 1, "You have just ordered the same"),
        ("token", 1, "This form was sent before"),
        ("key", 1, "Order 1 was placed."),
    ] {
        visit.open("/en").await;
        visit.click(form).await;
        visit.reads("Order 1 was placed.").await;
        visit.back().await;
        visit.click(form).await;
        visit.reads(seen).await;
        assert_eq!(visit.counts(form).await, (2, orders), "{form}");
    }
    // A form that the browser brought back is not answered with another order's success.
    visit.open("/en").await;
    visit.click("key").await;
    visit.reads("Order 2 was placed.").await;
    visit.back().await;
    visit.type_amount("key", "3").await;
    visit.click("key").await;
    visit.reads("This form was sent before, with another order").await;
    visit.picture("back-with-another-order").await;
    assert_eq!(visit.counts("key").await, (4, 2));
    // From there a new form is one click away.
    visit.follow("Back to the four forms").await;
    visit.click("key").await;
    visit.reads("Order 3 was placed.").await;
    // And so it is by reloading the page.
    visit.open("/en").await;
    let token = visit.token().await;
    visit.click("token").await;
    visit.reads("Order 2 was placed.").await;
    visit.back().await;
    assert_eq!(visit.token().await, token);
    visit.reload().await;
    assert_ne!(visit.token().await, token);
    visit.click("token").await;
    visit.reads("Order 3 was placed.").await;
    visit.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn three_tabs() {
    let visit = visit(Options::default()).await;
    let mut tabs = Vec::new();
    for _ in 0..3 {
        tabs.push(visit.new_tab("/en").await);
    }
    for (n, tab) in tabs.into_iter().enumerate() {
        visit.switch_to(tab).await;
        visit.click("token").await;
        visit.reads(&format!("Order {} was placed.", n + 1)).await;
    }
    assert_eq!(visit.counts("token").await, (3, 3));
    visit.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_and_corrected() {
    let visit = visit(Options::default()).await;
    for form in ["token", "key"] {
        visit.open("/en").await;
        visit.type_amount(form, "0").await;
        visit.click(form).await;
        visit.reads("Nothing was ordered yet.").await;
        visit.picture(&format!("refused-{form}")).await;
        assert_eq!(visit.focused().await, format!("{form}-amount"));
        assert_eq!(visit.counts(form).await, (1, 0));
        visit.type_amount(form, "2").await;
        visit.click(form).await;
        visit.reads("Order 1 was placed.").await;
        visit.picture(&format!("corrected-{form}")).await;
        // The corrected form once more.
        visit.back().await;
        visit.type_amount(form, "2").await;
        visit.click(form).await;
        visit.reads(if form == "token" { "This form was sent before" } else { "Order 1 was placed." }).await;
        assert_eq!(visit.counts(form).await, (3, 1), "{form}");
    }
    visit.end().await;
}

/// Without scripts, the token that came with the page protects as well; nobody renews it.
#[tokio::test(flavor = "multi_thread")]
async fn expired_and_without_scripts() {
    let visit = Visit::start(Duration::from_secs(1), Options { scripts: false, ..Options::default() }).await;
    visit.open("/en").await;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    visit.click("token").await;
    visit.reads("This form is no longer good").await;
    visit.picture("expired").await;
    assert_eq!(visit.counts("token").await, (1, 0));
    visit.follow("Back to the four forms").await;
    visit.double_click("token").await;
    visit.reads("This form was sent before").await;
    assert_eq!(visit.counts("token").await, (3, 1));
    visit.end().await;
}

/// With them, a form that stays open gets a new token in time.
#[tokio::test(flavor = "multi_thread")]
async fn renewed_in_time() {
    let visit = Visit::start(Duration::from_secs(2), Options::default()).await;
    visit.open("/en").await;
    let first = visit.token().await;
    for _ in 0..2 {
        visit.gets_another_token().await;
    }
    assert_ne!(visit.token().await, first);
    visit.click("token").await;
    visit.reads("Order 1 was placed.").await;
    visit.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_chinese_on_a_phone_and_in_the_dark() {
    let phone = visit(Options { width: 390, height: 844, dark: true, ..Options::default() }).await;
    phone.open("/en").await;
    phone.fits().await;
    phone.picture("phone-en").await;
    phone.follow("中文").await;
    phone.reads("多点了一下").await;
    phone.fits().await;
    phone.picture("phone-zh").await;
    phone.click("token").await;
    phone.reads("订单 1 已提交。").await;
    phone.picture("phone-zh-placed").await;
    phone.back().await;
    phone.click("token").await;
    phone.reads("这张表单已经提交过").await;
    phone.fits().await;
    phone.picture("phone-zh-used").await;
    assert_eq!(phone.counts("token").await, (2, 1));
    phone.follow("返回四张表单").await;
    phone.follow("English").await;
    phone.reads("One click too many").await;
    phone.end().await;
}
