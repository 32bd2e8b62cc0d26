//! Two operations never share a name.

use axum::http::HeaderName;
use proptest::{collection::vec, prelude::*};
use tower_idempotency::{scope, store::RecordKey};

use crate::hostile_input::probe::{KEY, Outcome, cases, layer, outcome, post};

type Parts = (String, Option<String>, String);

fn part() -> impl Strategy<Value = String> {
    prop_oneof!["[ab/:#|\\x00-\\x02]{0,6}", any::<String>(), "[aé]{250,260}", "[a-b]{300}"]
}

fn parts() -> impl Strategy<Value = Parts> {
    (part(), prop::option::of(part()), part())
}

/// The same text, cut into parts at other places.
fn moved() -> impl Strategy<Value = (Parts, Parts)> {
    ("[ab/:#|]{3,12}", any::<[prop::sample::Index; 4]>(), any::<[bool; 2]>()).prop_map(|(text, cuts, scoped)| {
        let cut = |one: prop::sample::Index, other: prop::sample::Index, scoped: bool| {
            let (one, other) = (one.index(text.len()), other.index(text.len()));
            let (from, to) = (one.min(other), one.max(other));
            let scope = (scoped || from < to).then(|| text[from..to].to_owned());
            (text[..from].to_owned(), scope, text[to..].to_owned())
        };
        (cut(cuts[0], cuts[1], scoped[0]), cut(cuts[2], cuts[3], scoped[1]))
    })
}

fn name((route, scope, key): &Parts) -> Option<RecordKey> {
    RecordKey::new(route, scope.as_deref(), key).ok()
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn other_parts_make_another_name((one, other) in prop_oneof![(parts(), parts()), moved()]) {
        if let (Some(a), Some(b)) = (name(&one), name(&other)) {
            prop_assert_eq!(a == b, one == other, "{:?} {:?}", one, other);
            prop_assert_eq!(a.as_bytes() == b.as_bytes(), one == other);
        }
    }

    #[test]
    fn a_name_can_be_read_back(parts in parts()) {
        if let Some(name) = name(&parts) {
            prop_assert!(name.as_bytes().len() <= 769);
            prop_assert_eq!(name.key(), &parts.2);
            prop_assert_eq!(name.scope().is_some(), parts.1.is_some());
            prop_assert_eq!(RecordKey::from_bytes(name.as_bytes()), Some(name));
        }
    }

    #[test]
    fn bytes_are_a_name_or_none(bytes in vec(any::<u8>(), 0..64), lengths in any::<[u8; 3]>(), flags in 0..8_u8) {
        let head = [flags, lengths[0] % 8, lengths[1] % 8, lengths[2] % 8];
        let fitting = bytes.iter().copied().take(head[1..].iter().map(|&n| usize::from(n)).sum());
        for bytes in [bytes.clone(), head.into_iter().chain(fitting).collect()] {
            if let Some(name) = RecordKey::from_bytes(&bytes) {
                prop_assert_eq!(name.as_bytes(), &bytes[..]);
                prop_assert!(name.route().len() + name.scope().unwrap_or_default().len() + name.key().len() + 4 == bytes.len());
            }
        }
    }

    #[test]
    fn requests_are_one_operation_only_where_everything_is_the_same(
        one in ("/[a-b/:]{0,4}", "[ab:/]{1,4}", "[ab:/]{1,4}"),
        other in ("/[a-b/:]{0,4}", "[ab:/]{1,4}", "[ab:/]{1,4}"),
    ) {
        let run = |(path, user, key): &(String, String, String)| {
            let fields = [(HeaderName::from_static("x-user"), user.as_bytes()), (KEY, key.as_bytes())];
            outcome(&layer().scope(scope::header("X-User")), post(path, &fields, "").unwrap())
        };
        let (a, b) = (run(&one), run(&other));
        prop_assert!(matches!((&a, &b), (Outcome::Ran(_), Outcome::Ran(_))));
        prop_assert_eq!(a == b, one == other);
    }
}
