//! Runs over real agents on loopback with parts that the test plays.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use windtunnel_control::part::{FromPart, StopWhy, ToPart};
use windtunnel_model::Span;

use super::fake_part::FakePart;
use super::live::{Live, PATIENCE};
use super::{card, key};
use crate::parts::PartEvent;
use crate::protocol::answers::{AgentAnswer, WatchedRunMessage};
use crate::protocol::questions::AgentQuestion;
use crate::protocol::run::{PartCommand, RunCard, RunSetup};
use crate::protocol::valid::tests::run;
use crate::protocol::{AgentRequest, AllocatedResources};
use crate::{AgentNotice, ClusterKey, PartSessions, PartWorkerCommand};

pub(super) const RUN: u64 = 0xabc;

/// An agent whose next part is `part`.
pub(super) fn agent(name: &str, key: &ClusterKey, join: &[SocketAddr], part: &FakePart) -> Live {
    Live::start_with(name, key, join, |agent| {
        agent.worker = Some(part.worker());
        agent.folder = part.parts_folder();
        agent.keep_results = Span::from_secs(3600);
    })
}

/// A run of two nodes over these agents, as JSON.
fn setup_json(agents: &[&Live], key: &ClusterKey) -> Value {
    let member = |agent: &&Live| {
        let card = card(agent, key);
        json!({"agent": card.agent, "host": card.host, "address": agent.address})
    };
    let mut setup = run();
    setup["run"] = json!(RUN);
    setup["members"] = agents.iter().map(member).collect();
    setup["placement"] = json!([0, agents.len() - 1]);
    setup
}

pub(super) fn setup(agents: &[&Live], key: &ClusterKey) -> RunSetup {
    serde_json::from_value(setup_json(agents, key)).unwrap()
}

/// What the next part says that is not about members which are not reached yet.
#[track_caller]
pub(super) fn said(parts: &PartSessions) -> (u16, FromPart) {
    loop {
        match parts.next_event(PATIENCE).expect("an event comes in time") {
            (_, PartEvent::Said { said: FromPart::Unreached { .. }, .. }) => {}
            (member, PartEvent::Said { said, .. }) => return (member, said),
            other => panic!("{other:?}"),
        }
    }
}

/// Why an agent refuses its part.
#[track_caller]
fn refused(setup: &RunSetup, key: &ClusterKey) -> String {
    match PartSessions::begin(setup, key).next_event(PATIENCE) {
        Some((0, PartEvent::Refused(why))) => why,
        other => panic!("{other:?}"),
    }
}

fn error_of<A: AgentAnswer + std::fmt::Debug>(
    agent: &Live,
    key: &ClusterKey,
    ask: &AgentQuestion<A>,
) -> String {
    match agent.client(key).unwrap().ask(ask) {
        Err(crate::AgentClientError::Refused { message, .. }) => message,
        other => panic!("{other:?}"),
    }
}

fn runs(agent: &Live, key: &ClusterKey) -> Vec<RunCard> {
    agent.client(key).unwrap().ask(&AgentRequest::runs()).unwrap()
}

