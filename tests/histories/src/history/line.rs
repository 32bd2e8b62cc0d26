use std::{
    fmt::{self, Write as _},
    str::{FromStr, SplitAsciiWhitespace},
};

/// A line, and when it was written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) at: u64,
    pub(crate) line: Line,
}

/// What can be recorded. All times are in milliseconds, by the clock of [`now`](crate::time::now).
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Line {
    /// How long a claim lives without being renewed.
    Lease(u64),
    /// The process of a service serves.
    Up { service: String, clock: i64 },
    /// A fault is over that began then. Its target is a service, or `store`, or `host`.
    Fault { name: String, target: String, began: u64 },
    /// The handler runs.
    Began { service: String, key: String, body: String, execution: String, attempt: u32, takeover: bool, asked: u64 },
    /// The effect of an execution, outside the database.
    Effect { execution: String },
    /// The effect of an execution, as a row that was found in the end.
    Row { key: String, execution: String },
    /// A client has its answer, or has left.
    Answer(Answered),
    /// There are no faults from here on.
    Healed,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Answered {
    pub(crate) service: String,
    pub(crate) key: String,
    pub(crate) body: String,
    pub(crate) asked: u64,
    /// 0 without an answer.
    pub(crate) status: u16,
    /// Whether it is marked as a replay.
    pub(crate) replayed: bool,
    /// The execution that it names.
    pub(crate) execution: Option<String>,
    /// The name of the problem, or why there is no answer, or what is wrong with it.
    pub(crate) said: Option<String>,
}

/// What a key's route does: the first part of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mode {
    /// Duplicates of a running request are refused.
    Replay,
    /// They wait.
    Wait,
    /// At most once.
    Once,
    /// The effect is in the transaction of the record.
    Transfer,
}

impl Mode {
    pub(crate) const ALL: [Self; 4] = [Self::Replay, Self::Wait, Self::Once, Self::Transfer];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Replay => "replay",
            Self::Wait => "wait",
            Self::Once => "once",
            Self::Transfer => "transfer",
        }
    }

    pub(crate) fn of(key: &str) -> Option<Self> {
        let name = key.split('/').next()?;
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.at, self.line)
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lease(lease) => write!(f, "lease {lease}"),
            Self::Up { service, clock } => write!(f, "up {service} {clock}"),
            Self::Fault { name, target, began } => write!(f, "fault {name} {target} {began}"),
            Self::Began { service, key, body, execution, attempt, takeover, asked } => {
                let claim = if *takeover { "takeover" } else { "claim" };
                write!(f, "began {service} {key} {body} {execution} {attempt} {claim} {asked}")
            }
            Self::Effect { execution } => write!(f, "effect {execution}"),
            Self::Row { key, execution } => write!(f, "row {key} {execution}"),
            Self::Answer(Answered { service, key, body, asked, status, replayed, execution, said }) => {
                let mut words = format!("answer {service} {key} {body} {asked} {status} ");
                words.push_str(if *replayed { "replayed" } else { "first" });
                for word in [execution, said] {
                    write!(words, " {}", word.as_deref().unwrap_or("-"))?;
                }
                f.write_str(&words)
            }
            Self::Healed => f.write_str("healed"),
        }
    }
}

/// Reads a history.
pub(crate) fn parse(text: &str) -> Result<Vec<Entry>, String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| entry(line).ok_or_else(|| format!("not a line of a history: {line}"))).collect()
}

fn entry(line: &str) -> Option<Entry> {
    let mut words = line.split_ascii_whitespace();
    let at = next(&mut words)?;
    let line = match words.next()? {
        "lease" => Line::Lease(next(&mut words)?),
        "up" => Line::Up { service: next(&mut words)?, clock: next(&mut words)? },
        "fault" => Line::Fault { name: next(&mut words)?, target: next(&mut words)?, began: next(&mut words)? },
        "began" => Line::Began {
            service: next(&mut words)?,
            key: next(&mut words)?,
            body: next(&mut words)?,
            execution: next(&mut words)?,
            attempt: next(&mut words)?,
            takeover: words.next()? == "takeover",
            asked: next(&mut words)?,
        },
        "effect" => Line::Effect { execution: next(&mut words)? },
        "row" => Line::Row { key: next(&mut words)?, execution: next(&mut words)? },
        "answer" => Line::Answer(Answered {
            service: next(&mut words)?,
            key: next(&mut words)?,
            body: next(&mut words)?,
            asked: next(&mut words)?,
            status: next(&mut words)?,
            replayed: words.next()? == "replayed",
            execution: optional(words.next()?),
            said: optional(words.next()?),
        }),
        "healed" => Line::Healed,
        _ => return None,
    };
    words.next().is_none().then_some(Entry { at, line })
}

fn next<T: FromStr>(words: &mut SplitAsciiWhitespace<'_>) -> Option<T> {
    words.next()?.parse().ok()
}

fn optional(word: &str) -> Option<String> {
    (word != "-").then(|| word.to_owned())
}

#[test]
fn a_line_is_read_as_it_was_written() {
    let text = "1 lease 1500\n2 up s1 -300\n9 fault stop s1 4\n5 began s1 wait/k1 b s1.1 2 takeover 3\n6 effect s1.1\n\
                7 row transfer/k2 s2.1\n8 answer s1 wait/k1 b 3 201 replayed s1.1 -\n9 healed\n";
    let entries = parse(text).unwrap();
    let written: Vec<_> = entries.iter().map(ToString::to_string).collect();
    assert_eq!(written, text.lines().map(str::trim).collect::<Vec<_>>());
    assert!(parse("1 lease").is_err() && parse("x healed").is_err() && parse("1 healed twice").is_err());
}
