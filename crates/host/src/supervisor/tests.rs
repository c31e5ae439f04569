//! The life of programs, as scripts.

mod members;

use std::collections::BTreeMap;

use windtunnel_model::NodeId;
use windtunnel_model::plan::{
    Node, NodeVerb, Program, ProgramUser, ReadinessCheckSettings, Restart,
};
use windtunnel_model::word::ProgramState;

use super::*;

fn program(after: &[u32], daemon: bool, ready: Option<ReadinessCondition>) -> Program {
    Program {
        argv: vec!["prog".into()],
        daemon,
        ready,
        ready_within: None,
        after: after.iter().map(|&n| NodeId(n)).collect(),
        start: Span::ZERO,
        cwd: None,
        env: BTreeMap::new(),
        restart: Restart::Never,
        demand: Default::default(),
    }
}

/// As many nodes, each with a program that may start at once.
pub(crate) fn example(nodes: usize) -> Supervisor {
    supervisor(vec![program(&[], false, None); nodes])
}

fn supervisor(programs: Vec<Program>) -> Supervisor {
    supervisor_of(programs.into_iter().map(|program| vec![program]))
}

/// A node for each list of programs.
fn supervisor_of(programs: impl IntoIterator<Item = Vec<Program>>) -> Supervisor {
    let nodes = programs.into_iter().enumerate().map(|(i, programs)| Node {
        name: format!("n{i}"),
        group: format!("n{i}"),
        aliases: Vec::new(),
        forward: false,
        user: ProgramUser::Invoker,
        private: false,
        results: false,
        root: None,
        sysctl: BTreeMap::new(),
        pin: None,
        demand: Default::default(),
        reservation: None,
        receive_queue: None,
        internet: None,
        publish: Vec::new(),
        interfaces: Vec::new(),
        programs,
    });
    Supervisor::new(&Plan { nodes: nodes.collect(), ..Plan::default() })
}

fn at(secs: u64) -> Span {
    Span::from_secs(secs)
}

fn key(node: usize) -> ProgramKey {
    ProgramKey { node, program: 0 }
}

const FINE: ProgramExit = ProgramExit { code: 0, signal: None };
const KILLED: ProgramExit = ProgramExit { code: 137, signal: Some(9) };

/// Ticks and returns the nodes started, with their spawn numbers.
fn started(supervisor: &mut Supervisor, now: Span) -> Vec<(usize, u64)> {
    supervisor.tick(now);
    let mut spawned = Vec::new();
    while let Some(command) = supervisor.poll_command() {
        if let SupervisorCommand::Spawn { key, spawn } = command {
            spawned.push((key.node, spawn));
        }
    }
    spawned
}

#[test]
fn a_program_starts_only_after_those_it_names_are_ready() {
    let web = program(&[], true, Some(ReadinessCondition::Tcp(80)));
    let mut s = supervisor(vec![web, program(&[0], false, None)]);
    assert_eq!(started(&mut s, at(0)), [(0, 1)]);
    assert_eq!(s.on_spawned(1, 7, at(0)), None);
    assert_eq!(
        s.poll_command(),
        Some(SupervisorCommand::Watch { key: key(0), what: ReadinessCondition::Tcp(80) })
    );
    assert_eq!(started(&mut s, at(1)), []);
    assert_eq!(s.on_ready(key(0), at(1)), Some(key(0)));
    assert_eq!(started(&mut s, at(2)), [(1, 2)]);
}

#[test]
fn a_start_time_holds_a_program_back_and_asks_for_a_wake_up() {
    let mut late = program(&[], false, None);
    late.start = at(2);
    let mut s = supervisor(vec![late]);
    assert_eq!(started(&mut s, at(0)), []);
    assert_eq!(s.next_wake(at(0)), Some(at(2)));
    assert_eq!(started(&mut s, at(2)), [(0, 1)]);
}

#[test]
fn a_start_is_planned_for_the_time_of_the_file_unless_the_program_waits_for_others() {
    let mut late = program(&[], false, None);
    late.start = at(2);
    let mut waits = program(&[0], false, None);
    waits.start = at(2);
    let web = program(&[], true, Some(ReadinessCondition::Tcp(80)));
    let mut s = supervisor(vec![web, late.clone(), late, waits]);
    assert_eq!(started(&mut s, at(0)), [(0, 1)]);
    assert_eq!(s.planned_start(key(0)), None, "it starts as soon as it can");
    s.on_spawned(1, 7, at(0));
    assert_eq!(started(&mut s, at(3)), [(1, 2), (2, 3)]);
    assert_eq!(s.planned_start(key(1)), Some((at(2), 2)));
    s.on_ready(key(0), at(4));
    assert_eq!(started(&mut s, at(4)), [(3, 4)]);
    assert_eq!(s.planned_start(key(3)), None, "it waited for the first");
}