#[test]
fn a_part_goes_through_all_stages_and_its_files_are_fetched_and_forgotten() {
    let key = key();
    let mut part = FakePart::new();
    let agent = agent("a", &key, &[], &part);
    let mut setup = setup(&[&agent], &key);
    setup.members[0].has =
        AllocatedResources { runs: 1, nodes: 2, cpu_millis: 7, ..AllocatedResources::default() };
    let parts = PartSessions::begin(&setup, &key);

    let given = part.setup();
    let folder = part.parts_folder().join("0000000000000abc");
    assert_eq!((given.run, given.member, &given.placement), (RUN, 0, &setup.placement));
    assert_eq!((given.members, &given.folder), (vec!["a".to_owned()], &folder));
    assert_eq!(given.bind, agent.address.ip());
    let port = agent.address.port();
    assert_eq!(given.ports, (port + 1, port + 100));

    for stage in [FromPart::Bound { port: 9 }, FromPart::Prepared, FromPart::Reached] {
        part.send(&stage);
        assert_eq!(said(&parts), (0, stage));
    }
    parts.order(0, PartCommand::Peers { addresses: vec![None] });
    assert_eq!(part.order(), ToPart::Peers { addresses: vec![None] });
    parts.order(7, PartCommand::Measure);
    parts.order_all(&PartCommand::Measure);
    assert_eq!(part.order(), ToPart::Measure);
    // On its own clock a time is what it is.
    parts
        .order(0, PartCommand::Begin { agent: setup.members[0].agent.clone(), at_ns: 123_456_789 });
    assert_eq!(part.order(), ToPart::Begin { origin_ns: 123_456_789 });

    let here = |over| RunCard { run: RUN, name: "net".to_owned(), nodes: 2, over };
    assert_eq!(runs(&agent, &key), [here(false)]);
    assert_eq!(card(&agent, &key).reserved, setup.members[0].has);
    let not_over = "run 0000000000000abc is not over";
    assert_eq!(error_of(&agent, &key, &AgentRequest::forget(RUN)), not_over);

    fs::create_dir_all(folder.join("nodes/a")).unwrap();
    fs::write(folder.join("part.json"), "{}").unwrap();
    fs::write(folder.join("nodes/a/stdout"), vec![b'x'; 200_000]).unwrap();
    fs::write(folder.join("nodes/a/empty"), "").unwrap();
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(folder.join("part.json"), executable).unwrap();
    part.send(&FromPart::Ended);
    assert_eq!(said(&parts), (0, FromPart::Ended));
    assert_eq!(runs(&agent, &key), [here(true)]);
    assert_eq!(card(&agent, &key).reserved, AllocatedResources::default());

    let home = tempfile::tempdir().unwrap();
    parts.agents().fetch(0, home.path()).unwrap();
    let file = |name: &str| fs::read(home.path().join(name)).unwrap();
    assert_eq!((file("part.json"), file("nodes/a/empty")), (b"{}".to_vec(), Vec::new()));
    assert_eq!(file("nodes/a/stdout"), vec![b'x'; 200_000]);
    let is_executable = |name: &str| {
        fs::metadata(home.path().join(name)).unwrap().permissions().mode() & 0o100 != 0
    };
    assert_eq!((is_executable("part.json"), is_executable("nodes/a/stdout")), (true, false));

    parts.agents().forget(0).unwrap();
    assert!(!folder.exists() && runs(&agent, &key).is_empty());
    let unknown = "no run 0000000000000abc is here";
    assert_eq!(error_of(&agent, &key, &AgentRequest::forget(RUN)), unknown);
    assert_eq!(error_of(&agent, &key, &AgentRequest::watch(RUN)), unknown);
}

#[test]
fn files_that_another_watcher_still_needs_are_kept_until_it_goes() {
    let key = key();
    let mut part = FakePart::new();
    let agent = agent("a", &key, &[], &part);
    let setup = setup(&[&agent], &key);
    let founder = PartSessions::begin(&setup, &key);
    let folder = part.setup().folder;
    fs::create_dir_all(&folder).unwrap();
    part.send(&FromPart::Begun);
    assert_eq!(said(&founder), (0, FromPart::Begun));
    let second = PartSessions::watch(&setup, &key);
    // The part's next message reaches both, so the second one watches by then.
    while second.next_event(std::time::Duration::from_millis(1)).is_none() {
        part.send(&FromPart::Measured);
    }
    part.send(&FromPart::Ended);
    while said(&second).1 != FromPart::Ended {}
    second.agents().forget(0).unwrap();
    assert!(folder.exists());
    drop(second);
    let gone = |folder: &Path| !folder.exists();
    until(&agent, &key, |_| gone(&folder));
    drop(founder);
}

/// Waits until the agent, which is asked again and again, has done something.
fn until(agent: &Live, key: &ClusterKey, done: impl Fn(&[RunCard]) -> bool) {
    let patience = std::time::Instant::now() + PATIENCE;
    while !done(&runs(agent, key)) {
        assert!(std::time::Instant::now() < patience, "it is not done in time");
    }
}

