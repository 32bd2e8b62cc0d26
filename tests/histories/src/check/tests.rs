//! Histories written by hand: what is right, and what each rule finds.

use super::{Report, check, rules::*};
use crate::history::parse;

/// Checks lines, in a history with a lease of a second that is healed at 9,000.
fn judge(lines: &str) -> Report {
    check(&parse(&format!("0 lease 1000\n{lines}\n9000 healed")).unwrap())
}

/// The same for the key `MODE/k1`, which in the end is replayed, as the answer of an execution.
fn ends_with(execution: &str, lines: &str) -> Report {
    let key = lines.split_whitespace().find(|word| word.ends_with("/k1")).unwrap();
    judge(&format!("{lines}\n9020 answer s2 {key} a 9010 201 replayed {execution} -"))
}

/// A run with its effect and its answer.
const FIRST: &str =
    "100 began s0 replay/k1 a x1 1 claim 95\n150 effect x1\n200 answer s0 replay/k1 a 90 201 first x1 -";

#[test]
fn an_operation_that_runs_once_is_right() {
    let report = ends_with("x1", FIRST);
    assert_eq!((report.rules(), report.doubled.len()), (vec![], 0));
}

#[test]
fn a_run_that_failed_is_followed_by_another() {
    let report = ends_with(
        "x2",
        "100 began s0 replay/k1 a x1 1 claim 95\n150 answer s0 replay/k1 a 90 500 first - failed
         300 began s1 replay/k1 a x2 2 claim 295\n350 effect x2\n400 answer s1 replay/k1 a 290 201 first x2 -",
    );
    assert_eq!((report.rules(), report.doubled.len()), (vec![], 0));
}

/// A run of `s0` has its effect and no answer, and one of `s1` has it again at a time.
fn again(at: u64, attempt: u32, faults: &str) -> Report {
    let asked = at - 5;
    ends_with(
        "x2",
        &format!(
            "100 began s0 replay/k1 a x1 1 claim 95\n150 effect x1\n{faults}
             {at} began s1 replay/k1 a x2 {attempt} takeover {asked}\n{at} effect x2
             8000 answer s1 replay/k1 a {asked} 201 first x2 -"
        ),
    )
}

#[test]
fn an_effect_again_has_a_cause() {
    for (faults, cause) in [
        ("900 fault kill s0 200", "its process was killed"),
        ("1300 fault stop s0 200", "its process stood still"),
        ("1300 fault still s0 200", "its process stood still"),
        ("500 fault cut s0 120\n1300 fault half-open s0 800", "its link was faulty"),
        ("1300 fault store-stop store 600", "the store was away"),
        ("1300 fault still host 600", "its process stood still"),
    ] {
        let report = again(1_400, 2, faults);
        let causes: Vec<_> = report.doubled.into_iter().collect();
        assert_eq!((report.wrong.len(), causes), (0, vec![(cause, 1)]), "{faults}");
    }
}

#[test]
fn a_doubled_effect_is_found() {
    for (at, attempt, faults, why) in [
        (1_400, 2, "", "nothing happened"),
        (1_400, 2, "1300 fault stop s1 200", "to another service"),
        (1_400, 2, "500 fault cut s0 200", "too short"),
        (1_400, 2, "90 fault store-stop store 20", "before"),
        (1_400, 2, "94 fault kill s0 20", "to a process before it"),
        (800, 2, "700 fault kill s0 200", "within the lease"),
        (1_400, 1, "700 fault kill s0 200", "the same attempt"),
    ] {
        assert_eq!(again(at, attempt, faults).rules(), [DOUBLED], "{why}");
    }
}

#[test]
fn a_fault_after_the_answer_is_no_cause() {
    let second = "2100 began s1 replay/k1 a x2 2 takeover 2095\n2150 effect x2";
    let report = ends_with("x2", &format!("{FIRST}\n900 fault kill s0 300\n1900 fault cut s0 300\n{second}"));
    assert_eq!(report.rules(), [DOUBLED]);

    // While the answer was being kept, the link was cut, and the process was killed afterwards.
    let late = FIRST.replace("200 answer", "2200 answer");
    let second = second.replace("2100", "4100").replace("2095", "4095").replace("2150", "4150");
    let after =
        |began| ends_with("x2", &format!("{late}\n2300 fault cut s0 {began}\n2900 fault kill s0 2500\n{second}"));
    assert_eq!(after(160).rules(), [] as [&str; 0]);
    assert_eq!(after(2_100).rules(), [DOUBLED]);
}