#[test]
fn a_node_that_joins_is_planned_to_start_then() {
    let mut s = supervisor(vec![program(&[], false, None), program(&[], false, None)]);
    s.on_leave(NodeId(0), at(0));
    started(&mut s, at(0));
    s.on_join(NodeId(0), at(4), Some(at(3)));
    assert_eq!(started(&mut s, at(4)), [(0, 2)]);
    assert_eq!(s.planned_start(key(0)), Some((at(3), 1)));
}

#[test]
fn a_program_that_an_event_has_held_back_is_planned_for_no_time() {
    let mut late = program(&[], false, None);
    late.start = at(2);
    let mut s = supervisor(vec![late]);
    started(&mut s, at(0));
    s.on_verb(NodeId(0), NodeVerb::Kill, at(1));
    s.on_verb(NodeId(0), NodeVerb::Restart, at(5));
    assert_eq!(started(&mut s, at(5)), [(0, 1)]);
    assert_eq!(s.planned_start(key(0)), None);
}

#[test]
fn a_pause_holds_for_a_program_that_is_on_its_way() {
    let mut s = supervisor(vec![program(&[], false, None)]);
    started(&mut s, at(0));
    s.on_verb(NodeId(0), NodeVerb::Pause, at(0));
    s.on_spawned(1, 7, at(1));
    assert!(s.is_paused(0));
    assert_eq!(s.program(key(0)).unwrap().state(), ProgramState::Paused);
    s.on_verb(NodeId(0), NodeVerb::Resume, at(2));
    assert!(!s.is_paused(0));
}

#[test]
fn the_run_is_finished_when_every_program_except_daemons_has_exited() {
    let mut s = supervisor(vec![program(&[], true, None), program(&[], false, None)]);
    started(&mut s, at(0));
    s.on_spawned(1, 7, at(0));
    s.on_spawned(2, 7, at(0));
    assert!(!s.finished());
    assert_eq!(s.on_exited(2, FINE, at(1)), Some((key(1), false)));
    assert!(s.finished());
}

#[test]
fn a_run_of_daemons_alone_never_finishes_by_itself() {
    let mut s = supervisor(vec![program(&[], true, None)]);
    started(&mut s, at(0));
    assert!(!s.finished());
}

#[test]
fn a_program_that_exits_before_it_is_ready_ends_a_run_in_which_others_wait_for_it() {
    let web = program(&[], true, Some(ReadinessCondition::Tcp(80)));
    let mut s = supervisor(vec![web, program(&[0], false, None)]);
    started(&mut s, at(0));
    s.on_spawned(1, 7, at(0));
    s.on_exited(1, ProgramExit { code: 1, signal: None }, at(1));
    assert_eq!(
        s.fatal(),
        Some("n0 (prog) exited with 1 before it was ready, and others wait for it")
    );
}

#[test]
fn a_program_that_is_not_ready_after_a_minute_ends_the_run_and_says_what_was_missing() {
    let mut s = supervisor(vec![program(&[], true, Some(ReadinessCondition::Tcp(80)))]);
    started(&mut s, at(0));
    s.on_spawned(1, 7, at(1));
    s.tick(at(2));
    assert_eq!(s.next_wake(at(2)), Some(at(61)));
    s.tick(at(61));
    assert_eq!(s.fatal(), Some("n0 (prog) is not ready after 1min: nothing listens on tcp:80"));
}

#[test]
fn a_program_has_the_time_to_be_ready_that_the_file_gives_it() {
    for (ready, missing) in [
        (ReadinessCondition::Listen, "nothing listens on any port"),
        (ReadinessCondition::Exit, "it still runs"),
        (ReadinessCondition::Log("up".into()), "no line of its output matches \"up\""),
    ] {
        let mut slow = program(&[], true, Some(ready));
        slow.ready_within = Some(at(5));
        let mut s = supervisor(vec![slow]);
        started(&mut s, at(0));
        s.on_spawned(1, 7, at(1));
        s.tick(at(2));
        assert_eq!(s.next_wake(at(2)), Some(at(6)));
        s.tick(Span::from_millis(5_999));
        assert_eq!(s.fatal(), None);
        s.tick(at(6));
        assert_eq!(s.fatal().unwrap(), format!("n0 (prog) is not ready after 5s: {missing}"));
    }
}

fn checked(fall: Option<u32>) -> Supervisor {
    let argv = vec!["ask".to_owned(), "a b".to_owned()];
    let check =
        ReadinessCheckSettings { argv, fall, ..ReadinessCheckSettings::default() }.of_file();
    let mut s =
        supervisor(vec![program(&[], true, Some(ReadinessCondition::Command(check.clone())))]);
    started(&mut s, at(0));
    s.on_spawned(1, 7, at(1));
    let what = ReadinessCondition::Command(check);
    assert_eq!(s.poll_command(), Some(SupervisorCommand::Watch { key: key(0), what }));
    s
}