#[test]
fn a_run_whose_founder_goes_before_it_begins_is_stopped() {
    let key = key();
    let mut part = FakePart::new();
    let agent = agent("a", &key, &[], &part);
    let parts = PartSessions::begin(&setup(&[&agent], &key), &key);
    part.setup();
    drop(parts);
    let why = "the process that started the run has gone".to_owned();
    assert_eq!(part.order(), ToPart::Stop(StopWhy::Failed(why)));
    part.send(&FromPart::Ended);
    until(&agent, &key, |runs| runs[0].over);
}

#[test]
fn a_run_that_has_begun_goes_on_without_its_founder() {
    let key = key();
    let part = FakePart::new();
    let agent = agent("a", &key, &[], &part);
    let setup = setup(&[&agent], &key);
    let parts = PartSessions::begin(&setup, &key);
    part.setup();
    parts.order(0, PartCommand::Begin { agent: setup.members[0].agent.clone(), at_ns: 1 });
    assert_eq!(part.order(), ToPart::Begin { origin_ns: 1 });
    drop(parts);
    let watcher = PartSessions::watch(&setup, &key);
    watcher.order(0, PartCommand::Stop { why: StopWhy::Asked });
    // No order came before this one.
    assert_eq!(part.order(), ToPart::Stop(StopWhy::Asked));
}

#[test]
fn a_limit_of_the_agent_that_did_not_hold_is_reported_also_to_its_runs() {
    let (key, part, lapses) = (key(), FakePart::new(), crate::LimitLapseLog::default());
    let agent = Live::start_with("a", &key, &[], |agent| {
        agent.worker = Some(part.worker());
        agent.folder = part.parts_folder();
        agent.limits.lapses = lapses.clone();
    });
    let _parts = PartSessions::begin(&setup(&[&agent], &key), &key);
    part.setup();
    let why = "cpu.max of its control group was changed".to_owned();
    lapses.add(why.clone());
    agent.until(|notice| *notice == AgentNotice::NotHeld { why: why.clone() });
    assert_eq!(part.order(), ToPart::NotHeld { why });
}

#[test]
fn a_run_that_cannot_be_done_here_is_refused_with_the_reason() {
    let key = key();
    let part = FakePart::new();
    let first = agent("a", &key, &[], &part);
    let good = setup_json(&[&first], &key);
    let with = |path: &str, value: Value| -> RunSetup {
        let mut json = good.clone();
        *json.pointer_mut(path).unwrap() = value;
        serde_json::from_value(json).unwrap()
    };
    let own = card(&first, &key).agent;
    let text = refused(&with("/members/0/agent", json!("7")), &key);
    assert_eq!(text, format!("member 0 is another agent: this one is {own}"));
    let _parts = PartSessions::begin(&with("/run", json!(RUN)), &key);
    part.setup();
    let text = refused(&with("/run", json!(RUN)), &key);
    assert_eq!(text, "run 0000000000000abc is here already");

    let without = Live::start("b", &key, &[]);
    assert_eq!(refused(&setup(&[&without], &key), &key), "this agent does no runs");
    let missing = Live::start_with("c", &key, &[], |agent| {
        agent.worker =
            Some(PartWorkerCommand { program: "/no/such/program".into(), arguments: Vec::new() });
        agent.folder = part.parts_folder().join("c");
    });
    let text = refused(&setup(&[&missing], &key), &key);
    assert!(text.starts_with("cannot start /no/such/program: No such file"), "{text}");
    assert!(runs(&missing, &key).is_empty());
}

#[test]
fn the_nodes_of_runs_that_are_there_count_against_the_limit_of_the_next() {
    let key = key();
    let part = FakePart::new();
    let agent = Live::start_with("a", &key, &[], |agent| {
        agent.worker = Some(part.worker());
        agent.folder = part.parts_folder();
        agent.limits.nodes = Some(3);
    });
    let first = setup(&[&agent], &key);
    let _parts = PartSessions::begin(&first, &key);
    part.setup();
    let second = RunSetup { run: 1, ..first };
    let text = "nodes: 2 asked for, 2 in use, and the machine's owner allows 3";
    assert_eq!(refused(&second, &key), text);
    assert_eq!(card(&agent, &key).nodes_max, Some(3));
}

