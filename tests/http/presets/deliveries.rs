//! What becomes of deliveries, platform by platform.

use std::time::Duration;

use axum::http::StatusCode;
use tower_idempotency::Keep;

use crate::presets::{platforms::PLATFORMS, route::Route};

#[tokio::test(start_paused = true)]
async fn first_delivery_redelivery_and_another() {
    for platform in PLATFORMS {
        let route = Route::new(platform);
        route.go.add_permits(2);
        let first = route.deliver("4f2c9", 1, (200, "done")).await;
        assert_eq!(first.headers()["x-key"].to_str().unwrap(), (platform.key)("4f2c9"), "{}", platform.name);
        assert_eq!(first.headers()["x-scope"], platform.scope, "{}", platform.name);
        tokio::time::advance(Duration::from_secs(6 * 24 * 60 * 60)).await;
        route.assert_done(route.deliver("4f2c9", 2, (200, "done")).await).await;
        let other = route.deliver("5a1d0", 1, (200, "done")).await;
        assert_eq!(other.headers()["x-run"], "2", "{}", platform.name);
        assert_eq!(route.runs.get(), 2, "{}", platform.name);
    }
}

#[tokio::test(start_paused = true)]
async fn concurrent_delivery() {
    for platform in PLATFORMS {
        let route = Route::new(platform);
        let (first, ()) = tokio::join!(route.deliver("4f2c9", 1, (204, "")), async {
            route.assert_again(route.deliver("4f2c9", 2, (204, "")).await).await;
            route.go.add_permits(1);
        });
        assert_eq!((first.status().as_u16(), route.runs.get()), (204, 1), "{}", platform.name);
        route.assert_done(route.deliver("4f2c9", 3, (204, "")).await).await;
    }
}

#[tokio::test(start_paused = true)]
async fn failing_handler() {
    for platform in PLATFORMS {
        let route = Route::new(platform);
        route.go.add_permits(10);
        // No platform follows a redirection: a login page has not handled anything.
        for (delivery, status) in [(1, 500), (2, 400), (3, 302), (4, 303), (5, 304)] {
            assert_eq!(route.deliver("4f2c9", delivery, (status, "")).await.status(), status, "{}", platform.name);
        }
        assert_eq!(route.deliver("4f2c9", 6, (200, "done")).await.headers()["x-run"], "6", "{}", platform.name);
        route.assert_done(route.deliver("4f2c9", 7, (200, "done")).await).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_all_the_same_is_told_as_it_was() {
    for platform in PLATFORMS {
        for status in [302, 303, 304, 400, 500] {
            let route = Route::with(platform, |layer| layer.keep(Keep::EVERYTHING));
            route.go.add_permits(1);
            assert_eq!(route.deliver("4f2c9", 1, (status, "")).await.status(), status, "{}", platform.name);
            assert_eq!(route.deliver("4f2c9", 2, (200, "done")).await.status(), status, "{}", platform.name);
            assert_eq!(route.runs.get(), 1, "{}", platform.name);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_word_of_failure_is_a_failure() {
    let failures = [
        ("alipay", &["fail", "FAILURE", " fail\t"][..]),
        (
            "wechat pay v2",
            &["<xml><return_code><![CDATA[FAIL]]></return_code></xml>", "<xml> <return_code>FAIL</return_code></xml>"],
        ),
    ];
    for (name, words) in failures {
        let route = Route::of(name);
        route.go.add_permits(10);
        for word in words {
            route.deliver("4f2c9", 1, (200, word)).await;
        }
        assert_eq!(route.runs.get(), words.len(), "{name}");
        route.deliver("4f2c9", 1, (200, route.platform.done.2)).await;
        route.assert_done(route.deliver("4f2c9", 2, (200, "")).await).await;
    }
}

#[tokio::test(start_paused = true)]
async fn missing_and_malformed_identifiers() {
    for platform in PLATFORMS {
        let route = Route::new(platform);
        for (headers, body, problem) in platform.bad {
            let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
            let answer = crate::common::see(route.send(&headers, (*body).to_owned(), (200, "")).await).await;
            assert_eq!(
                (answer.status, &*answer.problem()),
                (StatusCode::BAD_REQUEST, *problem),
                "{}: {body}",
                platform.name
            );
        }
        assert_eq!(route.runs.get(), 0, "{}", platform.name);
    }
}

#[tokio::test(start_paused = true)]
async fn merchants_of_wechat_are_kept_apart() {
    let route = Route::of("wechat pay v2");
    route.go.add_permits(2);
    let order = |merchant: &str| format!("<xml><mch_id>{merchant}</mch_id><out_trade_no>7</out_trade_no></xml>");
    for (merchant, runs) in [("100", 1), ("200", 2), ("100", 2), ("200", 2)] {
        route.send(&[], order(merchant), (200, "")).await;
        assert_eq!(route.runs.get(), runs, "{merchant}");
    }
}