#[test]
fn a_run_after_a_replay_is_found() {
    let replay = "300 answer s1 replay/k1 a 290 201 replayed x1 -";
    let kill = "900 fault kill s0 95";
    let later = "1400 began s1 replay/k1 a x2 2 takeover 1390\n1450 answer s1 replay/k1 a 1380 500 first - failed";
    assert_eq!(ends_with("x1", &format!("{FIRST}\n{replay}\n{kill}\n{later}")).rules(), [RAN_AFTER]);
}

#[test]
fn a_changed_answer_is_found() {
    let second = "1400 began s1 replay/k1 a x2 2 takeover 1390\n1410 effect x2\n\
                  1500 answer s1 replay/k1 a 1380 201 replayed x1 -";
    let rules = ends_with("x2", &format!("{FIRST}\n900 fault kill s0 95\n{second}")).rules();
    assert!(rules.contains(&CHANGED), "{rules:?}");
}

#[test]
fn an_answer_that_nobody_recorded_is_found() {
    assert_eq!(ends_with("x7", FIRST).rules(), [UNRECORDED]);
    let twice = "300 answer s0 replay/k1 a 290 201 first x1 -";
    assert_eq!(ends_with("x1", &format!("{FIRST}\n{twice}")).rules(), [FIRST_TWICE]);
    let elsewhere = FIRST.replace("answer s0", "answer s1");
    assert_eq!(ends_with("x1", &elsewhere).rules(), [GARBLED]);
    let garbled = "300 answer s1 replay/k1 a 290 201 replayed - garbled";
    assert_eq!(ends_with("x1", &format!("{FIRST}\n{garbled}")).rules(), [GARBLED]);
    let other_body = "300 answer s1 replay/k1 b 290 201 replayed x1 -";
    assert_eq!(ends_with("x1", &format!("{FIRST}\n{other_body}")).rules(), [GARBLED]);
}

#[test]
fn a_false_422_is_found() {
    let refused = "300 answer s1 replay/k1 a 290 422 first - key-reused";
    assert_eq!(ends_with("x1", &format!("{FIRST}\n{refused}")).rules(), [FALSE_422]);
    let other = "310 answer s2 replay/k1 b 280 422 first - key-reused";
    assert_eq!(ends_with("x1", &format!("{FIRST}\n{refused}\n{other}")).rules(), [] as [&str; 0]);
    let late = "510 answer s2 replay/k1 b 480 422 first - key-reused";
    assert_eq!(ends_with("x1", &format!("{FIRST}\n{refused}\n{late}")).rules(), [FALSE_422]);
    let other_caller = refused.replace("key-reused", "other-caller");
    assert_eq!(ends_with("x1", &format!("{FIRST}\n{other_caller}")).rules(), [UNKNOWN]);
}

#[test]
fn at_most_once_run_twice_is_found() {
    let first = FIRST.replace("replay/", "once/");
    let second = "1400 began s1 once/k1 a x2 2 takeover 1390\n1450 answer s1 once/k1 a 1380 500 first - failed";
    let kill = "900 fault kill s0 195";
    assert_eq!(ends_with("x1", &format!("{first}\n{kill}\n{second}")).rules(), [RAN_AFTER, TWICE]);
    let unanswered = "100 began s0 once/k1 a x1 1 claim 95\n150 effect x1\n900 fault kill s0 160";
    assert_eq!(ends_with("x2", &format!("{unanswered}\n{second}\n1420 effect x2")).rules(), [TWICE]);
}

#[test]
fn an_outcome_that_becomes_unknown_is_found() {
    let first = FIRST.replace("replay/", "once/");
    let unknown = "9020 answer s1 once/k1 a 9010 409 first - outcome-unknown";
    assert_eq!(judge(&format!("{first}\n{unknown}")).rules(), [FORGOTTEN]);
    assert_eq!(judge(&format!("{first}\n950 fault store-stop store 160\n{unknown}")).rules(), [] as [&str; 0]);
    let for_a_while = "1500 answer s1 once/k1 a 1490 409 first - outcome-unknown";
    let fault = "1450 fault store-stop store 160";
    assert_eq!(ends_with("x1", &format!("{first}\n{fault}\n{for_a_while}")).rules(), [] as [&str; 0]);
    let after_replay = "1200 answer s2 once/k1 a 1190 201 replayed x1 -";
    let rules = ends_with("x1", &format!("{first}\n{fault}\n{after_replay}\n{for_a_while}")).rules();
    assert_eq!(rules, [FORGOTTEN]);
    let elsewhere = format!("{FIRST}\n9020 answer s1 replay/k1 a 9010 409 first - outcome-unknown");
    assert_eq!(judge(&elsewhere).rules(), [UNKNOWN]);
}