#[test]
fn a_program_whose_checks_fail_has_a_minute_and_the_last_failure_is_named() {
    let mut s = checked(None);
    s.on_check_failed(key(0), "`ask` exited with 3: no", None);
    s.tick(Span::from_millis(60_999));
    assert_eq!(s.fatal(), None);
    s.tick(at(61));
    let text = "n0 (prog) is not ready after 1min: `ask` exited with 3: no";
    assert_eq!(s.fatal(), Some(text));
    let mut s = checked(None);
    s.tick(at(61));
    let text = "n0 (prog) is not ready after 1min: `ask \"a b\"` has not ended";
    assert_eq!(s.fatal(), Some(text));
}

#[test]
fn a_program_is_given_up_after_its_number_of_failed_checks_however_long_they_take() {
    let mut s = checked(Some(3));
    s.on_check_failed(key(0), "`ask` exited with 3", None);
    s.tick(at(3600));
    assert_eq!(s.fatal(), None);
    s.on_check_failed(key(0), "`ask` exited with 4", Some(3));
    let text = "n0 (prog) is not ready: 3 checks failed one after the other: `ask` exited with 4";
    assert_eq!(s.fatal(), Some(text));
}

#[test]
fn a_program_that_was_ready_is_not_checked_again_when_it_is_restarted() {
    let mut s = checked(None);
    s.on_ready(key(0), at(2));
    s.on_verb(NodeId(0), NodeVerb::Restart, at(3));
    s.on_exited(1, KILLED, at(3));
    assert_eq!(started(&mut s, at(4)), [(0, 2)]);
    s.on_spawned(2, 8, at(4));
    assert_eq!(s.poll_command(), None);
}

#[test]
fn a_program_that_is_waited_for_is_reported_once_after_a_second() {
    let mut s = supervisor(vec![program(&[], true, Some(ReadinessCondition::Exit))]);
    started(&mut s, at(0));
    s.on_spawned(1, 7, at(1));
    assert_eq!(s.next_wake(at(1)), Some(at(2)));
    s.tick(Span::from_millis(1_999));
    assert_eq!(s.poll_command(), None);
    s.tick(at(2));
    assert_eq!(s.poll_command(), Some(SupervisorCommand::Awaited { key: key(0) }));
    s.tick(at(3));
    assert_eq!(s.poll_command(), None);
    assert_eq!(s.next_wake(at(3)), None, "an exit takes as long as it takes");
}

#[test]
fn a_program_that_is_ready_soon_is_not_said_to_be_waited_for() {
    let mut s = supervisor(vec![program(&[], true, Some(ReadinessCondition::Log("up".into())))]);
    started(&mut s, at(0));
    s.on_spawned(1, 7, at(0));
    s.on_ready(key(0), Span::from_millis(900));
    s.tick(at(2));
    assert_eq!(s.poll_command(), None);
}

#[test]
fn a_program_that_does_not_exist_ends_the_run() {
    let mut s = supervisor(vec![program(&[], false, None)]);
    started(&mut s, at(0));
    s.on_spawn_failed(1, "cannot run prog: no such file");
    assert_eq!(s.fatal(), Some("n0 (prog): cannot run prog: no such file"));
    assert!(s.finished());
}

#[test]
fn ready_exit_makes_others_wait_for_success() {
    let mut s = supervisor(vec![
        program(&[], false, Some(ReadinessCondition::Exit)),
        program(&[0], false, None),
    ]);
    started(&mut s, at(0));
    s.on_spawned(1, 7, at(0));
    assert_eq!(started(&mut s, at(1)), []);
    assert_eq!(s.on_exited(1, FINE, at(2)), Some((key(0), true)));
    assert_eq!(started(&mut s, at(2)), [(1, 2)]);
}

#[test]
fn a_killed_node_stays_down_and_a_restarted_one_comes_back_at_once() {
    let mut worker = program(&[], false, None);
    worker.restart = Restart::Always;
    let mut s = supervisor(vec![worker]);
    started(&mut s, at(0));
    s.on_spawned(1, 7, at(0));
    s.on_verb(NodeId(0), NodeVerb::Restart, at(1));
    s.on_exited(1, KILLED, at(1));
    assert_eq!(started(&mut s, at(1)), [(0, 2)]);
    s.on_spawned(2, 8, at(1));
    s.on_verb(NodeId(0), NodeVerb::Kill, at(2));
    s.on_exited(2, KILLED, at(2));
    assert_eq!(started(&mut s, at(9)), []);
    assert!(s.finished());
    assert!(s.program(key(0)).unwrap().ended_by_event);
    s.on_verb(NodeId(0), NodeVerb::Restart, at(10));
    assert_eq!(started(&mut s, at(10)), [(0, 3)]);
}

