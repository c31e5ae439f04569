//! Programs of a run over several machines, of which each supervises its own.

use windtunnel_verdict::evidence::ProgramLifecycle;

use super::*;

/// Node 0 is here, the others are on another machine.
fn part(programs: Vec<Program>) -> Supervisor {
    let mut supervisor = supervisor(programs);
    supervisor.here = vec![true, false, false];
    supervisor
}

/// What the other machine reports of the program of a node.
fn remote(node: usize, change: impl Fn(&mut SupervisedProgram)) -> (ProgramKey, SupervisedProgram) {
    let mut state = SupervisedProgram::new(program(&[], false, None));
    change(&mut state);
    (key(node), state)
}

fn ready(state: &mut SupervisedProgram) {
    state.ready = true;
    state.starts = 1;
}

#[test]
fn only_programs_of_this_machine_are_started_here() {
    let mut s = part(vec![program(&[], false, None); 2]);
    assert_eq!(started(&mut s, at(0)), [(0, 1)]);
    assert!(s.is_here(key(0)) && !s.is_here(key(1)) && !s.is_here(key(9)));
    assert_eq!(s.next_wake(at(0)), None);
}

#[test]
fn a_program_waits_for_one_on_another_machine_until_that_is_reported_ready() {
    let mut s = part(vec![program(&[1], false, None), program(&[], true, None)]);
    assert_eq!(started(&mut s, at(0)), []);
    let (key, state) = remote(1, ready);
    s.on_news(key, state);
    assert_eq!(started(&mut s, at(1)), [(0, 1)]);
}

#[test]
fn a_programs_definition_comes_from_the_plan_and_not_from_another_machine() {
    let mut s = part(vec![program(&[], false, None); 2]);
    let (key, state) = remote(1, |state| {
        state.spec.argv = vec!["other".into()];
        state.life = ProgramLifecycle::Exited { exit: FINE };
    });
    s.on_news(key, state);
    let known = s.program(key).unwrap();
    assert_eq!((known.spec.argv[0].as_str(), known.state()), ("prog", ProgramState::Exited));
}

#[test]
fn news_of_programs_that_are_here_or_nowhere_is_ignored() {
    let mut s = part(vec![program(&[], false, None); 2]);
    let exited =
        |state: &mut SupervisedProgram| state.life = ProgramLifecycle::Exited { exit: FINE };
    for node in [0, 7] {
        let (key, state) = remote(node, exited);
        s.on_news(key, state);
    }
    assert_eq!(s.program(key(0)).unwrap().state(), ProgramState::Waiting);
    assert!(s.program(key(7)).is_none());
}

#[test]
fn a_machine_is_idle_by_its_own_programs_alone() {
    let mut s = part(vec![program(&[], false, None); 2]);
    started(&mut s, at(0));
    s.on_spawned(1, 7, at(0));
    assert!(!s.idle() && s.any_running());
    s.on_exited(1, FINE, at(1));
    assert!(s.idle() && !s.any_running());
    assert_eq!(s.workers_running(), 0);
}

#[test]
fn a_machine_without_programs_is_idle_and_the_run_is_not_finished_by_that() {
    let mut s = supervisor(vec![program(&[], true, None)]);
    assert!(s.idle() && !s.finished());
    started(&mut s, at(0));
    s.on_spawned(1, 7, at(0));
    assert!(s.any_running());
    assert_eq!(s.workers_running(), 0, "a daemon");
}

#[test]
fn a_lost_machine_ends_the_run_if_a_program_here_still_waits_for_one_there() {
    let mut s = part(vec![program(&[1], false, None), program(&[], true, None)]);
    s.on_lost(&[1], "m2");
    assert_eq!(
        s.fatal(),
        Some("n1 (prog) was lost with host m2 before it was ready, and others wait for it")
    );
    assert_eq!(s.program(key(1)).unwrap().state(), ProgramState::Lost);
}

#[test]
fn a_lost_machine_whose_programs_were_ready_or_over_ends_nothing() {
    let mut s =
        part(vec![program(&[1], false, None), program(&[], true, None), program(&[], false, None)]);
    let (key, state) = remote(1, ready);
    s.on_news(key, state);
    let (key, state) = remote(2, |state| state.life = ProgramLifecycle::Exited { exit: FINE });
    s.on_news(key, state);
    s.on_lost(&[1, 2], "m2");
    assert_eq!(s.fatal(), None);
    assert_eq!(s.program(key).unwrap().state(), ProgramState::Exited, "how it ended stays known");
    assert_eq!(started(&mut s, at(1)), [(0, 1)]);
}

#[test]
fn a_program_that_cannot_be_is_not_taken_from_another_machine() {
    use windtunnel_model::valid::Validate;
    let (_, fine) = remote(1, ready);
    assert!(fine.validate().is_ok());
    let (_, signal) =
        remote(1, |it| it.last_exit = Some(ProgramExit { code: 1, signal: Some(9999) }));
    assert!(signal.validate().is_err());
    let (_, long) =
        remote(1, |it| it.life = ProgramLifecycle::Failed { message: "x".repeat(1 << 20) });
    assert!(long.validate().is_err());
}

#[test]
fn a_program_is_described_by_its_number_where_a_node_has_several() {
    let one = || program(&[], false, None);
    let s = supervisor_of([vec![one()], vec![one(), one()]]);
    assert_eq!(s.describe(key(0)), "n0 (prog)");
    assert_eq!(s.describe(ProgramKey { node: 1, program: 1 }), "n1 (program 2: prog)");
}
