//! What a builder call sets stays until another call sets the same: setters, `.policy(..)` and presets alike.

use std::{fmt::Debug, time::Duration};

use tower_idempotency::{
    AfterCrash, ConsumerLayer, IdempotencyLayer, Keep, MemoryStore, OnDuplicate, Policy, RunPolicy, TokenLayer, Tokens,
    WhileRunning, fingerprint::Fingerprint,
};

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn requests() -> IdempotencyLayer {
    IdempotencyLayer::new(MemoryStore::new())
}

fn tokens() -> TokenLayer {
    Tokens::new(MemoryStore::new()).layer("order")
}

fn messages() -> ConsumerLayer<String> {
    let key = |order: &String| order.clone();
    ConsumerLayer::with_fingerprint(MemoryStore::new(), "payouts", key, |_| Fingerprint::OFF)
}

/// A setting of a builder and of its policy, each with a value that is shown as it says.
struct Setting<B, P> {
    call: fn(B) -> B,
    called: String,
    in_policy: fn(P) -> P,
    applied: String,
}

macro_rules! settings {
    ($builder:ty, $policy:ty: $($name:ident($called:expr, $applied:expr);)*) => {
        [$(Setting {
            call: |builder: $builder| builder.$name($called),
            called: shown(stringify!($name), &$called),
            in_policy: |policy: $policy| policy.$name($applied),
            applied: shown(stringify!($name), &$applied),
        }),*]
    };
}

macro_rules! settings_of_http {
    ($builder:ty) => {
        settings! { $builder, Policy:
            on_duplicate(OnDuplicate::Reject, OnDuplicate::PassThrough);
            while_running(WhileRunning::Wait(secs(5)), WhileRunning::Wait(secs(6)));
            keep(Keep::FINAL, Keep::EVERYTHING);
            after_crash(AfterCrash::Never, AfterCrash::RunAgain);
            retention(secs(7), secs(8));
            lease(secs(9), secs(10));
            retry_after(secs(11), secs(12));
            request_limit(13, 14);
            response_limit(15, 16);
            stream_after(secs(17), secs(18));
        }
    };
}

macro_rules! settings_of_runs {
    ($builder:ty) => {
        settings! { $builder, RunPolicy:
            wait(secs(5), secs(6));
            keep_errors(true, false);
            after_crash(AfterCrash::Never, AfterCrash::RunAgain);
            retention(secs(7), secs(8));
            lease(secs(9), secs(10));
        }
    };
}

fn shown(name: &str, value: &dyn Debug) -> String {
    match name {
        "stream_after" => format!("{name}: Some({value:?})"),
        _ => format!("{name}: {value:?}"),
    }
}

#[track_caller]
fn assert_shows(builder: &impl Debug, settings: &[&str]) {
    let text = format!("{builder:?}");
    for setting in settings {
        assert!(text.contains(setting), "no `{setting}` in {text}");
    }
}

fn the_last_call_of_a_setting_holds<B: Debug, P>(
    builder: fn() -> B,
    policy: fn() -> P,
    apply: fn(B, P) -> B,
    settings: &[Setting<B, P>],
) {
    for (here, one) in settings.iter().enumerate() {
        let called_last = (one.call)(apply(builder(), (one.in_policy)(policy())));
        assert_shows(&called_last, &[&one.called]);
        let applied_last = apply((one.call)(builder()), (one.in_policy)(policy()));
        assert_shows(&applied_last, &[&one.applied]);
        for (there, other) in settings.iter().enumerate() {
            if here != there {
                let both = apply((one.call)(builder()), (other.in_policy)(policy()));
                assert_shows(&both, &[&one.called, &other.applied]);
                let both = (one.call)(apply(builder(), (other.in_policy)(policy())));
                assert_shows(&both, &[&one.called, &other.applied]);
                let both = apply(apply(builder(), (one.in_policy)(policy())), (other.in_policy)(policy()));
                assert_shows(&both, &[&one.applied, &other.applied]);
            }
        }
    }
}

#[test]
fn on_a_layer_of_requests() {
    the_last_call_of_a_setting_holds(
        requests,
        Policy::new,
        IdempotencyLayer::policy,
        &settings_of_http!(IdempotencyLayer),
    );
}

#[test]
fn on_a_layer_of_tokens() {
    the_last_call_of_a_setting_holds(tokens, Policy::new, TokenLayer::policy, &settings_of_http!(TokenLayer));
}

#[test]
fn on_a_layer_of_messages() {
    the_last_call_of_a_setting_holds(
        messages,
        RunPolicy::new,
        ConsumerLayer::policy,
        &settings_of_runs!(ConsumerLayer<String>),
    );
}

#[cfg(feature = "json")]
#[test]
fn on_a_runner_of_functions() {
    use tower_idempotency::Once;
    let functions = || Once::new(MemoryStore::new(), "invoices");
    the_last_call_of_a_setting_holds(functions, RunPolicy::new, Once::policy, &settings_of_runs!(Once));
}

#[test]
fn a_route_has_the_lease_of_its_base() {
    let base = requests().lease(secs(10)).response_limit(100);
    let route = base.clone().policy(Policy::reject().retention(secs(3)));
    assert_shows(&route, &["lease: 10s", "response_limit: 100", "on_duplicate: Reject", "retention: 3s"]);
    assert_shows(&base, &["lease: 10s", "on_duplicate: Replay", "retention: 86400s"]);
}

