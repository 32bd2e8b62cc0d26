//! When an answer was kept, and until when: as bytes in a kept answer, and as fields of an answer.
//!
//! The times are those of this process's clock, for information only. No decision about a record depends on them:
//! expiry is the store's, by the store's clock.
//!
//! The date is formatted here, in the one form that HTTP permits for sending, so that no crate for dates is needed. It
//! is formatted only if the layer sends one of the two fields.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderName, HeaderValue};

use crate::{http::Exchange, value::millis};

/// When a request ended, and how long its answer is kept, if that is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// When the answer was kept, in milliseconds since 1970.
    completed: u64,
    retention: u64,
}

impl Times {
    /// Milliseconds since 1970, and milliseconds; zero stands for what is not known.
    pub(crate) const BYTES: usize = 16;

    /// Returns the times of an answer that is kept now.
    pub(crate) fn now(retention: Option<Duration>) -> Self {
        let completed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { completed: millis(completed), retention: retention.map_or(0, millis) }
    }

    /// Returns the times as they are in a kept answer.
    pub(crate) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.completed.to_be_bytes());
        bytes[8..].copy_from_slice(&self.retention.to_be_bytes());
        bytes
    }

    /// Reads the times of a kept answer.
    pub(crate) fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let [completed, retention] = [0, 8].map(|from| {
            let mut number = [0; 8];
            number.copy_from_slice(&bytes[from..from + 8]);
            u64::from_be_bytes(number)
        });
        Self { completed, retention }
    }

    /// Returns when the answer was kept; `None` if its record does not say.
    pub(crate) fn completed(self) -> Option<SystemTime> {
        time(self.completed)
    }

    /// Returns until when the answer is kept; `None` if its record does not say.
    pub(crate) fn expires(self) -> Option<SystemTime> {
        time(self.completed)?.checked_add(Duration::from_millis(Some(self.retention).filter(|&millis| millis > 0)?))
    }
}

/// Converts milliseconds since 1970. Zero stands for an unknown time.
fn time(millis: u64) -> Option<SystemTime> {
    Some(millis).filter(|&millis| millis > 0).and_then(|millis| UNIX_EPOCH.checked_add(Duration::from_millis(millis)))
}

impl Exchange {
    /// The fields that say when an answer was kept, and until when, if the layer is to send them.
    pub(crate) fn time_fields(
        &self,
        completed: Option<SystemTime>,
        expires: Option<SystemTime>,
    ) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let field = |name: &Option<HeaderName>, time: Option<SystemTime>| {
            // A date is made for those who ask for it only.
            let name = name.clone()?;
            Some((name, HeaderValue::from_str(&http_date(time?)?).ok()?))
        };
        let fields = [field(&self.completed_header, completed), field(&self.expires_header, expires)];
        fields.into_iter().flatten()
    }
}

/// Returns how long a window lasts from now on; never longer than the window itself, whatever the clocks say.
///
/// It is for `Retry-After`, so it is bounded by the window: two processes may have clocks that differ.
pub(crate) fn left_until(expires: Option<SystemTime>, window: Duration) -> Duration {
    let left = expires.and_then(|expires| expires.duration_since(SystemTime::now()).ok());
    left.unwrap_or(if expires.is_some() { Duration::ZERO } else { window }).min(window)
}

/// A time as HTTP writes it (IMF-fixdate, RFC 9110, section 5.6.7); `None` past the year 9999.
fn http_date(time: SystemTime) -> Option<String> {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let seconds = time.duration_since(UNIX_EPOCH).ok()?.as_secs();
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let (mut year, mut left) = (1970_u64, days);
    while left >= days_of_year(year) {
        left -= days_of_year(year);
        year += 1;
        if year > 9999 {
            return None;
        }
    }
    let mut month = 0;
    while left >= days_of_month(year, month) {
        left -= days_of_month(year, month);
        month += 1;
    }
    let (day_name, month_name) = (DAYS[usize::try_from(days % 7).ok()?], MONTHS[month]);
    let (hours, minutes, seconds) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    Some(format!("{day_name}, {:02} {month_name} {year:04} {hours:02}:{minutes:02}:{seconds:02} GMT", left + 1))
}

/// Returns whether the year has a 29 February.
fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_of_year(year: u64) -> u64 {
    if is_leap(year) { 366 } else { 365 }
}

/// `month` counts from 0.
fn days_of_month(year: u64, month: usize) -> u64 {
    const DAYS: [u64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    DAYS[month] + u64::from(month == 1 && is_leap(year))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_as_http_writes_them() {
        for (seconds, date) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_399, "Mon, 28 Feb 2000 23:59:59 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
            (253_402_300_799, "Fri, 31 Dec 9999 23:59:59 GMT"),
        ] {
            assert_eq!(http_date(UNIX_EPOCH + Duration::from_secs(seconds)).as_deref(), Some(date));
        }
        assert_eq!(http_date(UNIX_EPOCH + Duration::from_secs(253_402_300_800)), None);
    }

    #[test]
    fn times_come_back() {
        let hour = Duration::from_secs(3600);
        let times = Times::from_bytes(Times::now(Some(hour)).to_bytes());
        let completed = times.completed().unwrap();
        assert!(SystemTime::now().duration_since(completed).unwrap() < hour);
        assert_eq!(times.expires().unwrap().duration_since(completed).unwrap(), hour);
        assert_eq!(Times::now(None).expires(), None);
        assert_eq!(Times::from_bytes([0; 16]).completed(), None);
        // Whatever the bytes are, nothing panics.
        let _ = Times::from_bytes([255; 16]).expires().and_then(http_date);
    }
}
