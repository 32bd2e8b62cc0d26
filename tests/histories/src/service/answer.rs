/// A part of keys whose answers do not fit between a server and a client that reads slowly.
pub(crate) const LARGE: &str = "large";

/// The text of an execution's answer. For some keys it is long.
pub(crate) fn text(execution: &str, key: &str, body: &str) -> String {
    let number = key.bytes().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let padding = match number % 8 {
        _ if key.contains(LARGE) => 200_000,
        0 => 1_000 + number % 20_000,
        _ => 0,
    };
    format!("{execution} {body} {}", ".".repeat(padding))
}

/// The execution that a text names, if the text is what it answers.
pub(crate) fn execution<'a>(answer: &'a str, key: &str, body: &str) -> Option<&'a str> {
    let execution = answer.split(' ').next()?;
    (text(execution, key, body) == answer).then_some(execution)
}

#[test]
fn an_answer_is_recognised_to_the_last_byte() {
    for key in ["wait/k1", "wait/k2", "wait/k3", "wait/k4", "wait/k5", "wait/k6", "wait/k7", "wait/k8"] {
        let answer = text("s1.1", key, "a");
        assert_eq!(execution(&answer, key, "a"), Some("s1.1"));
        assert_eq!(execution(&answer, key, "b"), None);
        assert_eq!(execution(&answer[..answer.len() - 1], key, "a"), None);
    }
}
