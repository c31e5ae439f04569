//! Programs of a run, from their start to their end.

use windtunnel_node::NodeInitReply;

use super::*;
use crate::live::testing::{NodeRequestLog, context, plan, programs};

const WEB: &str = "
nodes:
  web: {run: serve, ready: tcp:80, daemon: true}
  client: {run: get, after: web}
links: [{between: [web, client]}]
";

fn key(node: usize) -> ProgramKey {
    ProgramKey { node, program: 0 }
}

fn started(sent: &NodeRequestLog) -> Vec<(usize, u64)> {
    sent.spawns().into_iter().map(|(node, spawn)| (node, spawn.id)).collect()
}

#[test]
fn a_program_is_watched_when_it_runs_and_others_start_when_it_is_ready() {
    let (context, sent, log) = context(plan(WEB), None);
    let mut programs = programs(&context);
    programs.tick(&context, Span::ZERO);
    assert_eq!(started(&sent), [(0, 1)]);
    programs.spawned(&context, 1, 77, Time::ZERO);
    let watch = NodeInitRequest::Watch { token: 0, what: ListeningEndpoint::Tcp(80) };
    assert_eq!(sent.requests().last(), Some(&(0, watch)));
    programs.checker(&context).ready(key_of(0));
    programs.tick(&context, Span::ZERO);
    assert_eq!(started(&sent), [(0, 1), (1, 2)]);
    programs.spawned(&context, 2, 78, Time::ZERO);
    let node = |node: &str| node.to_owned();
    let argv = |word: &str| vec![word.to_owned()];
    // The client names no condition: that it is ready at once is not logged.
    let expected = [
        EventLogEntryKind::ProgramStarted { node: node("web"), program: 0, argv: argv("serve") },
        EventLogEntryKind::ProgramReady { node: node("web"), program: 0 },
        EventLogEntryKind::ProgramStarted { node: node("client"), program: 0, argv: argv("get") },
    ];
    assert_eq!(log.whats(), expected);
}

#[test]
fn a_start_that_the_node_does_not_take_is_logged_and_ends_the_run() {
    let (context, sent, log) = context(plan(WEB), None);
    sent.refuse("the node's init has ended");
    let mut programs = programs(&context);
    programs.tick(&context, Span::ZERO);
    let message = "the node's init has ended".to_owned();
    assert_eq!(
        log.whats(),
        [EventLogEntryKind::ProgramFailed { node: "web".into(), program: 0, message }]
    );
    assert_eq!(programs.supervisor.fatal(), Some("web (serve): the node's init has ended"));
}

#[test]
fn an_exit_is_logged_as_shells_number_it() {
    assert_eq!(code_and_signal(ExitStatus::Code(3)), (3, None));
    assert_eq!(code_and_signal(ExitStatus::Signal(15)), (143, Some(15)));
    let (context, _, log) = context(plan(WEB), None);
    let mut programs = programs(&context);
    programs.tick(&context, Span::ZERO);
    programs.spawned(&context, 1, 77, Time::ZERO);
    programs.exited(&context, 1, ExitStatus::Signal(9));
    // The second report of the same start is of nothing.
    programs.exited(&context, 1, ExitStatus::Code(0));
    let exits =
        log.whats().into_iter().filter(|it| matches!(it, EventLogEntryKind::ProgramExited { .. }));
    let (node, signal) = ("web".to_owned(), Some(9));
    let expected = EventLogEntryKind::ProgramExited { node, program: 0, code: 137, signal };
    assert_eq!(exits.collect::<Vec<_>>(), [expected]);
}

#[test]
fn programs_of_a_node_that_dies_are_logged_as_killed() {
    let (context, _, log) = context(plan(WEB), None);
    let mut programs = programs(&context);
    programs.tick(&context, Span::ZERO);
    programs.spawned(&context, 1, 77, Time::ZERO);
    programs.node_died(&context, 0);
    programs.node_died(&context, 1);
    let (node, signal) = ("web".to_owned(), Some(9));
    let expected = EventLogEntryKind::ProgramExited { node, program: 0, code: 137, signal };
    assert_eq!(log.whats()[1..], [expected]);
}

#[test]
fn the_status_of_a_node_has_its_init_and_its_programs() {
    let (context, _, _) = context(plan(WEB), None);
    let mut programs = programs(&context);
    programs.tick(&context, Span::ZERO);
    programs.spawned(&context, 1, 77, Time::ZERO);
    let status = programs.statuses(&context);
    let states: Vec<_> = status.iter().map(|node| node.programs[0].state.as_str()).collect();
    assert_eq!(states, ["running", "waiting"]);
    assert_eq!(status[0].programs[0].pid, Some(77), "as the node numbers it");
    assert_eq!(status[0].init_pid, 100, "as the machine numbers it");
    assert!(!status[0].absent && !status[0].addresses.is_empty());
}