#[test]
fn a_part_whose_process_dies_has_failed_and_leaves_nothing() {
    let key = key();
    let home = tempfile::tempdir().unwrap();
    let agent = Live::start_with("a", &key, &[], |agent| {
        let arguments = ["-c", "exit 3"].map(Into::into).into();
        agent.worker = Some(PartWorkerCommand { program: "/bin/sh".into(), arguments });
        agent.folder = home.path().join("parts");
    });
    let setup = setup(&[&agent], &key);
    let parts = PartSessions::begin(&setup, &key);
    let message = "its process has ended: exit status: 3".to_owned();
    assert_eq!(said(&parts), (0, FromPart::Failed { message, hint: None, code: 5 }));
    assert!(runs(&agent, &key).is_empty());
    assert_eq!(fs::read_dir(home.path().join("parts")).unwrap().count(), 0);
}

#[test]
fn a_failed_part_is_reported_to_its_watchers_with_its_own_words_and_code() {
    let key = key();
    let mut part = FakePart::new();
    let agent = agent("a", &key, &[], &part);
    let parts = PartSessions::begin(&setup(&[&agent], &key), &key);
    let folder = part.setup().folder;
    fs::create_dir_all(&folder).unwrap();
    let failed = FromPart::Failed { message: "no".into(), hint: Some("try again".into()), code: 4 };
    part.send(&failed);
    assert_eq!(said(&parts), (0, failed));
    until(&agent, &key, <[RunCard]>::is_empty);
    assert!(!folder.exists());
}

#[test]
fn news_of_a_part_reach_the_other_in_order_and_its_failure_last() {
    let key = key();
    let (mut one, mut two) = (FakePart::new(), FakePart::new());
    let a = agent("a", &key, &[], &one);
    let b = agent("b", &key, &[a.address], &two);
    a.until(|notice| *notice == AgentNotice::Joined(b.address));
    let setup = setup(&[&a, &b], &key);
    let parts = PartSessions::begin(&setup, &key);
    assert_eq!((one.setup().member, two.setup().member), (0, 1));
    // A part counts as prepared when both agents have the run.
    one.send(&FromPart::Prepared);
    two.send(&FromPart::Prepared);
    let mut prepared = [said(&parts), said(&parts)];
    prepared.sort_by_key(|(member, _)| *member);
    assert_eq!(prepared, [(0, FromPart::Prepared), (1, FromPart::Prepared)]);

    for number in 0..100 {
        one.send(&FromPart::News { news: number.to_string() });
    }
    for number in 0..100 {
        assert_eq!(two.order(), ToPart::News { member: 0, news: number.to_string() });
    }
    two.send(&FromPart::News { news: "back".to_owned() });
    assert_eq!(one.order(), ToPart::News { member: 1, news: "back".to_owned() });
    one.send(&FromPart::Failed { message: "it broke".to_owned(), hint: None, code: 4 });
    let why = "it broke".to_owned();
    assert_eq!(two.order(), ToPart::Lost { member: 0, why, apart: false });
}

#[test]
fn a_begin_by_the_clock_of_another_agent_is_converted_and_one_by_no_agents_stops_the_part() {
    let key = key();
    let (one, two) = (FakePart::new(), FakePart::new());
    let a = agent("a", &key, &[], &one);
    let b = agent("b", &key, &[a.address], &two);
    let clock_error = loop {
        let peers = card(&b, &key).peers;
        let known = peers.iter().find(|peer| peer.address == a.address);
        if let Some(clock) = known.and_then(|peer| peer.clock) {
            break clock.error_ns;
        }
    };
    let setup = setup(&[&a, &b], &key);
    let parts = PartSessions::begin(&setup, &key);
    one.setup();
    two.setup();
    let at_ns = 1 << 50;
    parts.order_all(&PartCommand::Begin { agent: setup.members[0].agent.clone(), at_ns });
    assert_eq!(one.order(), ToPart::Begin { origin_ns: at_ns });
    let ToPart::Begin { origin_ns } = two.order() else { panic!("it does not begin") };
    // Both agents have the clock of this machine.
    assert!(origin_ns.abs_diff(at_ns) <= clock_error, "{origin_ns} with ±{clock_error}");

    parts.order(0, PartCommand::Begin { agent: "77".to_owned(), at_ns });
    let why = "the clock of agent 77 is not known here".to_owned();
    assert_eq!(one.order(), ToPart::Stop(StopWhy::Failed(why)));
}

