//! What holds for stored tokens and for signed ones, on every store.

use tower_idempotency::{
    OnDuplicate, TokenLayer,
    store::{Filter, State},
};

use crate::{
    common::Seen,
    tokens::fixture::{Fixture, Kind, LIFE, MULTIPART, Shop, URLENCODED, form, part, submission},
};

pub(crate) async fn each_is_good_once_and_for_its_life(fixture: Fixture) {
    let shop = fixture.shop(|layer| layer);
    let [one, two, three] = [shop.token(None).await, shop.token(None).await, shop.token(None).await];
    for token in [&one, &two] {
        assert_eq!(shop.submit(token, None, "").await.status, 201);
        assert_eq!(shop.submit(token, None, "").await.problem(), "token-used");
    }
    fixture.pass(LIFE).await;
    assert_eq!(shop.submit(&three, None, "").await.problem(), "token-invalid");
    // A signed one that has expired need not be remembered, and is refused without a look at the store.
    let used = if fixture.kind == Kind::Stored { "token-used" } else { "token-invalid" };
    assert_eq!(shop.submit(&one, None, "").await.problem(), used);
    assert_eq!(shop.runs.get(), 2);
}

pub(crate) async fn what_was_never_issued_is_never_accepted(fixture: Fixture) {
    let shop = fixture.shop(|layer| layer);
    let others = shop.tokens.issue("refund", None).await.unwrap();
    let good = shop.token(None).await;
    let forged = format!("{}{}", &good[..good.len() - 1], if good.ends_with('A') { 'B' } else { 'A' });
    for token in [&"x".repeat(43), &"x".repeat(108), "x", others.as_str(), &forged, &good[1..]] {
        assert_eq!(shop.submit(token, None, "").await.problem(), "token-invalid");
    }
    // Text that cannot be a token is refused as well.
    for token in ["", "a b", "a,b", &"x".repeat(10_000)] {
        assert_eq!(shop.submit(token, None, "").await.problem(), "token-invalid", "{token}");
    }
    assert_eq!(shop.runs.get(), 0);
    assert_eq!(shop.submit(&good, None, "").await.status, 201);
}

pub(crate) async fn a_stranger_neither_succeeds_nor_spends_it(fixture: Fixture) {
    let shop = fixture.shop(|layer| layer);
    let (anns, nobodys) = (shop.token(Some("ann")).await, shop.token(None).await);
    for user in [Some("bob"), Some("Ann"), None] {
        assert_eq!(shop.submit(&anns, user, "").await.problem(), "token-invalid", "{user:?}");
    }
    assert_eq!(shop.submit(&nobodys, Some("ann"), "").await.problem(), "token-invalid");
    assert_eq!(shop.submit(&anns, Some("ann"), "").await.status, 201);
    assert_eq!(shop.submit(&anns, Some("bob"), "").await.problem(), "token-invalid", "not even that it was used");
    assert_eq!(shop.submit(&nobodys, None, "").await.status, 201);
}

pub(crate) async fn a_failure_gives_it_back_with_its_first_expiry(fixture: Fixture) {
    let shop = fixture.shop(|layer| layer);
    let token = shop.token(None).await;
    assert_eq!(shop.submit(&token, None, "bad").await.status, 422);
    assert_eq!(shop.submit(&token, None, "corrected").await.status, 201);
    assert_eq!(shop.submit(&token, None, "corrected").await.problem(), "token-used");
    let token = shop.token(None).await;
    fixture.pass(LIFE / 3).await;
    assert_eq!(shop.submit(&token, None, "bad").await.status, 422);
    assert_eq!(shop.submit(&token, None, "bad again").await.status, 422);
    fixture.pass(LIFE * 2 / 3).await;
    assert_eq!(shop.submit(&token, None, "good").await.problem(), "token-invalid");
}

/// Nothing began: nobody has claimed it, and no successor takes its place.
pub(crate) async fn an_attempt_that_is_undone_leaves_it_as_it_was(fixture: Fixture) {
    for adjust in [(|layer| layer) as fn(TokenLayer) -> TokenLayer, TokenLayer::rotate_on_failure] {
        let shop = fixture.shop(adjust);
        for status in ["401", "407", "429"] {
            let token = shop.token(None).await;
            let (seen, headers) = shop.send_for_headers(submission(&token, status)).await;
            assert_eq!(seen.status.as_str(), status);
            assert!(!headers.contains_key("x-submit-token"), "{status}");
            for entry in fixture.store.list(Filter::All, None, 99).await.unwrap().entries {
                assert!(matches!(entry.record.state, State::Issued | State::Settled), "{status}: {entry:?}");
            }
            assert_eq!(shop.submit(&token, None, "good").await.status, 201, "{status}");
            assert_eq!(shop.submit(&token, None, "good").await.problem(), "token-used");
        }
        let token = shop.token(None).await;
        fixture.pass(LIFE / 3).await;
        assert_eq!(shop.submit(&token, None, "429").await.status, 429);
        fixture.pass(LIFE * 2 / 3).await;
        assert_eq!(shop.submit(&token, None, "good").await.problem(), "token-invalid");
    }
}

