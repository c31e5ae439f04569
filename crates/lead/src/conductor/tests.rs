//! How far a run is, by events of parts that the test makes up.

use windtunnel_host::observer::OwnedNotice;
use windtunnel_trace::event::{EventLogEntry, EventLogEntryKind};

use super::*;
use crate::error::text;
use crate::tests::{Recorder, key, setup};

/// Of three members, with nothing to lead.
fn conductor(stage: ClusterRunStage) -> ClusterRunCoordinator {
    let setup = setup();
    let nowhere = RunSetup { members: Vec::new(), ..setup.clone() };
    let parts = PartSessions::watch(&nowhere, &key());
    ClusterRunCoordinator::new(&setup, parts, Recorder::new(), stage, signals().unwrap())
}

fn say(conductor: &mut ClusterRunCoordinator, member: u16, said: FromPart) {
    let (at, rtt) = (Instant::now(), Duration::from_millis(1));
    conductor.handle(member, PartEvent::Said { now_ns: 5, at, rtt, said });
}

/// A member's part says that another's machine is lost.
fn lose(conductor: &mut ClusterRunCoordinator, by: u16, host: &str) {
    let (host, why) = (host.to_owned(), "silent".to_owned());
    let what = EventLogEntryKind::HostLost { host, nodes: Vec::new(), why };
    let event = EventLogEntry { at_ns: 1, intended_ns: None, what };
    let notice = serde_json::to_string(&OwnedNotice::Event(event)).unwrap();
    say(conductor, by, FromPart::Notice { notice });
}

fn failed(message: &str, code: u8) -> FromPart {
    FromPart::Failed { message: message.to_owned(), hint: Some("a hint".to_owned()), code }
}

fn lost(conductor: &ClusterRunCoordinator) -> Vec<bool> {
    conductor.members.iter().map(|state| conductor.is_lost(state)).collect()
}

/// What is known of each member's results.
fn results(conductor: &ClusterRunCoordinator) -> Vec<String> {
    let home = tempfile::tempdir().unwrap();
    let folder = RunOutputFolder::create(&home.path().join("out"), &conductor.setup.plan).unwrap();
    let gathered = conductor.fetch(&folder).unwrap();
    let result =
        |(host, path): (String, Result<_, String>)| format!("{host}: {}", path.unwrap_err());
    gathered.members.into_iter().map(result).collect()
}

#[test]
fn each_message_brings_a_part_to_its_stage() {
    let mut conductor = conductor(ClusterRunStage::Binding);
    let messages = [
        (FromPart::Bound { port: 9 }, ClusterRunStage::Binding),
        (FromPart::Prepared, ClusterRunStage::Preparing),
        (FromPart::Reached, ClusterRunStage::Reaching),
        (FromPart::Measured, ClusterRunStage::Measuring),
        (FromPart::Begun, ClusterRunStage::Running),
    ];
    for (message, stage) in messages {
        say(&mut conductor, 1, message);
        assert_eq!(conductor.members[1].through, Some(stage));
    }
    assert_eq!((conductor.members[1].port, conductor.members[1].rtt.as_millis()), (Some(9), 1));
    assert_eq!((conductor.members[0].through, conductor.members[0].port), (None, None));
    // Words between agents change nothing.
    say(&mut conductor, 0, FromPart::News { news: "x".to_owned() });
    assert_eq!(conductor.members[0].through, None);
}

#[test]
fn a_run_begins_when_all_parts_are_through_with_every_stage() {
    let mut conductor = conductor(ClusterRunStage::Binding);
    for member in 0..3 {
        say(&mut conductor, member, FromPart::Bound { port: 9 });
    }
    conductor.next_stage();
    assert_eq!(conductor.stage, ClusterRunStage::Preparing);
    (0..3).for_each(|member| say(&mut conductor, member, FromPart::Begun));
    conductor.until_begun().unwrap();
    assert_eq!(conductor.stage, ClusterRunStage::Running);
    conductor.until_all_know().unwrap();
}

#[test]
fn the_first_failure_before_the_beginning_is_the_reason_with_its_code_and_hint() {
    let mut conductor = conductor(ClusterRunStage::Preparing);
    for member in [1, 0, 2] {
        say(&mut conductor, member, failed(&format!("no memory {member}"), 3));
    }
    let error = conductor.until_begun().unwrap_err();
    assert_eq!(text(&error), "error: host two: no memory 1\nhint: a hint");
    assert_eq!(error.exit_code(), 3);
}

#[test]
fn an_agent_that_refuses_or_goes_before_the_beginning_is_a_failure_of_a_machine() {
    let why = || "no run is here".to_owned();
    for event in [PartEvent::Refused(why()), PartEvent::Gone(why())] {
        let mut conductor = conductor(ClusterRunStage::Binding);
        conductor.handle(2, event);
        // All are over, so that nothing is waited for.
        conductor.handle(0, PartEvent::Gone(String::new()));
        conductor.handle(1, PartEvent::Gone(String::new()));
        let error = conductor.until_begun().unwrap_err();
        assert_eq!(
            (error.to_string().as_str(), error.exit_code()),
            ("host three: no run is here", 4)
        );
    }
}

#[test]
fn a_part_that_ends_before_the_beginning_is_a_failure_too() {
    let mut conductor = conductor(ClusterRunStage::Measuring);
    (0..3).for_each(|member| say(&mut conductor, member, FromPart::Ended));
    let error = conductor.until_begun().unwrap_err();
    assert_eq!(error.to_string(), "host one: its part is over before the run began");
    assert_eq!(error.exit_code(), 4);
}

