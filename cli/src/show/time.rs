//! Times and durations, as people read and write them.

use std::time::{Duration, SystemTime};

/// The units of durations, from the longest on: seconds, what is written, what is read.
const UNITS: [(u64, &str, &str); 4] = [(86_400, "d", "d"), (3_600, "h", "h"), (60, "min", "m"), (1, "s", "s")];

/// Returns a duration in its two largest units: `3 h 20 min`.
pub(crate) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds == 0 {
        let milliseconds = duration.as_millis();
        return if milliseconds == 0 { "0 s".into() } else { format!("{milliseconds} ms") };
    }
    let Some(first) = UNITS.iter().position(|(unit, ..)| seconds >= *unit) else { return "0 s".into() };
    let (mut left, mut parts) = (seconds, Vec::new());
    for (unit, name, _) in UNITS.iter().skip(first).take(2) {
        if left >= *unit {
            parts.push(format!("{} {name}", left / unit));
        }
        left %= unit;
    }
    parts.join(" ")
}

/// Reads a duration: `500ms`, `90s`, `15m`, `2h`, `30d`.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no duration such as 500ms, 90s, 15m, 2h or 30d");
    let split = text.find(|character: char| !character.is_ascii_digit()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(split);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    if unit == "ms" {
        return Ok(Duration::from_millis(number));
    }
    let unit = if unit == "min" { "m" } else { unit };
    let (seconds, ..) = UNITS.iter().find(|(_, _, read)| *read == unit).ok_or_else(wrong)?;
    number.checked_mul(*seconds).filter(|seconds| *seconds < 1 << 40).map(Duration::from_secs).ok_or_else(wrong)
}

/// Returns a moment in UTC: `2026-12-01 14:55:24`.
pub(crate) fn moment(time: SystemTime) -> String {
    let (date, clock, _) = parts(time);
    format!("{date} {clock}")
}

/// Returns a moment by RFC 3339, with milliseconds: `2026-12-01T14:55:24.120Z`.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    let (date, clock, milliseconds) = parts(time);
    format!("{date}T{clock}.{milliseconds:03}Z")
}

fn parts(time: SystemTime) -> (String, String, u32) {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let (days, seconds) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = date(days);
    let date = format!("{year:04}-{month:02}-{day:02}");
    (date, format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60), since.subsec_millis())
}

/// Returns year, month and day of a day since 1970. Years begin in March here, so that a leap day is their last.
fn date(days: u64) -> (u64, u64, u64) {
    // Days since 0000-03-01, in cycles of 400 years.
    let days = days + 719_468;
    let (cycle, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (cycle * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_units() {
        for (milliseconds, text) in [
            (0, "0 s"),
            (120, "120 ms"),
            (1_500, "1 s"),
            (60_000, "1 min"),
            (200_000, "3 min 20 s"),
            (7_260_000, "2 h 1 min"),
            (7_205_000, "2 h"),
            (90_000_000, "1 d 1 h"),
        ] {
            assert_eq!(duration(Duration::from_millis(milliseconds)), text);
        }
    }

    #[test]
    fn durations_are_read() {
        let seconds = ["90s", "15m", "15min", "2h", "30d"].map(|text| parse(text).unwrap().as_secs());
        assert_eq!(seconds, [90, 900, 900, 7_200, 2_592_000]);
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        for wrong in ["", "5", "s", "-5s", "5 s", "5y", "99999999999999999999s", "99999999999999d"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn moments_are_those_of_the_calendar() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00"),
            (951_782_399, "2000-02-28 23:59:59"),
            (951_782_400, "2000-02-29 00:00:00"),
            (951_868_800, "2000-03-01 00:00:00"),
            (1_764_600_924, "2025-12-01 14:55:24"),
            (4_107_542_400, "2100-03-01 00:00:00"),
        ] {
            assert_eq!(moment(at(seconds)), text);
        }
        assert_eq!(rfc3339(at(951_782_400) + Duration::from_millis(7)), "2000-02-29T00:00:00.007Z");
    }
}