pub(crate) async fn it_may_be_in_a_form(fixture: Fixture) {
    let shop = fixture.shop(|layer| layer);
    let urlencoded = |token: &str| form(URLENCODED, format!("item=7&_token={token}"));
    let multipart = |token: &str| form(MULTIPART, part("item", "7") + &part("_token", token) + "--b--\r\n");
    let token = shop.token(None).await;
    assert_eq!(shop.send(urlencoded(&token)).await.status, 201);
    assert_eq!(shop.send(multipart(&token)).await.problem(), "token-used");
    let token = shop.token(None).await;
    assert_eq!(shop.send(multipart(&token)).await.status, 201);
    // The header is looked at first.
    let token = shop.token(None).await;
    let mut both = urlencoded("another");
    both.headers_mut().insert("X-Submit-Token", token.parse().unwrap());
    assert_eq!(shop.send(both).await.status, 201);
}

pub(crate) async fn the_same_is_replayed_and_nothing_else(fixture: Fixture) {
    let shop = fixture.shop(|layer| layer.on_duplicate(OnDuplicate::Replay));
    let token = shop.token(None).await;
    assert_eq!(shop.submit(&token, None, "bad").await, Seen::first(422, "run 1"));
    assert_eq!(shop.submit(&token, None, "tea").await, Seen::first(201, "run 2"));
    assert_eq!(shop.submit(&token, None, "tea").await, Seen::replay(201, "run 2"));
    assert_eq!(shop.submit(&token, None, "coffee").await.problem(), "key-reused");
    assert_eq!(shop.runs.get(), 2);
}

/// Two processes, twenty submissions.
pub(crate) async fn one_of_many_gets_through(fixture: Fixture) {
    let shops = [fixture.shop(|layer| layer), fixture.shop(|layer| layer)];
    let token = shops[0].token(None).await;
    let submissions = (0..20).map(|n: usize| shops[n % 2].submit(&token, None, ""));
    let mut statuses: Vec<_> =
        futures_util::future::join_all(submissions).await.iter().map(|seen| seen.status.as_u16()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [&[201][..], &[409; 19]].concat());
    assert_eq!(shops[0].runs.get() + shops[1].runs.get(), 1);
}

/// The corrected form is sent with the new token, and the old one orders nothing, whatever the browser brings back.
pub(crate) async fn a_failed_answer_may_bring_another(fixture: Fixture) {
    let shop = fixture.shop(TokenLayer::rotate_on_failure);
    let first = shop.token(Some("ann")).await;
    assert_eq!(shop.submit(&first, None, "bad").await.problem(), "token-invalid");
    let (seen, second) = failed(&shop, &first, "bad").await;
    assert_eq!(seen, Seen::first(422, "run 1"));
    assert_ne!(first, second);
    // The answer was lost on its way, or the page came back: the same answer, the same new token.
    for body in ["bad", "corrected"] {
        assert_eq!(failed(&shop, &first, body).await, (Seen::replay(422, "run 1"), second.clone()));
    }
    // A reader of the store finds neither.
    for entry in fixture.store.list(Filter::All, None, 10).await.unwrap().entries {
        let kept = format!("{entry:?} {:?}", entry.record.payload);
        assert!(!kept.contains(&first) && !kept.contains(&second), "{kept}");
    }
    // It is for whom the first one was for, and may fail as well.
    assert_eq!(shop.submit(&second, None, "corrected").await.problem(), "token-invalid");
    let (seen, third) = failed(&shop, &second, "bad").await;
    assert_eq!(seen, Seen::first(422, "run 2"));
    assert_eq!(shop.submit(&third, Some("ann"), "corrected").await, Seen::first(201, "run 3"));
    assert_eq!(shop.submit(&third, Some("ann"), "corrected").await.problem(), "token-used");
    assert_eq!(failed(&shop, &second, "corrected").await, (Seen::replay(422, "run 2"), third));
    assert_eq!(failed(&shop, &first, "corrected").await.0, Seen::replay(422, "run 1"));
    assert_eq!(shop.runs.get(), 3);
}

async fn failed(shop: &Shop, token: &str, body: &str) -> (Seen, String) {
    let mut request = submission(token, body);
    request.headers_mut().insert("X-User", "ann".parse().unwrap());
    let (seen, headers) = shop.send_for_headers(request).await;
    assert_eq!(headers["cache-control"], "no-store");
    (seen, headers["x-submit-token"].to_str().unwrap().to_owned())
}