#[test]
fn a_constructor_sets_what_it_means() {
    let at_most_once = ["keep: EVERYTHING", "after_crash: Never", "retention: 2592000s"];
    let set = |layer: IdempotencyLayer| layer.keep(Keep::FINAL).retention(secs(5)).lease(secs(10));
    assert_shows(&set(requests()).policy(Policy::at_most_once()), &at_most_once);
    assert_shows(&requests().policy(Policy::at_most_once()).policy(Policy::reject()), &at_most_once);
    assert_shows(&set(requests()).policy(Policy::reject()), &["keep: FINAL", "retention: 5s", "on_duplicate: Reject"]);
    let later = set(requests().policy(Policy::at_most_once()));
    assert_shows(&later, &["keep: FINAL", "after_crash: Never", "retention: 5s", "lease: 10s"]);
    let at_most_once = ["keep_errors: true", "after_crash: Never", "retention: 2592000s", "lease: 10s"];
    let messages = messages().retention(secs(5)).lease(secs(10)).policy(RunPolicy::at_most_once());
    assert_shows(&messages, &at_most_once);
}

#[test]
fn a_token_layer_rejects_until_it_is_told_otherwise() {
    assert_shows(&tokens().lease(secs(10)).policy(Policy::at_most_once()), &["on_duplicate: Reject"]);
    assert_shows(&tokens().policy(Policy::replay()), &["on_duplicate: Replay"]);
    assert_shows(&tokens().policy(Policy::window(secs(5))).policy(Policy::at_most_once()), &["on_duplicate: Reject"]);
}

/// Otherwise a route that replays would forget after a millisecond, or not compare contents.
#[test]
fn a_window_and_one_at_a_time_end_with_another_treatment() {
    let before = ["keep: FINAL", "retention: 3600s", "while_running: Wait(5s)", "any_content: false"];
    let set = || requests().keep(Keep::FINAL).retention(secs(3600)).while_running(WhileRunning::Wait(secs(5)));
    for less in [Policy::window(secs(60)), Policy::one_at_a_time()] {
        for more in [Policy::replay(), Policy::reject(), Policy::at_most_once().keep(Keep::FINAL).retention(secs(3600))]
        {
            assert_shows(&set().policy(less.clone()).policy(more), &before);
        }
        let both = requests().policy(less.clone()).policy(Policy::replay());
        assert_shows(&both, &["keep: SUCCESS", "retention: 86400s", "any_content: false", "on_duplicate: Replay"]);
    }
    let window = set().policy(Policy::window(secs(60)));
    assert_shows(&window, &["on_duplicate: Reject", "retention: 60s", "any_content: true", "keep: FINAL"]);
    assert_shows(&window.clone().retention(secs(5)), &["retention: 5s", "any_content: true"]);
    assert_shows(&window.policy(Policy::new().lease(secs(10))), &["retention: 60s", "any_content: true", "lease: 10s"]);
    let alone = set().policy(Policy::one_at_a_time());
    assert_shows(&alone, &["while_running: Refuse", "keep: NOTHING", "retention: 1ms"]);
    assert_shows(&alone.keep(Keep::EVERYTHING), &["keep: EVERYTHING", "retention: 1ms"]);
    let messages = messages().policy(RunPolicy::window(secs(60))).policy(RunPolicy::at_most_once());
    assert_shows(&messages, &["any_content: false", "retention: 2592000s"]);
}

#[test]
fn a_policy_of_every_edge_means_the_same_for_requests() {
    let run = RunPolicy::at_most_once().lease(secs(10)).wait(secs(5));
    let set = ["keep: EVERYTHING", "after_crash: Never", "lease: 10s", "while_running: Wait(5s)", "response_limit: 7"];
    assert_shows(&requests().response_limit(7).policy(run), &set);
    for (run, http) in [
        (RunPolicy::new(), Policy::new()),
        (RunPolicy::at_most_once(), Policy::at_most_once()),
        (RunPolicy::window(secs(60)), Policy::window(secs(60))),
        (RunPolicy::one_at_a_time(), Policy::one_at_a_time()),
        (RunPolicy::new().wait(Duration::ZERO), Policy::new().while_running(WhileRunning::Refuse)),
        (RunPolicy::new().keep_errors(false), Policy::new().keep(Keep::SUCCESS)),
    ] {
        let set = || requests().keep(Keep::FINAL).while_running(WhileRunning::Wait(secs(9)));
        assert_eq!(format!("{:?}", set().policy(run)), format!("{:?}", set().policy(http)));
    }
}

#[cfg(feature = "presets")]
#[test]
fn a_preset_leaves_alone_what_it_does_not_set() {
    use tower_idempotency::preset::{self, Preset};
    let set = || requests().lease(secs(10)).after_crash(AfterCrash::Never).stream_after(secs(4));
    let presets: [fn() -> Preset; 3] = [preset::stripe_api, preset::ietf_draft, preset::github_webhook_by_body];
    for preset in presets {
        assert_shows(&set().preset(preset()), &["lease: 10s", "after_crash: Never", "stream_after: Some(4s)"]);
    }
    let later = requests().preset(preset::ietf_draft()).policy(Policy::reject());
    assert_shows(&later, &["keep: EVERYTHING", "on_duplicate: Reject"]);
    let ours = Preset::new(|layer| layer.policy(Policy::at_most_once()));
    assert_shows(&set().preset(ours), &["lease: 10s", "retention: 2592000s", "after_crash: Never"]);
}
