//! What a caller has put around its call: task-locals as long as it is there, spans for longer.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use http::Response;
use tokio::{task::yield_now, time::sleep};
use tower_idempotency::store::State;
use tracing::{Instrument, Span, info_span};

use crate::common::{
    shop::{Shop, TO_THE_CLAIM},
    steps::{Leaving, Step, Steps, polls},
};

tokio::task_local! {
    static TENANT: &'static str;
}

/// Where in its run the handler looked around, the tenant, and the name of the span.
type Sight = (&'static str, Option<&'static str>, Option<&'static str>);

fn look(here: &'static str) -> Sight {
    (here, TENANT.try_with(|tenant| *tenant).ok(), Span::current().metadata().map(tracing::Metadata::name))
}

#[tokio::test(start_paused = true)]
async fn seen_by_the_handler() {
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry());
    for client_stays in [true, false] {
        let sights = Arc::new(Mutex::new(Vec::new()));
        let seen = sights.clone();
        let shop = Shop::with(
            false,
            |layer| layer,
            move |_| {
                let seen = seen.clone();
                seen.lock().unwrap().push(look("call"));
                async move {
                    seen.lock().unwrap().push(look("begin"));
                    yield_now().await;
                    sleep(Duration::from_secs(60)).await;
                    seen.lock().unwrap().push(look("end"));
                    Response::new(Steps::new(&[Step::Data("done")]))
                }
            },
        );
        let times = if client_stays { usize::MAX } else { TO_THE_CLAIM };
        let client = async {
            let mut call = shop.call();
            polls(&mut call, times, Leaving::Waiting).await.is_some()
        };
        let client = TENANT.scope("ann", client).instrument(info_span!("request"));
        assert_eq!(client.await, client_stays);
        async { shop.background_tasks.wait().await }.instrument(info_span!("another")).await;
        let (ann, request) = (Some("ann"), Some("request"));
        let end = ("end", ann.filter(|_| client_stays), request);
        assert_eq!(*sights.lock().unwrap(), [("call", ann, request), ("begin", ann, request), end]);
        assert_eq!(shop.record().await.map(|record| record.state), Some(State::Settled));
    }
}

/// One who insists on it panics in a background task, and so its claim is kept until it lapses, instead of being released.
#[tokio::test(start_paused = true)]
async fn insisted_on_by_a_background_task() {
    let shop = Shop::with(
        false,
        |layer| layer,
        |_| async {
            yield_now().await;
            TENANT.with(|tenant| assert_eq!(*tenant, "ann"));
            Response::new(Steps::new(&[]))
        },
    );
    let mut call = shop.call();
    let client = polls(&mut call, TO_THE_CLAIM, Leaving::Waiting);
    assert!(TENANT.scope("ann", client).await.is_none());
    drop(call);
    shop.background_tasks.wait().await;
    assert_eq!(shop.record().await.map(|record| record.state), Some(State::Running));
}
