//! The document, read back by a small reader of well-formed XML.

use super::*;
use crate::report::{MachineReport, RunVerdict, SchedulePunctuality};

fn report() -> RunReport {
    let expectation = |line, met| ExpectationResult {
        line,
        about: "node a log /<\"x\" & 'y'>/".into(),
        asked: "at least 1 lines".into(),
        seen: "no\u{1b}[2Jline\n".into(),
        met,
        look: "nodes/a/stdout".into(),
    };
    let program = |node: &str, failed| ProgramReport {
        node: node.into(),
        program: 0,
        argv: vec!["run".into(), "<it>".into()],
        daemon: false,
        failed,
        starts: 1,
        started_ns: Some(500_000_000),
        ready_ns: None,
        exited_ns: Some(2_000_000_000),
        exit: Some(3),
        ended: "exited with 3".into(),
        output_bytes: 0,
        output_discarded_bytes: 0,
    };
    RunReport {
        windtunnel: "0.1.0".into(),
        name: "v1.2".into(),
        seed: 7,
        plan_hash: "ab".into(),
        began_unix_s: 1_795_232_880,
        kernel: "6".into(),
        elapsed_ns: 4_250_000_000,
        setup_ns: 0,
        ended: "every program has exited".into(),
        verdict: RunVerdict {
            faithful: false,
            disturbed: false,
            passed: false,
            exit_code: 1,
            text: "NOT FAITHFUL".into(),
            unfaithful: vec!["late".into()],
            failures: vec!["a (run): exited with 3".into()],
            incomplete: Vec::new(),
            warnings: Vec::new(),
        },
        partial: false,
        attempts: Vec::new(),
        lost: Vec::new(),
        lateness: crate::lateness::LatenessSummary::default(),
        planned: SchedulePunctuality::default(),
        machine: MachineReport::default(),
        hosts: Vec::new(),
        programs: vec![program("a", true), program("b", false)],
        limits: Vec::new(),
        received: Vec::new(),
        services: Vec::new(),
        replicas_watched: None,
        internet: None,
        shares: Vec::new(),
        bounds: Vec::new(),
        expectations: vec![expectation(4, false), expectation(5, true)],
        links: Vec::new(),
        routers: Vec::new(),
        records: None,
    }
}

/// The tags in order: name, attributes as written, and whether it is an end; panics where they do
/// not nest.
fn tags(document: &str) -> Vec<(String, String)> {
    let (mut open, mut seen): (Vec<String>, Vec<(String, String)>) = (Vec::new(), Vec::new());
    let mut rest = document.strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n").unwrap();
    while let Some(start) = rest.find('<') {
        assert!(!rest[..start].contains('>'), "a bare > in {rest}");
        let end = rest[start..].find('>').unwrap() + start;
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name));
            continue;
        }
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        let name = name.trim_end_matches('/');
        seen.push((name.to_owned(), attributes.trim_end_matches('/').to_owned()));
        if !tag.ends_with('/') {
            open.push(name.to_owned());
        }
    }
    assert!(open.is_empty(), "{open:?} is not closed");
    seen
}

#[test]
fn the_document_has_the_shape_that_ci_systems_read() {
    let document = text(&report());
    let tags = tags(&document);
    let names: Vec<&str> = tags.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names[..3], ["testsuites", "testsuite", "properties"]);
    let counts = "tests=\"6\" failures=\"3\" errors=\"0\" skipped=\"0\" time=\"4.250\"";
    assert_eq!(tags[0].1, format!("name=\"windtunnel\" {counts}"));
    assert_eq!(tags[1].1, format!("name=\"v1.2\" {counts} timestamp=\"2026-11-21T03:48:00\""));
    let count = |wanted: &str| names.iter().filter(|name| **name == wanted).count();
    assert_eq!((count("testcase"), count("failure"), count("error")), (6, 3, 0));
    for (name, attributes) in &tags {
        if name == "testcase" {
            let keys = ["classname=\"v1_2.", " name=\"", " time=\""];
            assert!(keys.iter().all(|key| attributes.contains(key)), "{attributes}");
        }
    }
    assert!(document.contains("time=\"1.500\""), "the program ran for 1.5 s: {document}");
}

#[test]
fn a_failed_expectation_says_what_was_asked_and_seen_and_where_to_look() {
    let document = text(&report());
    let failure = "<failure message=\"expected at least 1 lines, saw no\u{fffd}[2Jline&#10;\" \
                   type=\"expectation\">asked: at least 1 lines&#10;seen: no\u{fffd}[2Jline&#10;&#10;look: \
                   nodes/a/stdout</failure>";
    assert!(document.contains(failure), "{document}");
    assert!(document.contains("line 4: node a log /&lt;&quot;x&quot; &amp; &apos;y&apos;&gt;/"));
}

#[test]
fn a_run_that_could_not_begin_is_one_error() {
    let document = not_run("demo", "no namespaces");
    let tags = tags(&document);
    assert!(tags[1].1.contains("tests=\"1\" failures=\"0\" errors=\"1\""), "{document}");
    assert_eq!(tags[3].0, "error");
}

#[test]
fn an_interrupted_run_has_not_passed() {
    let mut report = report();
    report.verdict.exit_code = 130;
    report.ended = "interrupted by signal 2".into();
    assert!(text(&report).contains("<failure message=\"interrupted by signal 2\" type=\"ended\">"));
}

#[test]
fn dates_are_those_of_the_calendar() {
    assert_eq!(iso_8601(0), "1970-01-01T00:00:00");
    assert_eq!(iso_8601(951_782_399), "2000-02-28T23:59:59");
    assert_eq!(iso_8601(951_782_400), "2000-02-29T00:00:00");
    assert_eq!(iso_8601(4_107_542_399), "2100-02-28T23:59:59");
    assert_eq!(iso_8601(4_107_542_400), "2100-03-01T00:00:00");
}
