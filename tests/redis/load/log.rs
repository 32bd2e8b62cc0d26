//! What the processes write down, and how it is read.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    fs::{File, OpenOptions},
    io::Write,
    path::Path,
    time::{Duration, SystemTime},
};

use super::KEYS;

/// Lines of several processes in one file, each written at once: when, of which process, what, of which operation.
pub(super) struct Log(File);

impl Log {
    pub(super) fn open(path: &Path) -> Self {
        Self(OpenOptions::new().create(true).append(true).open(path).unwrap())
    }

    pub(super) fn line(&self, words: &[&str]) {
        let line = format!("{} {} {}\n", millis(now()), std::process::id(), words.join(" "));
        (&self.0).write_all(line.as_bytes()).unwrap();
    }
}

/// By the clock that all processes and servers of a machine share.
pub(super) fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap()
}

pub(super) fn millis(time: Duration) -> String {
    time.as_millis().to_string()
}

/// A run of the handler, with its effect.
#[derive(Default)]
pub(super) struct Run<'a> {
    pub(super) process: &'a str,
    pub(super) execution: &'a str,
    pub(super) attempt: u32,
    /// When the request was made. Its claim came after.
    pub(super) asked: Duration,
    /// When the claim had been granted.
    pub(super) at: Duration,
    /// When the store had confirmed that the run's answer is kept.
    pub(super) settled: Option<Duration>,
}

pub(super) struct Answer<'a> {
    process: &'a str,
    execution: &'a str,
    /// When the request was made that was answered.
    pub(super) asked: Duration,
    pub(super) at: Duration,
}

/// A request that was not answered with success.
pub(super) struct Refused {
    pub(super) status: u16,
    pub(super) at: Duration,
}

#[derive(Default)]
pub(super) struct Operation<'a> {
    pub(super) runs: Vec<Run<'a>>,
    pub(super) answers: Vec<Answer<'a>>,
    pub(super) refused: Vec<Refused>,
    lines: Vec<&'a str>,
}

#[derive(Default)]
pub(super) struct Told<'a> {
    pub(super) operations: BTreeMap<&'a str, Operation<'a>>,
    /// From when to when a process stood still.
    stood: Vec<(Duration, Duration)>,
}

impl<'a> Told<'a> {
    pub(super) fn read(log: &'a str) -> Self {
        let mut told = Self::default();
        for line in log.lines() {
            let [at, process, what, key, rest @ ..] = &*line.split(' ').collect::<Vec<_>>() else { panic!("{line}") };
            let (process, at) = (*process, time(at));
            if *what == "stood" {
                told.stood.push((time(rest[0]), at));
                continue;
            }
            let operation = told.operations.entry(key).or_default();
            operation.lines.push(line);
            match (*what, rest) {
                ("effect", [execution, attempt, asked]) => {
                    let (attempt, asked) = (attempt.parse().unwrap(), time(asked));
                    operation.runs.push(Run { process, execution, attempt, asked, at, settled: None });
                }
                ("settled", []) => {
                    // A process has one run of an operation at a time.
                    let run = operation.runs.iter_mut().rfind(|run| run.process == process);
                    run.unwrap().settled = Some(at);
                }
                ("answer", [execution, asked]) => {
                    operation.answers.push(Answer { process, execution, asked: time(asked), at });
                }
                ("refused", [status, _]) => operation.refused.push(Refused { status: status.parse().unwrap(), at }),
                ("failed", _) => {}
                _ => panic!("{line}"),
            }
        }
        told
    }

    /// Asks for the cause of each effect that came twice, and fails if that is not known.
    pub(super) fn trace(&self, cause: impl Fn(&str, &Run<'_>, &Run<'_>) -> Option<&'static str>) {
        let (mut traced, mut untraced) = (BTreeMap::<_, u32>::new(), Vec::new());
        for (key, operation) in &self.operations {
            for pair in operation.runs.windows(2) {
                match cause(key, &pair[0], &pair[1]).or_else(|| self.stood_still(&pair[0], &pair[1])) {
                    Some(cause) => *traced.entry(cause).or_default() += 1,
                    None => untraced.push(operation.lines.join("\n")),
                }
            }
        }
        println!("{} operations, effects that came again: {traced:?}", self.operations.len());
        assert!(untraced.is_empty(), "cannot be traced:\n{}", untraced.join("\n\n"));
    }

    /// A process stood still in the meantime, for about as long as the first run's lease had left.
    fn stood_still(&self, first: &Run<'_>, second: &Run<'_>) -> Option<&'static str> {
        let stood = self.stood.iter().any(|(from, to)| *to >= first.asked && *from <= second.at);
        (stood && second.at >= first.asked + super::LEASE).then_some("a process stood still")
    }

    /// Every client was answered, and two answers differ only if there were two effects.
    pub(super) fn all_is_answered(&self) {
        let processes: HashSet<_> = self.operations.values().flat_map(|of| &of.answers).map(|of| of.process).collect();
        assert_eq!(processes.len(), 2);
        assert!(self.operations.len() >= KEYS, "{}", self.operations.len());
        for (key, Operation { runs, answers, lines, .. }) in &self.operations {
            let asked: BTreeSet<_> = lines.iter().map(|line| line.split(' ').nth(1).unwrap()).collect();
            let answered: BTreeSet<_> = answers.iter().map(|answer| answer.process).collect();
            assert_eq!(
                (asked, answers.len()),
                (answered.clone(), answered.len()),
                "{key}: one answer for each who asks"
            );
            assert!(!runs.is_empty(), "{key}: an answer and no effect");
            let executions: HashSet<_> = answers.iter().map(|answer| answer.execution).collect();
            assert!(executions.iter().all(|answered| runs.iter().any(|run| run.execution == *answered)), "{key}");
            assert!(executions.len() == 1 || runs.len() > 1, "{key}: one effect, two answers");
        }
    }
}

fn time(millis: &str) -> Duration {
    Duration::from_millis(millis.parse().unwrap())
}
