//! A finding, its severity, and the screen of all of them.

use serde_json::{Value, json};

use crate::{
    failure::code,
    show::{Look, plain},
};

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Severity {
    Good,
    /// The server does not say, or the user may not ask.
    Unknown,
    /// It should be set right.
    Warning,
    /// Records are lost, or the store cannot work.
    Critical,
}

impl Severity {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Unknown => "unknown",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }

    /// Returns the exit code.
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Good | Self::Unknown => 0,
            Self::Warning => code::WARNING,
            Self::Critical => code::CRITICAL,
        }
    }

    fn paint(self, text: &str, look: Look) -> String {
        match self {
            Self::Good => look.good(text),
            Self::Unknown => look.faint(text),
            Self::Warning => look.doubtful(text),
            Self::Critical => look.bad(text),
        }
    }
}

/// What a check has found.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    check: &'static str,
    severity: Severity,
    found: String,
    remedy: Option<String>,
}

impl Finding {
    pub(super) fn good(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, severity: Severity::Good, found: found.into(), remedy: None }
    }

    pub(super) fn unknown(check: &'static str, found: impl Into<String>) -> Self {
        Self { severity: Severity::Unknown, ..Self::good(check, found) }
    }

    pub(super) fn warning(check: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, remedy: Some(remedy.into()), ..Self::good(check, found) }
    }

    pub(super) fn critical(check: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { severity: Severity::Critical, ..Self::warning(check, found, remedy) }
    }

    /// Adds the server that it was found on.
    pub(super) fn on(self, server: &str) -> Self {
        Self { found: format!("{server}: {}", self.found), ..self }
    }
}

/// All findings, one for each check.
#[derive(Debug, Default)]
pub(super) struct Findings(Vec<Finding>);

impl Findings {
    /// Adds a finding. Of two of the same check, such as those of two servers, the worse one stays.
    pub(super) fn add(&mut self, finding: Finding) {
        match self.0.iter_mut().find(|other| other.check == finding.check) {
            Some(other) if finding.severity > other.severity => *other = finding,
            Some(_) => {}
            None => self.0.push(finding),
        }
    }

    pub(super) fn has(&self, check: &str) -> bool {
        self.0.iter().any(|finding| finding.check == check)
    }

    pub(super) fn is_critical(&self, check: &str) -> bool {
        self.0.iter().any(|finding| finding.check == check && finding.severity == Severity::Critical)
    }

    /// Returns the severity of the worst finding.
    pub(super) fn severity(&self) -> Severity {
        self.0.iter().map(|finding| finding.severity).max().unwrap_or(Severity::Good)
    }

    pub(super) fn json(&self, conceal: impl Fn(String) -> String) -> Value {
        let shown = |finding: &Finding| {
            json!({
                "check": finding.check,
                "severity": finding.severity.word(),
                "found": conceal(finding.found.clone()),
                "remedy": finding.remedy,
            })
        };
        self.0.iter().map(shown).collect()
    }

    /// Returns the screen: each finding on a line, and below them what to set right, the worst first.
    pub(super) fn render(&self, store: &str, look: Look) -> String {
        let widest = self.0.iter().map(|finding| finding.check.len()).max().unwrap_or(0);
        let line = |finding: &Finding| {
            let word = format!("{:8}", finding.severity.word());
            format!("{}  {:widest$}  {}\n", finding.severity.paint(&word, look), finding.check, plain(&finding.found))
        };
        let mut text = format!("{store}\n\n");
        text.extend(self.0.iter().map(line));
        let mut wrong: Vec<_> = self.0.iter().filter(|finding| finding.remedy.is_some()).collect();
        wrong.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        let remedy = |finding: &&Finding| {
            let check = format!("{:widest$}", finding.check);
            format!("  {}  {}\n", finding.severity.paint(&check, look), finding.remedy.as_deref().unwrap_or_default())
        };
        if wrong.is_empty() {
            return text + "\nNothing has to be set right.\n";
        }
        text += "\nWhat to set right:\n";
        text.extend(wrong.iter().map(remedy));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_finding_decides_and_comes_first_below() {
        let mut findings = Findings::default();
        assert_eq!(findings.severity().code(), 0);
        findings.add(Finding::good("version", "7.2"));
        findings.add(Finding::unknown("memory", "?"));
        assert_eq!(findings.severity().code(), 0);
        findings.add(Finding::warning("persistence", "none", "switch it on"));
        assert_eq!(findings.severity().code(), 5);
        findings.add(Finding::critical("eviction", "allkeys-lru", "noeviction"));
        assert_eq!(findings.severity().code(), 6);
        let expected = "redis://host\n\n\
                        ok        version      7.2\n\
                        unknown   memory       ?\n\
                        warning   persistence  none\n\
                        critical  eviction     allkeys-lru\n\
                        \nWhat to set right:\n  \
                        eviction     noeviction\n  \
                        persistence  switch it on\n";
        assert_eq!(findings.render("redis://host", Look::PLAIN), expected);
    }

    #[test]
    fn of_several_servers_the_worst_is_shown() {
        let mut findings = Findings::default();
        findings.add(Finding::good("role", "master").on("a:1"));
        findings.add(Finding::critical("role", "replica", "connect to the master").on("b:2"));
        findings.add(Finding::good("role", "master").on("c:3"));
        let shown = findings.json(|text| text);
        assert_eq!(shown.as_array().map(Vec::len), Some(1));
        assert_eq!(shown[0]["found"], "b:2: replica");
    }
}
