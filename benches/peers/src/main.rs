//! Requests that are not protected, first ones and replays, on this crate and on others, beside the same router without
//! any of them, a pair at a time. `scripts/bench --peers` makes a table of what this prints.

mod crates;
mod cratestack;

use http::StatusCode;
use layer_benches::{
    mix,
    orders::{self, ask, orders, time},
    quick,
    rounds::Rounds,
    row,
};
use tokio::runtime::Runtime;
use tower::ServiceExt;

use self::crates::{CRATES, Crate};

const CREATED: StatusCode = StatusCode::CREATED;
const COUNT: u64 = 300;

fn main() {
    let runtime = orders::runtime();
    // Stores may have tasks of their own.
    let _entered = runtime.enter();
    for library in CRATES {
        assert_replays(&runtime, library);
        for live in [1, 1_000_000] {
            measure(&runtime, library, live);
        }
    }
}

/// A crate that does nothing would win.
fn assert_replays(runtime: &Runtime, library: &Crate) {
    let app = (library.protect)(orders());
    runtime.block_on(async {
        for replayed in [false, true] {
            let answer = app.clone().oneshot((library.request)(Some(7))).await.expect("an answer");
            assert_eq!(answer.status(), CREATED, "{}", library.name);
            let marked = answer.headers().keys().any(|name| name.as_str().ends_with("replayed"));
            assert_eq!(marked, replayed, "{}", library.name);
        }
    });
}

fn measure(runtime: &Runtime, library: &Crate, live: u64) {
    let (plain, app) = (orders(), (library.protect)(orders()));
    let request = library.request;
    runtime.block_on(async {
        for key in 0..live {
            assert_eq!(ask(&app, request(Some(key))).await, CREATED);
        }
    });
    let (mut new, mut turn) = (live.., 0);
    let mut kept = || {
        turn += 1;
        request(Some(mix(turn) % live))
    };
    let rounds = if quick() { 51 } else { 201 };
    println!("{}, keys that live: {live}", library.name);
    let beside = |case: &'static str, run: &mut dyn FnMut() -> f64| {
        let ask = || time(runtime, &plain, CREATED, COUNT, || request(Some(0)));
        let rounds = Rounds::new().case("plain", ask).case(case, run).run(rounds);
        rounds.show(case, "plain");
        rounds.ratio(case, "plain").median
    };
    if live == 1 {
        let pass = beside("pass", &mut || time(runtime, &app, CREATED, COUNT, || request(None)));
        row(&format!("{}/pass", library.name), pass);
    }
    let replay = beside("replay", &mut || time(runtime, &app, CREATED, COUNT, &mut kept));
    row(&format!("{}/replay@{live}", library.name), replay);
    let first = beside("first", &mut || time(runtime, &app, CREATED, COUNT, || request(new.next())));
    row(&format!("{}/first@{live}", library.name), first);
}