#[test]
fn a_token_names_a_program_and_any_number_is_a_token() {
    let key = ProgramKey { node: 70_000, program: 3 };
    assert_eq!(key_of(token_of(key)), key);
    assert_eq!(key_of(u64::MAX), ProgramKey { node: 0xffff_ffff, program: 0xffff_ffff });
}

#[test]
fn why_a_start_failed_has_the_kernels_words() {
    assert_eq!(reason("cannot run the program \"x\"", 0), "cannot run the program \"x\"");
    let text = reason("cannot run the program \"x\"", 2);
    assert_eq!(text, "cannot run the program \"x\": No such file or directory (os error 2)");
}

#[test]
fn signals_are_for_the_run_where_no_program_is_in_the_foreground() {
    let (context, _, _) = context(plan(WEB), None);
    assert!(!programs(&context).pass_on(&context, 2));
    assert_eq!(key(0), key_of(0));
}

const CHECKED: &str = "
nodes:
  db:
    run: serve
    cwd: /srv
    env: {LEVEL: \"2\"}
    daemon: true
    ready: {command: [ask, -q], every: 500ms, check-timeout: 2s}
  client: {run: get, after: db}
links: [{between: [db, client]}]
";

#[test]
fn a_check_runs_beside_its_program_as_it_does_until_one_succeeds() {
    let (context, sent, log) = context(plan(CHECKED), None);
    let mut programs = programs(&context);
    programs.tick(&context, Span::ZERO);
    programs.spawned(&context, 1, 77, Time::ZERO);
    programs.tick(&context, Span::ZERO);
    let (node, check) = sent.spawns().pop().unwrap();
    assert_eq!((node, check.id, check.program), (0, CHECK_FIRST, Some(0)));
    assert_eq!((check.argv, check.cwd), (vec!["ask".into(), "-q".into()], Some("/srv".into())));
    assert_eq!(check.env["LEVEL"], "2");
    assert_eq!(programs.checks.outputs().count(), 1);
    assert!(programs.checks.expects(0, CHECK_FIRST) && !programs.checks.expects(1, CHECK_FIRST));
    let exited = |number, code| NodeInitReply::Exited {
        id: CHECK_FIRST + number,
        status: ExitStatus::Code(code),
    };
    programs.checker(&context).handle(&exited(0, 1));
    programs.tick(&context, Span::from_millis(499));
    assert_eq!(sent.spawns().len(), 2);
    programs.tick(&context, Span::from_millis(500));
    programs.checker(&context).handle(&exited(1, 0));
    programs.tick(&context, Span::from_millis(600));
    assert_eq!(started(&sent).last(), Some(&(1, 2)), "the client");
    let ready = EventLogEntryKind::ProgramReady { node: "db".into(), program: 0 };
    assert_eq!(log.whats()[1..], [ready]);
    programs.tick(&context, Span::from_secs(9));
    assert_eq!(sent.spawns().len(), 4, "no more checks");
}

#[test]
fn a_check_is_killed_when_its_time_is_over_its_program_ends_or_the_run_does() {
    let kills = |sent: &NodeRequestLog| {
        let kill = |(node, request)| match request {
            NodeInitRequest::Signal { id: Some(id), signal: 9, .. } => Some((node, id)),
            _ => None,
        };
        sent.requests().into_iter().filter_map(kill).collect::<Vec<(usize, u64)>>()
    };
    let begun = || {
        let (context, sent, _) = context(plan(CHECKED), None);
        let mut programs = programs(&context);
        programs.tick(&context, Span::ZERO);
        programs.spawned(&context, 1, 77, Time::ZERO);
        programs.tick(&context, Span::ZERO);
        (context, sent, programs)
    };
    let (context, sent, mut programs) = begun();
    assert_eq!(programs.next_wake(Span::ZERO), Some(Span::from_secs(1)), "it is reported");
    programs.tick(&context, Span::from_secs(2));
    assert_eq!(kills(&sent), [(0, CHECK_FIRST)]);
    let (context, sent, mut programs) = begun();
    programs.exited(&context, 1, ExitStatus::Code(1));
    assert_eq!(kills(&sent), [(0, CHECK_FIRST)]);
    let (context, sent, mut programs) = begun();
    programs.stop(&context);
    assert_eq!(kills(&sent), [(0, CHECK_FIRST)]);
}
