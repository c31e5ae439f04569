//! The summary of a run: achieved values beside requested ones.

mod bounds;
mod limits;
mod links;
mod received;
mod services;
mod shares;
mod transparent;

use windtunnel_trace::report::{ExpectationResult, ProgramReport, RunReport};

use crate::render::quantity;
use crate::render::table::{ColumnAlignment, TextTable};
use bounds::bounds;
use limits::limits;
use links::links;
use received::received;
use services::services;
use shares::shares;
use transparent::transparent;

/// The summary of a run: links, limits, programs that failed, expectations, warnings. Ends with
/// a line end, or is empty.
pub(crate) fn text(report: &RunReport) -> String {
    let parts = [
        links(report),
        limits(report),
        received(report),
        services(report),
        transparent(report),
        shares(report),
        bounds(report),
        programs(report),
        expectations(report),
        unmet(report),
    ];
    let mut text = parts.concat();
    let verdict = &report.verdict;
    let doubts = verdict.unfaithful.iter().map(|doubt| format!("not faithful: {doubt}\n"));
    // Expectations that were not met are shown above with more detail.
    let shown: Vec<String> = report.expectations.iter().map(ExpectationResult::failure).collect();
    let failures = verdict.failures.iter().filter(|failure| !shown.contains(failure));
    let failures = failures.map(|failure| format!("failed: {failure}\n"));
    let warnings = verdict.warnings.iter().map(|warning| format!("warning: {warning}\n"));
    if let Some(records) = &report.records {
        text.push_str(&format!("records: {}\n", records.summary()));
        if !records.overhead_ps.is_empty() {
            text.push_str(&format!("cost of a record: {}\n", records.overhead()));
        }
        text.extend(records.unseen.iter().map(|what| format!("calls not seen: {what}\n")));
    }
    // The verdict that follows contains the first reason itself.
    let reasons = verdict.unfaithful.len() + verdict.failures.len() + verdict.incomplete.len();
    let incomplete = verdict.incomplete.iter().map(|why| format!("evidence incomplete: {why}\n"));
    let reasons = doubts.chain(failures).chain(incomplete).filter(|_| reasons > 1);
    text.extend(reasons.chain(warnings).take(MESSAGES_MAX));
    text
}

fn programs(report: &RunReport) -> String {
    let bad = |program: &&ProgramReport| program.exit.is_some_and(|code| code != 0);
    let shown: Vec<&ProgramReport> = report.programs.iter().filter(bad).collect();
    if shown.is_empty() {
        return String::new();
    }
    let mut table = TextTable::new(&[
        ("node", ColumnAlignment::Left),
        ("exit", ColumnAlignment::Right),
        ("ended", ColumnAlignment::Left),
        ("argv", ColumnAlignment::Left),
    ]);
    for program in shown.iter().take(PROGRAMS_MAX) {
        let exit = program.exit.map_or_else(String::new, |code| code.to_string());
        table.row([program.node.clone(), exit, program.ended.clone(), program.argv.join(" ")]);
    }
    let mut text = table.render("");
    if let Some(more) = shown.len().checked_sub(PROGRAMS_MAX + 1) {
        let more = quantity::count(more + 1, "more program");
        text.push_str(&format!("… and {more}: see run.json\n"));
    }
    text
}

fn expectations(report: &RunReport) -> String {
    if report.expectations.is_empty() {
        return String::new();
    }
    let mut table = TextTable::new(&[
        ("expectation", ColumnAlignment::Left),
        ("asked", ColumnAlignment::Left),
        ("seen", ColumnAlignment::Left),
        ("met", ColumnAlignment::Left),
    ]);
    for expectation in report.expectations.iter().take(EXPECTATIONS_MAX) {
        let met = if expectation.met { "yes" } else { "NO" };
        let texts = [&expectation.about, &expectation.asked, &expectation.seen];
        table.row(texts.into_iter().map(|text| shortened(text)).chain([met.to_owned()]));
    }
    let mut text = table.render("");
    if let Some(more) = report.expectations.len().checked_sub(EXPECTATIONS_MAX + 1) {
        let more = quantity::count(more + 1, "more expectation");
        text.push_str(&format!("… and {more}: see run.json\n"));
    }
    text
}