#[test]
fn programs_of_a_node_that_died_are_over_and_not_waited_for() {
    let mut forever = program(&[], false, None);
    forever.restart = Restart::Always;
    let mut s = supervisor(vec![forever, program(&[], false, None)]);
    started(&mut s, at(0));
    s.on_spawned(1, 7, at(0));
    s.on_spawned(2, 8, at(0));
    assert_eq!(s.on_node_died(0, at(1)), [key(0)]);
    assert_eq!(s.program(key(0)).unwrap().last_exit, Some(KILLED));
    assert_eq!(started(&mut s, at(9)), []);
    s.on_exited(2, FINE, at(9));
    assert!(!s.any_running());
}

#[test]
fn restarts_after_failures_back_off() {
    let mut flaky = program(&[], false, None);
    flaky.restart = Restart::OnFailure;
    let mut s = supervisor(vec![flaky]);
    started(&mut s, at(0));
    s.on_exited(1, KILLED, at(0));
    assert_eq!(s.next_wake(at(0)), Some(Span::from_millis(100)));
    assert_eq!(started(&mut s, Span::from_millis(100)), [(0, 2)]);
    s.on_exited(2, KILLED, Span::from_millis(100));
    assert_eq!(s.next_wake(Span::from_millis(100)), Some(Span::from_millis(300)));
    started(&mut s, Span::from_millis(300));
    s.on_exited(3, FINE, at(1));
    assert!(s.finished());
}

#[test]
fn an_absent_node_starts_when_it_joins_and_delays_no_other() {
    let mut s = supervisor(vec![program(&[], false, None), program(&[0], false, None)]);
    s.expect_joins(&[NodeId(0)]);
    s.on_leave(NodeId(0), at(0));
    assert_eq!(started(&mut s, at(0)), [(1, 1)], "the other does not wait");
    assert_eq!(s.program(key(0)).unwrap().state(), ProgramState::Absent);
    s.on_verb(NodeId(0), NodeVerb::Restart, at(1));
    assert_eq!(started(&mut s, at(1)), [], "a restart does not bring it in");
    s.on_spawned(1, 7, at(1));
    s.on_exited(1, FINE, at(2));
    assert!(!s.finished(), "it is still to join");
    s.on_join(NodeId(0), at(3), None);
    assert_eq!(started(&mut s, at(3)), [(0, 2)]);
    s.on_spawned(2, 8, at(3));
    s.on_exited(2, FINE, at(4));
    assert!(s.finished());
}

#[test]
fn a_node_that_left_is_not_restarted_until_it_joins_again() {
    let mut worker = program(&[], false, None);
    worker.restart = Restart::Always;
    let mut s = supervisor(vec![worker]);
    s.expect_joins(&[NodeId(0)]);
    started(&mut s, at(0));
    s.on_spawned(1, 7, at(0));
    s.on_leave(NodeId(0), at(1));
    s.on_exited(1, KILLED, at(1));
    assert_eq!(started(&mut s, at(5)), []);
    assert!(!s.finished(), "it is to come back");
    s.on_join(NodeId(0), at(6), None);
    assert_eq!(started(&mut s, at(6)), [(0, 2)]);
    s.on_spawned(2, 8, at(6));
    assert!(!s.program(key(0)).unwrap().ended_by_event);
    // What it does by itself from now on is its own doing, and `restart` holds again.
    s.on_exited(2, KILLED, at(7));
    assert_eq!(started(&mut s, at(8)), [(0, 3)]);
}

#[test]
fn a_node_that_leaves_and_joins_at_once_starts_again_when_its_end_is_known() {
    let mut s = supervisor(vec![program(&[], false, None)]);
    started(&mut s, at(0));
    s.on_spawned(1, 7, at(0));
    s.on_leave(NodeId(0), at(1));
    s.on_join(NodeId(0), at(1), None);
    assert_eq!(started(&mut s, at(1)), []);
    s.on_exited(1, KILLED, at(1));
    assert_eq!(started(&mut s, at(1)), [(0, 2)]);
}

#[test]
fn a_reserve_that_never_joins_does_not_hold_up_the_end() {
    let mut s = supervisor(vec![program(&[], false, None), program(&[], false, None)]);
    s.on_leave(NodeId(1), at(0));
    assert_eq!(started(&mut s, at(0)), [(0, 1)]);
    s.on_spawned(1, 7, at(0));
    s.on_exited(1, FINE, at(1));
    assert!(s.finished());
}