#[test]
fn a_lost_effect_whose_answer_was_given_is_found() {
    assert_eq!(ends_with("x1", &FIRST.replace("150 effect x1\n", "")).rules(), [NO_EFFECT]);
}

#[test]
fn a_failover_may_lose_what_was_written_before_it() {
    let second = "1200 began s1 replay/k1 a x2 1 claim 1190\n1210 effect x2\n\
                  1250 answer s1 replay/k1 a 1180 201 first x2 -";
    let after = |failover: &str| ends_with("x2", &format!("{FIRST}\n{failover}\n{second}")).rules();
    assert_eq!(after("1100 fault failover store 120"), [] as [&str; 0]);
    assert_eq!(after("1100 fault failover store 210"), [DOUBLED], "after the answer all was confirmed");
    assert_eq!(after("90 fault failover store 50"), [DOUBLED], "before the claim");
    assert_eq!(after("1100 fault store-stop store 120"), [DOUBLED], "no failover");

    let restarted = format!("{FIRST}\n1100 fault failover store 120\n{second}").replace("x1 1 claim", "x1 2 claim");
    assert_eq!(ends_with("x2", &restarted).rules(), [] as [&str; 0], "attempts begin again");
    let once = format!("{FIRST}\n1100 fault failover store 120\n{second}").replace("replay/", "once/");
    assert_eq!(ends_with("x2", &once).rules(), [] as [&str; 0]);
    assert_eq!(ends_with("x2", &once.replace("store 120", "store 210")).rules(), [DOUBLED, TWICE]);
    let unknown = FIRST.replace("replay/", "once/") + "\n9020 answer s1 once/k1 a 9010 409 first - outcome-unknown";
    assert_eq!(judge(&format!("{unknown}\n1100 fault failover store 120")).rules(), [] as [&str; 0]);
    assert_eq!(judge(&format!("{unknown}\n1100 fault failover store 210")).rules(), [FORGOTTEN]);
    let replayed = format!("{FIRST}\n1050 answer s1 replay/k1 a 1040 201 replayed x1 -");
    let changed = format!("{replayed}\n1100 fault failover store 120\n{second}");
    assert_eq!(ends_with("x2", &changed).rules(), [] as [&str; 0]);
}

#[test]
fn a_transaction_has_one_row_and_its_answer() {
    let first = FIRST.replace("replay/", "transfer/").replace("150 effect x1\n", "");
    let row = |execution| format!("9500 row transfer/k1 {execution}");
    assert_eq!(ends_with("x1", &format!("{first}\n{}", row("x1"))).rules(), [] as [&str; 0]);
    assert_eq!(ends_with("x1", &first).rules(), [NO_EFFECT]);
    assert_eq!(ends_with("x1", &format!("{first}\n{}", row("x2"))).rules(), [NO_EFFECT]);
    // Whatever happened to the process.
    let twice = format!("{first}\n900 fault kill s0 120\n{}\n{}", row("x1"), row("x2"));
    assert_eq!(ends_with("x1", &twice).rules(), [DOUBLED]);
    let unknown = "250 answer s1 transfer/k1 a 240 503 first - commit-unknown";
    assert_eq!(ends_with("x1", &format!("{first}\n{unknown}\n{}", row("x1"))).rules(), [] as [&str; 0]);
    let elsewhere = unknown.replace("transfer", "replay");
    assert_eq!(ends_with("x1", &format!("{FIRST}\n{elsewhere}")).rules(), [UNKNOWN]);
}

#[test]
fn a_client_that_hears_nothing_is_found() {
    let broken = "300 answer s1 replay/k1 a 290 0 first - broken";
    assert_eq!(ends_with("x1", &format!("{FIRST}\n{broken}")).rules(), [SILENT]);
    assert_eq!(ends_with("x1", &format!("{FIRST}\n{broken}\n900 fault kill s1 295")).rules(), [] as [&str; 0]);
    let waits = "16000 answer s1 replay/k1 a 290 0 first - no-answer";
    assert_eq!(ends_with("x1", &format!("{FIRST}\n{waits}")).rules(), [SILENT]);
}

#[test]
fn a_key_that_stays_undecided_is_found() {
    assert_eq!(judge(FIRST).rules(), [UNDECIDED]);
    let running = "9020 answer s2 replay/k1 a 9010 409 first - request-in-progress";
    assert_eq!(judge(&format!("{FIRST}\n{running}")).rules(), [UNDECIDED]);
}
