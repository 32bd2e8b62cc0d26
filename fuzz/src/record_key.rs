//! The names of operations in a store.

use tower_idempotency::store::RecordKey;

use crate::rules::choices::Choices;

/// What a store hands back is read or refused, and never changed.
pub fn read_back(bytes: &[u8]) {
    if let Some(key) = RecordKey::from_bytes(bytes) {
        assert_eq!(key.as_bytes(), bytes);
        let _ = (key.route(), key.scope(), key.log_id(), format!("{key:?}"));
        // A quoted key may be blank, and can be made by a header alone.
        let can_be_made = RecordKey::new("/", None, key.key()).is_ok() || (is_blank(key.key()) && fits(key.key()));
        assert!(can_be_made, "it holds a key that cannot be made");
    }
}

/// Two ways to cut one text into three parts are two operations.
pub fn stay_apart(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let cuts = [cut(&mut choices), cut(&mut choices)];
    let text = String::from_utf8_lossy(choices.bytes(255));
    let [one, other] = cuts.map(|cut| cut.parts(&text));
    let [made, another] = [&one, &other].map(|(route, scope, key)| RecordKey::new(route, scope.as_deref(), key));
    for (parts, made) in [(&one, &made), (&other, &another)] {
        match made {
            Ok(made) => holds(made, parts),
            Err(_) => assert!(!fits(&parts.2) || is_blank(&parts.2)),
        }
    }
    if let (Ok(made), Ok(another)) = (made, another) {
        assert_eq!(made == another, one == other, "{one:?} {other:?}");
    }
}

type Parts = (String, Option<String>, String);

fn holds(made: &RecordKey, (route, scope, key): &Parts) {
    assert!(made.as_bytes().len() <= 769);
    assert_eq!(RecordKey::from_bytes(made.as_bytes()).as_ref(), Some(made));
    assert_eq!(made.key(), key);
    assert_eq!(made.scope().is_some(), scope.is_some());
    let kept = [(made.route(), &**route), (made.scope().unwrap_or_default(), scope.as_deref().unwrap_or_default())];
    for (kept, given) in kept {
        assert!(fits(kept), "{kept:?}");
        assert!(kept == given || !fits(given), "{kept:?} for {given:?}");
    }
}

fn fits(part: &str) -> bool {
    part.len() <= 255 && !part.chars().any(char::is_control)
}

fn is_blank(key: &str) -> bool {
    key.trim().is_empty()
}

/// Where to cut a text, and how often to repeat each part: only long ones are shortened.
struct Cut {
    at: [usize; 2],
    times: [usize; 2],
    scoped: bool,
}

fn cut(choices: &mut Choices<'_>) -> Cut {
    let mut at = [choices.below(64), choices.below(64)];
    at.sort_unstable();
    let mut times = || if choices.flip() { choices.below(60) } else { 1 };
    Cut { at, times: [times(), times()], scoped: choices.flip() }
}

impl Cut {
    fn parts(&self, text: &str) -> Parts {
        let [first, second] = self.at.map(|at| (0..=at.min(text.len())).rfind(|at| text.is_char_boundary(*at)));
        let (first, second) = (first.unwrap_or(0), second.unwrap_or(0));
        let scope = text[first..second].repeat(self.times[1]);
        (text[..first].repeat(self.times[0]), self.scoped.then_some(scope), text[second..].to_owned())
    }
}
