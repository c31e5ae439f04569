//! Verdicts on runs.

mod bounds;
mod expectations;
mod fidelity;
mod limits;

use windtunnel_model::Span;

use super::testing::RunEvidenceFixture;
use super::*;
use crate::evidence::{FreezeTotals, OutputByteCounts, ProgramKey};

const PAIR: &str = "
nodes: {web: {run: serve, daemon: true}, client: {run: get}}
links: [{between: [web, client]}]
";

/// The daemon runs, and the client exits with `code`.
fn done(code: u8) -> RunEvidenceFixture {
    let mut case = RunEvidenceFixture::of(PAIR);
    case.start(0);
    case.exit(2, code, 3);
    case.stop();
    case
}

fn failures(case: &RunEvidenceFixture) -> Vec<String> {
    case.judge().verdict.failures
}

#[test]
fn a_run_on_time_in_which_all_went_well_is_faithful_and_passed() {
    let mut case = done(0);
    case.depart(1000, Span::from_micros(10), 0);
    let verdict = case.judge().verdict;
    assert!(verdict.faithful && verdict.passed);
    assert_eq!(verdict.exit_code, 0);
    let text = "FAITHFUL, PASSED: 0 of 1000 packets late, lateness p99 10.0us, max 10.0us";
    assert_eq!(verdict.text, text);
}

#[test]
fn a_program_that_exits_with_an_error_fails_the_run() {
    let verdict = done(3).judge().verdict;
    assert!(verdict.faithful && !verdict.passed);
    assert_eq!(verdict.exit_code, 1);
    assert_eq!(verdict.text, "FAITHFUL, FAILED: client (get): exited with 3");
}

#[test]
fn a_daemon_may_run_to_the_end_but_not_exit_with_an_error() {
    let mut case = RunEvidenceFixture::of(PAIR);
    case.start(0);
    case.exit(1, 1, 2);
    case.exit(2, 0, 3);
    assert_eq!(failures(&case), ["web (serve): exited with 1"]);
}

#[test]
fn a_program_that_never_started_fails_a_run_that_has_not_been_cut_short() {
    let mut case = RunEvidenceFixture::of(PAIR);
    let missed = ["web (serve): it never started", "client (get): it never started"];
    for (ending, failures) in [
        (RunEndReason::Finished, &missed[..]),
        (RunEndReason::Duration, &missed[..]),
        (RunEndReason::Stopped, &[]),
        (RunEndReason::Interrupted(2), &[]),
    ] {
        case.ending = ending;
        assert_eq!(self::failures(&case), failures, "{:?}", case.ending);
    }
}

#[test]
fn an_exit_that_the_file_speaks_of_is_judged_by_the_file_alone() {
    let file = format!("{PAIR}expect: [{{node: client, exit: 3}}]");
    let with_exit = |code| {
        let mut case = RunEvidenceFixture::of(&file);
        case.start(0);
        case.exit(2, code, 3);
        case.judge().verdict
    };
    let verdict = with_exit(3);
    assert!(verdict.passed, "{}", verdict.text);
    assert!(verdict.text.starts_with("FAITHFUL, PASSED: 1 of 1 expectations met, 0 of 0 packets"));
    assert_eq!(with_exit(0).failures.len(), 1);
}

#[test]
fn a_program_ended_by_an_event_or_by_the_end_of_the_run_has_not_failed() {
    let mut case = RunEvidenceFixture::of(PAIR);
    case.start(0);
    case.kill(1);
    case.exit(2, 137, 1);
    case.stop();
    case.exit(1, 143, 10);
    assert_eq!(failures(&case), [] as [&str; 0]);
}

#[test]
fn a_signal_that_ended_the_run_is_its_exit_code() {
    let mut case = done(0);
    case.ending = RunEndReason::Interrupted(2);
    let verdict = case.judge().verdict;
    assert_eq!(verdict.exit_code, 130);
    assert!(verdict.text.starts_with("INTERRUPTED, FAITHFUL, PASSED: "), "{}", verdict.text);
}

#[test]
fn why_a_run_could_not_go_on_is_the_first_failure_and_is_said_once() {
    let mut case = done(3);
    case.ending = RunEndReason::Fatal("node web has failed: gone".to_owned());
    let why = ["node web has failed: gone", "client (get): exited with 3"];
    assert_eq!(failures(&case), why);
    let text = case.judge().verdict.text;
    assert_eq!(text, "FAITHFUL, FAILED: node web has failed: gone (and 1 more)");
    // The program that failed is the reason why the run ended.
    case.ending = RunEndReason::Fatal(why[1].to_owned());
    assert_eq!(failures(&case), [why[1]]);
}