/// The expectations that were not met, and where to look.
fn unmet(report: &RunReport) -> String {
    let unmet: Vec<&ExpectationResult> = report.expectations.iter().filter(|e| !e.met).collect();
    let mut text = String::new();
    for expectation in unmet.iter().take(UNMET_MAX) {
        let ExpectationResult { line, about, asked, seen, look, .. } = expectation;
        let line =
            if *line > 0 { format!(" (line {line} of the scenario)") } else { String::new() };
        let block =
            format!("not met: {about}{line}\n  asked: {asked}\n  seen:  {seen}\n  look:  {look}\n");
        text.push_str(&printable(&block));
    }
    if let Some(more) = unmet.len().checked_sub(UNMET_MAX + 1) {
        text.push_str(&format!("… and {} more not met: see run.json\n", more + 1));
    }
    text
}

/// A program's line may hold anything.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { ' ' } else { c }).collect()
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(CELL_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

const PROGRAMS_MAX: usize = 20;
const MESSAGES_MAX: usize = 30;
const EXPECTATIONS_MAX: usize = 60;
const UNMET_MAX: usize = 20;
/// Characters of a cell of expectations.
const CELL_MAX: usize = 60;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use windtunnel_model::profile::{Jitter, LossModel};
    use windtunnel_model::{LinkProfile, Span};
    use windtunnel_trace::lateness::LatenessSummary;
    use windtunnel_trace::report::{
        AchievedLinkFigures, LinkPhaseReport, LinkReport, MachineReport, RunVerdict,
        SchedulePunctuality,
    };

    use super::*;

    fn report(links: Vec<LinkReport>) -> RunReport {
        RunReport {
            windtunnel: "0.1.0".into(),
            name: "demo".into(),
            seed: 1,
            plan_hash: "00".into(),
            began_unix_s: 0,
            kernel: "6.1".into(),
            elapsed_ns: 10_000_000_000,
            setup_ns: 120_000_000,
            ended: "every program has exited".into(),
            verdict: RunVerdict {
                faithful: true,
                disturbed: false,
                passed: true,
                exit_code: 0,
                text: "FAITHFUL, PASSED: x".into(),
                unfaithful: Vec::new(),
                failures: Vec::new(),
                incomplete: Vec::new(),
                warnings: Vec::new(),
            },
            hosts: Vec::new(),
            partial: false,
            attempts: Vec::new(),
            lost: Vec::new(),
            lateness: LatenessSummary::default(),
            planned: SchedulePunctuality::default(),
            machine: MachineReport::default(),
            programs: Vec::new(),
            limits: Vec::new(),
            received: Vec::new(),
            services: Vec::new(),
            replicas_watched: None,
            internet: None,
            shares: Vec::new(),
            bounds: Vec::new(),
            expectations: Vec::new(),
            links,
            routers: Vec::new(),
            records: None,
        }
    }

    fn link(direction: &str) -> LinkReport {
        LinkReport {
            link: "ocean".into(),
            direction: direction.into(),
            asked: LinkProfile {
                latency: "110ms".parse().unwrap(),
                jitter: Jitter { spread: "2ms".parse().unwrap(), ..Jitter::default() },
                loss: LossModel::Independent("5%".parse().unwrap()),
                rate: Some("50mbit".parse().unwrap()),
                ..LinkProfile::default()
            },
            queue: Some("204p".into()),
            offered_packets: 2_000,
            offered_bytes: 3_000_000,
            delivered_packets: 1_900,
            delivered_bytes: 2_850_000,
            dropped_packets: BTreeMap::from([("loss".into(), 97), ("queue".into(), 3)]),
            duplicated_packets: 0,
            fragmented_packets: 0,
            fragments_packets: 0,
            corrupted_packets: 0,
            reordered_packets: 0,
            marked_packets: 0,
            in_flight_packets: 0,
            queue_max_packets: 100,
            queue_max_bytes: 153_800,
            achieved: AchievedLinkFigures {
                latency_mean_ns: Some(111_034_567),
                rate_busy_bit_per_s: Some(49_998_123),
                rate_peak_bit_per_s: Some(50_000_000),
                loss_ppb: Some(48_500_000),
            },
            lateness: LatenessSummary {
                packets: 1_900,
                p99_ns: 84_000,
                ..LatenessSummary::default()
            },
            late_packets: 0,
            phases: Vec::new(),
        }
    }

    #[test]
    fn links_show_requested_values_beside_achieved_ones() {
        let text = text(&report(vec![link("paris-tokyo")]));
        assert_eq!(
            text,
            "link   direction      latency  achieved    rate  achieved  loss  achieved  delivered  \
             dropped           lateness p99\n\
             ocean  paris-tokyo  110ms+2ms     111ms  50mbit    50mbit    5%     4.85%       1900  \
             97 loss, 3 queue          84us\n"
        );
    }

    #[test]
    fn a_changed_direction_has_a_row_for_each_phase_with_its_requested_values() {
        let mut changed = link("paris-tokyo");
        let phase = |from_s: u64, until_s: u64, latency: &str, achieved| LinkPhaseReport {
            from_ns: from_s * 1_000_000_000,
            until_ns: until_s * 1_000_000_000,
            asked: LinkProfile { latency: latency.parse().unwrap(), ..LinkProfile::default() },
            offered_packets: 9,
            delivered_packets: 9,
            dropped_packets: BTreeMap::new(),
            achieved: AchievedLinkFigures {
                latency_mean_ns: achieved,
                ..AchievedLinkFigures::default()
            },
            lateness: LatenessSummary::default(),
        };
        changed.phases = vec![phase(0, 5, "10ms", Some(10_020_000)), phase(5, 8, "50ms", None)];
        assert_eq!(
            text(&report(vec![changed, link("tokyo-paris")])),
            [
                "link   direction      during    latency  achieved    rate  achieved  loss  achieved  \
                 delivered  dropped           lateness p99\n",
                "ocean  paris-tokyo  0s to 5s       10ms   10.02ms       -         -    0%         -  ",
                "        9  -                            -\n",
                "ocean  paris-tokyo  5s to 8s       50ms         -       -         -    0%         -  ",
                "        9  -                            -\n",
                "ocean  tokyo-paris       all  110ms+2ms     111ms  50mbit    50mbit    5%     4.85%  ",
                "     1900  97 loss, 3 queue          84us\n",
            ]
            .concat()
        );
    }

    #[test]
    fn links_that_carried_nothing_are_not_listed_and_many_are_bounded() {
        let mut idle = link("a-b");
        idle.offered_packets = 0;
        idle.asked.queue = Some(windtunnel_model::profile::QueueLimit::Time(Span::from_millis(1)));
        assert_eq!(text(&report(vec![idle])), "");
        let many = text(&report(vec![link("paris-tokyo"); 42]));
        assert!(many.contains("\n… and 2 more link directions: see run.json\n"), "{many}");
    }

    #[test]
    fn programs_that_failed_and_expectations_are_listed() {
        let mut report = report(Vec::new());
        let program = |node: &str, exit| ProgramReport {
            node: node.into(),
            program: 0,
            argv: vec!["wrk".into(), "-t1".into()],
            daemon: false,
            failed: exit == Some(1),
            starts: 1,
            started_ns: Some(0),
            ready_ns: None,
            exited_ns: None,
            exit,
            ended: "exited with 1".into(),
            output_bytes: 0,
            output_discarded_bytes: 0,
        };
        report.programs =
            vec![program("good", Some(0)), program("bad", Some(1)), program("d", None)];
        report.expectations = vec![ExpectationResult {
            line: 7,
            about: "node bad exit".into(),
            asked: "0".into(),
            seen: "1".into(),
            met: false,
            look: "nodes/bad/stderr".into(),
        }];
        report.verdict.failures =
            vec!["bad (wrk) exited with 1".into(), "node bad exit: expected 0, saw 1".into()];
        assert_eq!(
            text(&report),
            "node  exit  ended          argv\n\
             bad      1  exited with 1  wrk -t1\n\
             expectation    asked  seen  met\n\
             node bad exit  0      1     NO\n\
             not met: node bad exit (line 7 of the scenario)\n\
             \x20 asked: 0\n\
             \x20 seen:  1\n\
             \x20 look:  nodes/bad/stderr\n\
             failed: bad (wrk) exited with 1\n"
        );
    }
}