#[test]
fn an_agent_that_ends_says_so_to_the_other_parts_and_leaves_no_files() {
    let key = key();
    let (one, two) = (FakePart::new(), FakePart::new());
    let a = agent("a", &key, &[], &one);
    let b = agent("b", &key, &[a.address], &two);
    a.until(|notice| *notice == AgentNotice::Joined(b.address));
    let _parts = PartSessions::begin(&setup(&[&a, &b], &key), &key);
    let folder = one.setup().folder;
    fs::create_dir_all(&folder).unwrap();
    two.setup();
    drop(a);
    assert!(!folder.exists());
    match two.order() {
        ToPart::Lost { member: 0, why, .. } => assert_eq!(why, "its agent ends"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_agent_that_lingers_stops_its_runs_and_ends_when_their_results_are_fetched() {
    let key = key();
    let mut part = FakePart::new();
    let mut agent = Live::start_with("a", &key, &[], |agent| {
        agent.worker = Some(part.worker());
        agent.folder = part.parts_folder();
        agent.linger = Some(Span::from_secs(600));
    });
    let parts = PartSessions::begin(&setup(&[&agent], &key), &key);
    let folder = part.setup().folder;
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("part.json"), "{}").unwrap();
    agent.end();
    agent.until(|notice| *notice == AgentNotice::Lingers(Span::from_secs(600)));
    assert_eq!(part.order(), ToPart::Stop(StopWhy::Asked));
    part.send(&FromPart::Ended);
    assert_eq!(said(&parts), (0, FromPart::Ended));
    let home = tempfile::tempdir().unwrap();
    parts.agents().fetch(0, &home.path().join("0")).unwrap();
    assert!(home.path().join("0/part.json").exists());
    parts.agents().forget(0).unwrap();
    agent.until(|notice| *notice == AgentNotice::Ends);
    assert!(!folder.exists());
}

#[test]
fn results_that_are_not_kept_expire_with_a_notice_once_their_watcher_has_gone() {
    let key = key();
    let mut part = FakePart::new();
    let agent = Live::start_with("a", &key, &[], |agent| {
        agent.worker = Some(part.worker());
        agent.folder = part.parts_folder();
        agent.keep_results = Span::ZERO;
    });
    let parts = PartSessions::begin(&setup(&[&agent], &key), &key);
    let folder = part.setup().folder;
    fs::create_dir_all(&folder).unwrap();
    part.send(&FromPart::Ended);
    assert_eq!(said(&parts), (0, FromPart::Ended));
    drop(parts);
    let notice = agent.until(|notice| matches!(notice, AgentNotice::Expired { .. }));
    let expired = AgentNotice::Expired { run: RUN, name: "net".to_owned(), removed: Ok(()) };
    assert_eq!((notice, folder.exists()), (expired, false));
    let text = error_of(&agent, &key, &AgentRequest::watch(RUN));
    assert!(text.starts_with("the results of run 0000000000000abc have expired"), "{text}");
}

#[test]
fn a_late_watcher_of_a_run_that_is_over_gets_the_run_and_its_end() {
    let key = key();
    let mut part = FakePart::new();
    let agent = agent("a", &key, &[], &part);
    let setup = setup(&[&agent], &key);
    let parts = PartSessions::begin(&setup, &key);
    part.setup();
    part.send(&FromPart::Ended);
    assert_eq!(said(&parts), (0, FromPart::Ended));
    let answer = agent.client(&key).unwrap().ask(&AgentRequest::watch(RUN)).unwrap();
    assert_eq!(answer, WatchedRunMessage::Run(Box::new(setup.clone())));
    assert_eq!(said(&PartSessions::watch(&setup, &key)), (0, FromPart::Ended));
}
