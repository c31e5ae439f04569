//! Tests of the machines of a run, as they are led.

use windtunnel_cluster::protocol::MachineIneligibility;

use super::*;
use crate::error::text;
use crate::starting::{AgentLaunchMethod, StartedAgent};
use crate::tests::{Recorder, agent, key, numbered, unused};

fn find(hosts: &[String], ssh: &str, key: &ClusterKey) -> Result<DiscoveredMachines, LeadError> {
    let machines = MachineSelection {
        hosts: hosts.to_vec(),
        ssh: ssh.parse().unwrap(),
        remote_windtunnel: None,
        clock_offsets: None,
    };
    let progress: Arc<dyn ClusterRunObserver> = Recorder::new();
    machines.find(key, &progress)
}

fn names(found: &DiscoveredMachines) -> Vec<&str> {
    found.cards.iter().map(|card| card.host.as_str()).collect()
}

#[test]
fn a_named_agent_is_asked_for_the_others_and_each_machine_is_found_once() {
    let key = key();
    let cards = vec![numbered("a", 1), numbered("b", 2), numbered("c", 3)];
    let agent = agent(&key, cards);
    let address = agent.address().to_string();
    let named = |more: &[&str]| -> Vec<String> {
        let more = more.iter().map(|name| (*name).to_owned());
        [address.clone()].into_iter().chain(more).collect()
    };
    let found = find(&named(&["c", "a", "c"]), "false", &key).unwrap();
    assert_eq!((names(&found), found.started.agents().len()), (vec!["a", "c"], 0));
    let found = find(&named(&["all"]), "false", &key).unwrap();
    assert_eq!(names(&found), ["a", "b", "c"]);
}

#[test]
fn machines_that_can_have_no_nodes_are_refused_with_their_names_reasons_and_a_hint() {
    let key = key();
    let mut cards = vec![numbered("a", 1), numbered("b", 2), numbered("c", 3)];
    let unfit = |why: &str, hint: Option<&str>| {
        Some(MachineIneligibility { why: why.to_owned(), hint: hint.map(str::to_owned) })
    };
    cards[1].unfit = unfit("no namespaces", None);
    cards[2].unfit = unfit("no devices", Some("load veth"));
    let agent = agent(&key, cards);
    let address = agent.address().to_string();
    let error = find(&["all".to_owned(), address.clone()], "false", &key).err().unwrap();
    assert_eq!(
        text(&error),
        "error: host b can have no nodes: no namespaces; host c can have no nodes: no devices\n\
         hint: load veth; leave it out of --hosts, or mend it and start its agent again"
    );
    let found = find(&[address, "a".to_owned()], "false", &key).unwrap();
    assert_eq!(names(&found), ["a"]);
}

#[test]
fn what_is_known_of_clocks_does_not_reach_agents_that_run_already() {
    let key = key();
    let agent = agent(&key, vec![numbered("a", 1), numbered("b", 2)]);
    let hosts = vec![agent.address().to_string(), "b".to_owned()];
    let clock_offsets = Some(Span::from_micros(50));
    let ssh = "false".parse().unwrap();
    let machines = MachineSelection { hosts, ssh, remote_windtunnel: None, clock_offsets };
    let recorder = Recorder::new();
    let progress: Arc<dyn ClusterRunObserver> = Arc::<Recorder>::clone(&recorder);
    machines.find(&key, &progress).unwrap();
    assert_eq!(
        recorder.take(),
        ["--clock-offsets is for agents that this command starts: those on a, b run already, and \
          have what they were started with"]
    );
}

#[test]
fn an_agent_with_another_key_is_an_error_of_its_own() {
    let agent = agent(&key(), vec![numbered("a", 1)]);
    let error = find(&[agent.address().to_string()], "false", &key()).err().unwrap();
    assert!(error.to_string().ends_with("has another key"), "{error}");
    assert_eq!(error.exit_code(), 2);
}

#[test]
fn a_name_that_ssh_could_take_for_something_else_is_not_given_to_it() {
    let key = key();
    for name in ["no such host", "-oProxyCommand=x", "a;b"] {
        let error = find(&[name.to_owned()], "false", &key).err().unwrap();
        assert_eq!(error.exit_code(), 2, "{name}");
        assert!(text(&error).contains("hint: "), "{}", text(&error));
    }
    assert!(is_plain("ann@m-1.example_x") && !is_plain("-x") && !is_plain("a b"));
    assert!(!is_plain("a:1") && !is_plain("$(x)"));
}

#[test]
fn where_no_agent_answers_one_is_started_and_found_by_what_it_announces() {
    let key = key();
    let agent = agent(&key, vec![numbered("m", 1)]);
    let ssh = format!("sh -c 'echo windtunnel agent at {}; cat >/dev/null'", agent.address());
    let named = unused().to_string();
    let found = find(std::slice::from_ref(&named), &ssh, &key).unwrap();
    assert_eq!(names(&found), ["m"]);
    let started = &found.started.agents()[0];
    assert_eq!((started.name.as_str(), started.by), (named.as_str(), AgentLaunchMethod::Ssh));
    assert_eq!(started.address(), numbered("m", 1).address);
}

#[test]
fn where_none_can_be_started_the_error_says_why() {
    let named = unused().to_string();
    let error = find(std::slice::from_ref(&named), "sh -c 'exit 127'", &key()).err().unwrap();
    let start = format!("no agent answers at {named}, and none can be started there: sh");
    assert!(error.to_string().starts_with(&start), "{error}");
    assert_eq!(error.exit_code(), 4);
}

#[test]
fn started_agents_need_a_clock_of_each_other_in_both_directions() {
    let key = key();
    let mut cards = [numbered("a", 1), numbered("b", 2)];
    let fake = agent(&key, cards.to_vec());
    let client = AgentClient::connect(&fake.address().to_string(), &key).unwrap();
    let (name, card) = ("m1".to_owned(), cards[0].clone());
    let mut started = LaunchedAgents::default();
    started.agents.push(StartedAgent { name, by: AgentLaunchMethod::Ssh, client, card });
    let numbers = [cards[0].agent.clone(), cards[1].agent.clone()];
    let members: BTreeSet<&str> = numbers.iter().map(String::as_str).collect();
    let judge = |cards: &[AgentDescription]| {
        let (hosts, silent, throughput) = (cards.to_vec(), Vec::new(), Vec::new());
        stranger(&ClusterHosts { asked: 0, hosts, silent, throughput }, &members, &started)
    };
    let unknown = "the agent on m1 (10.0.0.1:7447) is not known to the others";
    assert_eq!(judge(&cards[1..]).as_deref(), Some(unknown));
    let unreached =
        "the agents on m1 (10.0.0.1:7447) and b (10.0.0.2:7447) do not reach each other";
    assert_eq!(judge(&cards).as_deref(), Some(unreached));
    crate::sample::knows(&mut cards, 0, 1, 1000);
    assert_eq!(judge(&cards).as_deref(), Some(unreached));
    crate::sample::knows(&mut cards, 1, 0, 1000);
    assert_eq!(judge(&cards), None);
    // A clock that is not known yet is none.
    cards[1].peers[0].clock = None;
    assert_eq!(judge(&cards).as_deref(), Some(unreached));
}