#[test]
fn after_a_signal_the_exit_code_is_that_of_the_signal() {
    let mut conductor = conductor(ClusterRunStage::Reaching);
    conductor.interrupted = Some(2);
    (0..3).for_each(|member| say(&mut conductor, member, failed("stopped", 5)));
    assert_eq!(conductor.until_begun().unwrap_err().exit_code(), 130);
    assert_eq!((code_of(15), code_of(127), code_of(128)), (143, 255, 255));
}

#[test]
fn a_failure_after_the_beginning_is_a_result_and_no_error() {
    let mut conductor = conductor(ClusterRunStage::Running);
    say(&mut conductor, 0, failed("it broke", 4));
    conductor.handle(1, PartEvent::Gone("cable cut".to_owned()));
    // What an agent says when its part is over changes nothing.
    conductor.handle(0, PartEvent::Gone("done".to_owned()));
    conductor.handle(1, PartEvent::Refused("done".to_owned()));
    assert!(conductor.error.is_none());
    let expected = ["one: it broke", "two: cable cut", "three: its part is not over"];
    assert_eq!(results(&conductor), expected);
}

#[test]
fn of_a_cut_network_the_smaller_side_is_lost_and_its_results_are_not_taken() {
    let mut conductor = conductor(ClusterRunStage::Running);
    lose(&mut conductor, 0, "three");
    assert_eq!(lost(&conductor), [false, false, true]);
    lose(&mut conductor, 2, "one");
    lose(&mut conductor, 2, "two");
    assert_eq!(lost(&conductor), [false, false, false]);
    lose(&mut conductor, 1, "three");
    assert_eq!(lost(&conductor), [false, false, true]);
    say(&mut conductor, 2, FromPart::Ended);
    conductor.handle(0, PartEvent::Gone("x".to_owned()));
    conductor.handle(1, PartEvent::Gone("x".to_owned()));
    assert_eq!(results(&conductor)[2], "three: the other machines went on without it");
}

#[test]
fn of_two_halves_none_is_lost_and_a_host_that_is_no_member_is_ignored() {
    let mut conductor = conductor(ClusterRunStage::Running);
    lose(&mut conductor, 0, "two");
    lose(&mut conductor, 1, "one");
    lose(&mut conductor, 2, "elsewhere");
    assert_eq!(lost(&conductor), [false; 3]);
}

#[test]
fn a_run_is_over_when_all_parts_are_or_are_lost_and_silent() {
    let mut conductor = conductor(ClusterRunStage::Running);
    let home = tempfile::tempdir().unwrap();
    let folder = RunOutputFolder::create(&home.path().join("out"), &conductor.setup.plan).unwrap();
    lose(&mut conductor, 0, "three");
    say(&mut conductor, 0, failed("a", 4));
    say(&mut conductor, 1, failed("b", 4));
    // Nothing was ever received of the third.
    conductor.until_over(&folder).unwrap();
    let expected = ["one: a", "two: b", "three: it is lost to the other machines"];
    assert_eq!(results(&conductor), expected);
}

#[test]
fn a_stage_in_which_nothing_moves_is_overdue_after_its_patience_and_names_who_waits() {
    let ago = |seconds| Instant::now().checked_sub(Duration::from_secs(seconds)).unwrap();
    let mut conductor = conductor(ClusterRunStage::Reaching);
    say(&mut conductor, 0, FromPart::Reached);
    say(&mut conductor, 1, FromPart::Bound { port: 7448 });
    say(&mut conductor, 2, FromPart::Bound { port: 7449 });
    conductor.last_moved = ago(9);
    assert!(conductor.overdue().is_none());
    conductor.last_moved = ago(10);
    let text = text(&conductor.overdue().unwrap());
    let hosts = "host two (10.0.0.2:7447), three (10.0.0.3:7447) has not received";
    assert!(text.contains(hosts) && text.contains("nothing has moved for 10 s"), "{text}");
    // That others are not reached is no progress.
    conductor.last_moved = ago(10);
    say(&mut conductor, 1, FromPart::Unreached { members: vec![2] });
    let text = crate::error::text(&conductor.overdue().unwrap());
    let pair = "no packet comes from host three (10.0.0.3:7449) to host two (10.0.0.2:7448)";
    assert!(text.contains(pair), "{text}");
    say(&mut conductor, 2, FromPart::Notice { notice: "{}".to_owned() });
    assert!(conductor.overdue().is_none());
}

#[test]
fn agents_that_are_not_reached_are_waited_for_less_long_than_nodes_that_are_made() {
    let mut conductor = conductor(ClusterRunStage::Preparing);
    say(&mut conductor, 0, FromPart::Prepared);
    conductor.last_moved = Instant::now().checked_sub(Duration::from_secs(20)).unwrap();
    say_unreached(&mut conductor, 1, &[2]);
    // The third still makes nodes.
    assert!(conductor.overdue().is_none());
    say_unreached(&mut conductor, 2, &[1]);
    let text = text(&conductor.overdue().unwrap());
    assert!(text.contains("within 20 s (nor between one more pair)"), "{text}");
}

fn say_unreached(conductor: &mut ClusterRunCoordinator, member: u16, members: &[u16]) {
    say(conductor, member, FromPart::Unreached { members: members.to_vec() });
}

#[test]
fn a_machine_that_lacks_a_program_is_the_cause_and_not_lost_to_the_one_that_reported_first() {
    let mut conductor = conductor(ClusterRunStage::Preparing);
    say(&mut conductor, 0, failed("the run was stopped: host two is lost", 4));
    say(&mut conductor, 1, failed("node b: there is no program `iperf9` in PATH", 4));
    say(&mut conductor, 2, failed("the run was stopped: host two is lost", 4));
    let error = conductor.until_begun().unwrap_err();
    assert_eq!(error.to_string(), "host two: node b: there is no program `iperf9` in PATH");
}
