use crate::{
    Secret,
    store::{Claim, Claimed, Mismatch, Origin},
};

use super::{
    expect::{done, grant, granted, holds, is, replayed, running, taken_over, untouched},
    lab::{Lab, bob, claim, content, key, lapsed, release, settlement},
    rule::rules,
};

rules!["secrets":
    a_record_is_compared_under_its_own_secret,
    the_secret_of_the_last_claim_is_kept,
    a_secret_that_is_not_at_hand_is_no_match
];

/// Creates a secret, and which others it accepts.
fn secret(byte: u8, accepted: &[u8]) -> Secret {
    let made = accepted.iter().try_fold(Secret::new([byte; 32]), |made, byte| Ok(made?.accept([*byte; 32])));
    match made.and_then(|made| made) {
        Ok(secret) => secret,
        Err(error) => panic!("the suite's own secret is refused: {error}"),
    }
}

fn under(secret: &Secret, claim: Claim) -> Claim {
    claim.sealed_with(secret)
}

/// A record is compared under the secret that it was made with, as long as that is at hand, in every state. What was
/// made without a secret is compared without one.
async fn a_record_is_compared_under_its_own_secret(lab: &Lab<'_>) {
    let store = lab.store().await;
    let (old, new) = (secret(1, &[]), secret(2, &[1]));
    for first in [under(&old, claim()), claim()] {
        let (key, stranger) = (key(), Claim { caller: bob(), ..claim() });
        let other = Claim { fingerprint: content(1), ..claim() };
        store.claim(&key, &first).await;
        running("a claim under another secret", &store.claim(&key, &under(&new, claim())).await, &first);
        done("settling", &store.settle(&key, &settlement(&first, b"kept")).await);
        replayed("a duplicate under another secret", &store.claim(&key, &under(&new, claim())).await, b"kept");
        let refused = store.claim(&key, &under(&new, stranger)).await;
        is("another caller under another secret", &refused, &Claimed::Mismatch(Mismatch::Caller));
        let refused = store.claim(&key, &under(&new, other)).await;
        is("another fingerprint under another secret", &refused, &Claimed::Mismatch(Mismatch::Fingerprint));
    }
}

/// A later claim leaves its own secret's number; the origin keeps the first one's.
async fn the_secret_of_the_last_claim_is_kept(lab: &Lab<'_>) {
    let store = lab.store().await;
    let (old, new) = (secret(1, &[]), secret(2, &[1]));
    for lapses in [false, true] {
        let (key, first) = (key(), under(&old, if lapses { lapsed() } else { claim() }));
        let next = under(&new, claim());
        store.claim(&key, &first).await;
        if !lapses {
            done("releasing", &store.release(&key, &release(&first)).await);
        }
        let claimed = store.claim(&key, &next).await;
        if lapses {
            taken_over("a takeover under another secret", &claimed, 2);
        } else {
            granted("a claim under another secret", &claimed, 2);
        }
        let claimed = grant("a claim under another secret", &claimed);
        is("its origin", &claimed.origin, &first.origin());
        is("whether its caller is new", &claimed.caller_is_new, &false);
        for settled in [false, true] {
            if settled {
                done("settling", &store.settle(&key, &settlement(&next, b"kept")).await);
            }
            let record = store.record("after a claim under another secret", &key).await;
            holds("after a claim under another secret", &record, &next, next.claimant);
            is("after a claim under another secret: origin", &record.origin, &first.origin());
        }
    }
}

/// A record never matches, and never runs again, if its secret or that of its origin is not available, in any state.
async fn a_secret_that_is_not_at_hand_is_no_match(lab: &Lab<'_>) {
    let store = lab.store().await;
    let (old, both, new) = (secret(1, &[]), secret(2, &[1]), secret(2, &[]));
    let (alive, over, settled, freed, began) = (key(), key(), key(), key(), key());
    let first = under(&old, claim());
    for key in [&alive, &settled, &freed, &began] {
        store.claim(key, &first).await;
    }
    store.claim(&over, &under(&old, lapsed())).await;
    done("settling", &store.settle(&settled, &settlement(&first, b"kept")).await);
    done("releasing", &store.release(&freed, &release(&first)).await);
    done("releasing", &store.release(&began, &release(&first)).await);
    let second = under(&both, claim());
    granted("a claim with both secrets", &store.claim(&began, &second).await, 2);
    is("the origin", &store.record("the origin", &began).await.origin, &Origin::new(first.caller, old.number()));
    done("releasing", &store.release(&began, &release(&second)).await);
    let cases = [
        ("a running record", alive),
        ("a lapsed record", over),
        ("a settled record", settled),
        ("a released record", freed),
        ("a released record with another origin", began),
    ];
    for (what, key) in cases {
        let before = store.record(what, &key).await;
        for (without, claim) in [("another secret", under(&new, claim())), ("no secret", claim())] {
            let what = format!("{what}, claimed with {without} at hand");
            is(&what, &store.claim(&key, &claim).await, &Claimed::Incompatible);
            untouched(&what, Some(&before), store.inspect(&key).await.as_ref());
        }
    }
}
