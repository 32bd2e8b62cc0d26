//! A client's deadline, as it sends it.

use std::time::Duration;

use http::HeaderMap;

const GRPC_TIMEOUT: &str = "grpc-timeout";

/// Returns how long the client waits for the answer; `None` if it does not say so, or not as it has to.
pub(super) fn of(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(GRPC_TIMEOUT)?.as_bytes();
    let (unit, digits) = value.split_last()?;
    if !(1..=8).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
    Some(match unit {
        b'H' => Duration::from_secs(number * 60 * 60),
        b'M' => Duration::from_secs(number * 60),
        b'S' => Duration::from_secs(number),
        b'm' => Duration::from_millis(number),
        b'u' => Duration::from_micros(number),
        b'n' => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_unit() {
        let deadline =
            |text: &'static str| of(&HeaderMap::from_iter([(GRPC_TIMEOUT.parse().unwrap(), text.parse().unwrap())]));
        for (text, seconds) in [("2H", 7200.0), ("3M", 180.0), ("4S", 4.0), ("5m", 0.005), ("6u", 6e-6), ("7n", 7e-9)] {
            assert_eq!(deadline(text), Some(Duration::from_secs_f64(seconds)), "{text}");
        }
        for text in ["", "S", "1", "1s", "-1S", "123456789S", "1.5S"] {
            assert_eq!(deadline(text), None, "{text}");
        }
        assert!(deadline("99999999H").is_some());
        assert_eq!(of(&HeaderMap::new()), None);
    }
}
