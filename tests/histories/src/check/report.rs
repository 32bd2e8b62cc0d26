use std::{collections::BTreeMap, fmt};

use super::operation::Told;

/// What a history comes to.
#[derive(Debug, Default)]
pub(crate) struct Report {
    operations: usize,
    requests: usize,
    runs: usize,
    takeovers: usize,
    effects: usize,
    faults: BTreeMap<String, usize>,
    answers: BTreeMap<String, usize>,
    /// How often an operation had an effect again, by cause.
    pub(crate) doubled: BTreeMap<&'static str, usize>,
    /// What must not be: the rule, and the lines.
    pub(crate) wrong: Vec<(&'static str, String)>,
}

impl Report {
    pub(super) fn new(told: &Told<'_>) -> Self {
        let mut report = Self { operations: told.operations.len(), ..Self::default() };
        for fault in &told.faults {
            *report.faults.entry(fault.name.to_owned()).or_default() += 1;
        }
        for operation in told.operations.values() {
            report.requests += operation.answers.len();
            report.runs += operation.runs.len();
            report.takeovers += operation.runs.iter().filter(|run| run.takeover).count();
            report.effects += operation.runs.iter().filter(|run| run.effect.is_some()).count() + operation.rows.len();
            for (_, answered) in &operation.answers {
                let replayed = if answered.replayed { " replayed" } else { "" };
                let said = answered.said.as_deref().unwrap_or_default();
                let answer = format!("{}{replayed} {said}", answered.status);
                *report.answers.entry(answer.trim().to_owned()).or_default() += 1;
            }
        }
        report
    }

    pub(crate) fn complain(&mut self, rule: &'static str, key: &str, lines: &impl fmt::Display) {
        self.wrong.push((rule, format!("{key}\n{lines}")));
    }

    /// The rules that are broken, each once.
    #[cfg(test)]
    pub(super) fn rules(&self) -> Vec<&'static str> {
        let mut rules: Vec<_> = self.wrong.iter().map(|(rule, _)| *rule).collect();
        rules.sort_unstable();
        rules.dedup();
        rules
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operations, requests, runs, takeovers, effects, .. } = self;
        writeln!(
            f,
            "{operations} operations, {requests} requests, {runs} runs ({takeovers} takeovers), {effects} effects"
        )?;
        let list = |counts: &BTreeMap<String, usize>| {
            let counts = counts.iter().map(|(name, count)| format!("{count} × {name}"));
            counts.collect::<Vec<_>>().join(", ")
        };
        writeln!(f, "faults: {}", list(&self.faults))?;
        writeln!(f, "answers: {}", list(&self.answers))?;
        writeln!(f, "effects again: {}", self.doubled.values().sum::<usize>())?;
        for (cause, count) in &self.doubled {
            writeln!(f, "  {count} × {cause}")?;
        }
        writeln!(f, "wrong: {}", self.wrong.len())?;
        let mut rules = BTreeMap::<_, Vec<_>>::new();
        for (rule, lines) in &self.wrong {
            rules.entry(rule).or_default().push(lines);
        }
        // One fault of the crate may show in many operations.
        for (rule, operations) in rules {
            writeln!(f, "  {} × {rule}, such as", operations.len())?;
            operations.iter().take(3).try_for_each(|lines| writeln!(f, "    {lines}"))?;
        }
        Ok(())
    }
}
