//! The dashboard and the alert rules ask for nothing that the code does not emit.

use std::{fs, path::Path};

use serde_json::Value;
use tower_idempotency::metrics::{CATALOG, MetricInfo, MetricKind};

fn read(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

/// Returns the expressions of the alert rules: each is a line.
fn alerts() -> Vec<String> {
    let rules = read("prometheus/alerts.yml");
    let lines = rules.lines().filter_map(|line| line.trim().strip_prefix("expr: "));
    lines.map(str::to_owned).collect()
}

/// Returns the expressions of the dashboard's panels, and of its variables.
fn panels() -> Vec<String> {
    fn collect(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    match value {
                        Value::String(text) if name == "expr" || name == "definition" => found.push(text.clone()),
                        value => collect(value, found),
                    }
                }
            }
            Value::Array(values) => values.iter().for_each(|value| collect(value, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    collect(&serde_json::from_str(&read("grafana/dashboard.json")).unwrap(), &mut found);
    found
}

/// Returns the words of an expression, and what stands behind each.
fn words(expression: &str) -> impl Iterator<Item = (&str, &str)> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let mut rest = expression;
    std::iter::from_fn(move || {
        let start = rest.find(|letter: char| letter.is_ascii_alphabetic() || letter == '_')?;
        let word = &rest[start..];
        let end = word.find(|letter| !is_part(letter)).unwrap_or(word.len());
        rest = &word[end..];
        Some((&word[..end], rest))
    })
}

/// Returns the metric that a series belongs to: a histogram has three kinds of series.
fn metric(series: &str) -> Option<&'static MetricInfo> {
    let of = |name: &str| CATALOG.iter().find(|metric| metric.name == name);
    let histogram = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| of(series.strip_suffix(suffix)?));
    match histogram {
        Some(found) => Some(found).filter(|found| found.kind == MetricKind::Histogram),
        None => of(series).filter(|found| found.kind != MetricKind::Histogram),
    }
}

/// Returns what an expression asks for that nobody emits.
fn mistakes(expression: &str, reasons: &str) -> Vec<String> {
    let mut mistakes = Vec::new();
    let mut labels = vec!["store", "le"];
    for (word, behind) in words(expression).filter(|(word, _)| word.starts_with("idempotency_")) {
        let Some(metric) = metric(word) else {
            mistakes.push(format!("no metric {word}"));
            continue;
        };
        labels.extend(metric.labels);
        let matchers =
            behind.strip_prefix('{').and_then(|behind| behind.split_once('}')).map_or("", |(inside, _)| inside);
        for matcher in matchers.split(',').filter(|matcher| !matcher.is_empty()) {
            let (label, values) = matcher.split_once('=').unwrap();
            let label = label.trim().trim_end_matches('!');
            if label != "store" && !metric.labels.contains(&label) {
                mistakes.push(format!("{word} has no label {label}"));
            }
            let is_last = metric.labels.last() == Some(&label);
            for value in values.trim_start_matches('~').trim_matches('"').split('|').filter(|_| is_last) {
                let is_known = if metric.name == "idempotency_refusals_total" {
                    reasons.contains(&format!("`{value}`"))
                } else {
                    metric.values.is_empty() || metric.values.contains(&value)
                };
                if !is_known && !value.starts_with('$') {
                    mistakes.push(format!("{word}: {label} is never {value}"));
                }
            }
        }
    }
    for grouping in expression.split("by (").skip(1).chain(expression.split("on (").skip(1)) {
        for label in grouping.split(')').next().unwrap().split(',').map(str::trim) {
            if !labels.contains(&label) {
                mistakes.push(format!("nothing in {expression} has the label {label}"));
            }
        }
    }
    mistakes
}

#[test]
fn the_dashboard_and_the_alerts_ask_for_what_is_emitted() {
    let reasons = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/refusals.md")).unwrap();
    let (alerts, panels) = (alerts(), panels());
    assert!(alerts.len() >= 10 && panels.len() >= 12, "{} alerts, {} expressions", alerts.len(), panels.len());
    let mistakes: Vec<_> = alerts.iter().chain(&panels).flat_map(|expression| mistakes(expression, &reasons)).collect();
    assert!(mistakes.is_empty(), "{mistakes:#?}");
}

#[test]
fn a_mistake_is_found() {
    for expression in [
        "idempotency_request_total",
        "idempotency_claim_duration_seconds",
        "idempotency_requests_total{path=\"/orders\"}",
        "idempotency_requests_total{outcome=\"repeated\"}",
        "idempotency_refusals_total{reason=\"never-heard-of\"}",
        "sum by (key) (idempotency_requests_total)",
    ] {
        assert_eq!(mistakes(expression, "").len(), 1, "{expression}");
    }
}

/// Each alert says what to do: a section of the guide with its name.
#[test]
fn each_alert_has_a_section_in_the_guide() {
    let guide = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operating.md")).unwrap();
    let rules = read("prometheus/alerts.yml");
    for name in rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        assert!(guide.contains(&format!("`{name}`")), "{name}");
    }
}
