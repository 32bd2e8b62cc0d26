//! How things are shown: to people as text, to scripts as JSON.

pub(crate) mod record;
pub(crate) mod table;
pub(crate) mod time;

use std::{env, io::IsTerminal};

use serde_json::Value;

/// What a verb answers, in both forms.
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) json: Value,
    /// The exit code.
    pub(crate) code: u8,
}

impl Answer {
    pub(crate) fn new(text: impl Into<String>, json: Value) -> Self {
        let mut text = text.into();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        Self { text, json, code: 0 }
    }
}

/// Whether there are colours: on a terminal, unless `NO_COLOR` is set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    colours: bool,
}

impl Look {
    pub(crate) fn new(output: &impl IsTerminal) -> Self {
        let set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self { colours: output.is_terminal() && !set("NO_COLOR") && !dumb }
    }

    /// Without colours.
    #[cfg(test)]
    pub(crate) const PLAIN: Self = Self { colours: false };

    pub(crate) fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub(crate) fn doubtful(self, text: &str) -> String {
        self.paint("33", text)
    }

    pub(crate) fn bad(self, text: &str) -> String {
        self.paint("1;31", text)
    }

    /// What is beside the matter.
    pub(crate) fn faint(self, text: &str) -> String {
        self.paint("2", text)
    }

    fn paint(self, colour: &str, text: &str) -> String {
        if self.colours { format!("\u{1b}[{colour}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// Returns bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;

    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Reads hexadecimal digits.
pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<_>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    digits.chunks(2).map(|pair| u8::try_from(pair[0] * 16 + pair[1]).ok()).collect()
}

/// Returns a text that cannot move the cursor or pose as another line.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { '\u{fffd}' } else { character }).collect()
}

/// Returns a number with its noun, in the plural if there are several.
pub(crate) fn count(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", thousands(number), if number == 1 { "" } else { "s" })
}

/// Returns a number with commas between its thousands.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_read_as_they_were_written() {
        assert_eq!(hex(&[0, 0xff, 0x1a]), "00ff1a");
        assert_eq!(unhex("00FF1a"), Some(vec![0, 0xff, 0x1a]));
        assert_eq!((unhex("0"), unhex("zz"), unhex("+1")), (None, None, None));
    }

    #[test]
    fn numbers_and_nouns() {
        let counted = [0, 1, 2, 999, 1_000, 1_234_567].map(|number| count(number, "record"));
        assert_eq!(
            counted,
            ["0 records", "1 record", "2 records", "999 records", "1,000 records", "1,234,567 records"]
        );
    }

    #[test]
    fn without_colours_a_text_stays_as_it_is() {
        let look = Look::PLAIN;
        assert_eq!([look.good("a"), look.doubtful("a"), look.bad("a"), look.faint("a")], ["a"; 4]);
        assert_eq!(Look { colours: true }.good("a"), "\u{1b}[32ma\u{1b}[0m");
    }
}