#[test]
fn a_record_that_could_not_be_written_fails_the_run() {
    let mut case = done(0);
    case.recorded.failure = Some("cannot write links.csv: disk full".to_owned());
    assert_eq!(failures(&case), ["cannot write links.csv: disk full"]);
}

#[test]
fn a_doubt_that_does_not_change_the_verdict_is_a_warning() {
    let mut case = done(0);
    case.notes = vec!["the set-up could not raise a limit".to_owned()];
    case.recorded.lost = 4;
    case.carried.failure = Some("cannot write nodes/web/stdout: disk full".to_owned());
    let key = ProgramKey { node: 1, program: 0 };
    case.carried.volumes.insert(key, OutputByteCounts { bytes: 17, discarded: 7 });
    case.tally.overloads.times = 2;
    case.tally.overloads.lasted = Span::from_millis(300);
    case.tally.overloads.furthest = Span::from_millis(2);
    case.freezes = FreezeTotals { times: 1, lasted: Span::from_millis(250) };
    let verdict = case.judge().verdict;
    assert!(verdict.passed && verdict.faithful, "{}", verdict.text);
    let expected = [
        "the set-up could not raise a limit",
        "the emulation fell behind 2 times, for 300ms together and by up to 2.00ms; all programs \
         were paused once, for 250ms",
        "4 records are missing in links.csv or events.jsonl",
        "cannot write nodes/web/stdout: disk full",
        "client (get) wrote 17 bytes, of which 7 were not kept",
    ];
    assert_eq!(verdict.warnings, expected);
}

#[test]
fn lost_machines_fail_the_run_unless_the_file_goes_on_without_them() {
    let lost = |since| LostMachine {
        host: "m2".to_owned(),
        why: "it did not answer for 5s".to_owned(),
        since,
        nodes: 1,
        stood: None,
    };
    for (policy, failed) in [("fail", true), ("continue", false)] {
        let case = RunEvidenceFixture::of(&format!("{PAIR}on-host-loss: {policy}\n"));
        let gone = [lost(Some(Span::from_secs(2)))];
        let evidence =
            RunEvidence { lost: &gone, ending: &RunEndReason::Stopped, ..case.evidence() };
        let verdict = judge(&evidence).verdict;
        assert_eq!(!verdict.passed, failed, "{}", verdict.text);
        let warning = "host m2 was lost (it did not answer for 5s): what it counted is not here";
        assert_eq!(verdict.warnings, [warning]);
    }
}

#[test]
fn the_side_of_a_cut_network_that_is_not_the_run_says_where_the_run_is() {
    let case = done(0);
    let lost =
        [LostMachine { host: "m2".into(), why: "cut".into(), since: None, nodes: 1, stood: None }];
    let ending = RunEndReason::host_lost("m2");
    let evidence = RunEvidence { lost: &lost, cut_off: true, ending: &ending, ..case.evidence() };
    let verdict = judge(&evidence).verdict;
    assert!(verdict.text.starts_with("PARTIAL, "), "{}", verdict.text);
    let failures = [
        "host m2 is lost",
        "this is not the run but a part of it that was cut off: the run is what host m2 did",
    ];
    assert_eq!(verdict.failures, failures);
}

#[test]
fn the_report_has_programs_with_their_lives_and_links_with_their_names() {
    let mut case = done(3);
    case.recorded.peak_bytes_per_s = vec![0, 1_000];
    let report = case.judge();
    let client = &report.programs[1];
    assert_eq!((client.node.as_str(), client.failed, client.starts), ("client", true, 1));
    assert_eq!((client.started_ns, client.exited_ns), (Some(0), Some(3_000_000_000)));
    assert!(report.programs[0].daemon && !report.programs[0].failed);
    let lanes: Vec<&str> = report.links.iter().map(|link| link.direction.as_str()).collect();
    assert_eq!(lanes, ["web-client", "client-web"]);
    assert_eq!(
        (report.elapsed_ns, report.ended.as_str()),
        (10_000_000_000, "every program has exited")
    );
}

#[test]
fn what_is_missing_in_a_capture_of_the_run_makes_its_evidence_incomplete() {
    let mut case = RunEvidenceFixture::of("nodes: {a: {}}");
    case.captures.push("3 of 10 packets of the capture of a are missing".to_owned());
    let verdict = case.judge().verdict;
    assert_eq!((verdict.passed, &verdict.incomplete), (true, &case.captures));
    assert!(verdict.text.contains("EVIDENCE INCOMPLETE: 3 of 10 packets"), "{}", verdict.text);
}
