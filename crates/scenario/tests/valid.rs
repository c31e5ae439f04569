//! Plans that come from another process are held to what files promise of theirs.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/load.rs"]
mod common;

use common::load_text;
use windtunnel_model::plan::{EventAction, LinkChange, ScheduledEvent};
use windtunnel_model::{
    Lane, LinkDirection, LinkId, LinkPatch, NetworkVertex, NodeId, Plan, PortId, Span,
};

fn plan() -> Plan {
    let text = b"nodes:\n  a: {count: 2, run: [sleep, '1'], ready: 'tcp:80'}\n  b: {run: x, after: a}\nrouters: [r]\n\
lans: {office: {}}\nlinks:\n- {between: [a, r], rate: 1mbit, discipline: codel}\n- {between: [b, r], loss: {packets: [1, 3]}}\n\
- {between: [b, office]}\n- {between: [r, office]}\nevents: [{at: 1s, link: a--r, set: {latency: 5ms}}]\n\
expect: [{link: b--r, direction: up, loss: {max: 1%}}]\n";
    load_text("net", text).unwrap().plan
}

/// What is wrong with a plan that has been changed.
#[track_caller]
fn wrong(change: impl FnOnce(&mut Plan)) -> String {
    let mut plan = plan();
    assert_eq!(plan.validate(), Ok(()), "before the change");
    change(&mut plan);
    plan.validate().unwrap_err().to_string()
}

#[test]
fn a_name_that_would_leave_the_run_folder_is_not_a_name_of_a_node() {
    for name in ["../../.ssh", "", "..", "/etc", "a\0b", "a/b", "A", &"a".repeat(64)] {
        let why = wrong(|plan| plan.nodes[2].name = name.to_owned());
        assert!(why.contains("cannot name a node"), "{why}");
    }
    assert!(wrong(|plan| plan.name = "../x".into()).contains("cannot name an experiment"));
    assert!(wrong(|plan| plan.routers[0].name = "../r".into()).contains("cannot name a router"));
    assert!(wrong(|plan| plan.links[0].name = "../l".into()).contains("cannot name a link"));
    assert!(wrong(|plan| plan.nodes[2].interfaces[0].name = "../lo".into()).contains("interface"));
    assert!(wrong(|plan| plan.nodes[1].name = "a-1".into()).contains("twice"));
}

#[test]
fn numbers_that_index_nothing_are_refused() {
    wrong(|plan| plan.nodes[0].interfaces[0].link = LinkId(9));
    wrong(|plan| plan.nodes[0].interfaces[0].port = PortId(u32::MAX));
    wrong(|plan| plan.links[0].ends[0].vertex = NetworkVertex::Node(NodeId(u32::MAX)));
    wrong(|plan| plan.links[0].ends[0].interface = u32::MAX);
    wrong(|plan| plan.links.truncate(1));
    wrong(|plan| plan.nodes.truncate(1));
    wrong(|plan| plan.lans[0].attachments.push(Lane::from_index(900)));
    wrong(|plan| plan.nodes[2].programs[0].after = vec![NodeId(7)]);
    wrong(|plan| {
        let lane = Lane { link: LinkId(77), direction: LinkDirection::Up };
        let change = LinkChange { patches: Vec::new(), state: vec![(lane, true)] };
        plan.events
            .push(ScheduledEvent { at: Span::from_secs(9), action: EventAction::Link(change) });
    });
}

#[test]
fn values_that_no_file_can_ask_for_are_refused() {
    use windtunnel_model::profile::JitterDistribution::Table;
    use windtunnel_model::profile::{
        CodelParameters, FlowQueues, Jitter, LossModel, Overhead, PieParameters, QueueDiscipline,
    };
    let lane = Lane { link: LinkId(0), direction: LinkDirection::Up };
    let change = |patch: LinkPatch| {
        let change = LinkChange { patches: vec![(lane, patch)], state: Vec::new() };
        EventAction::Link(change)
    };
    let none = LinkPatch::default();
    let plan = plan();
    let fq = |flows, quantum| {
        QueueDiscipline::FqCodel(FlowQueues { flows, quantum, codel: CodelParameters::default() })
    };
    let codel = CodelParameters { interval: Span::ZERO, target: Span::ZERO, ecn: true };
    let disciplines = [
        fq(0, 1514),
        fq(1, 0),
        fq(u32::MAX, 1514),
        QueueDiscipline::Codel(codel),
        QueueDiscipline::Pie(PieParameters { update: Span::ZERO, ..PieParameters::default() }),
    ];
    for discipline in disciplines {
        let patch = LinkPatch { discipline: Some(discipline), ..none.clone() };
        plan.validate_action(&change(patch)).unwrap_err();
    }
    let jitter = |table| Some(Jitter { spread: Span::ZERO, distribution: Table(table) });
    let patches = [
        LinkPatch { mtu: Some(0), ..none.clone() },
        LinkPatch { mtu: Some(u32::MAX), ..none.clone() },
        LinkPatch { jitter: jitter(Vec::new()), ..none.clone() },
        LinkPatch { loss: Some(LossModel::Listed(vec![3, 1])), ..none.clone() },
        LinkPatch {
            overhead: Some(windtunnel_model::profile::PropertySetting::To(Overhead(u32::MAX))),
            ..none.clone()
        },
    ];
    for patch in patches {
        plan.validate_action(&change(patch)).unwrap_err();
    }
    assert_eq!(plan.validate_action(&change(none)), Ok(()));
}

#[test]
fn what_programs_share_keeps_its_discipline_and_a_rate_for_their_minimums() {
    use windtunnel_model::Rate;
    use windtunnel_model::profile::{PropertySetting, QueueDiscipline};
    let text = "nodes: {a: {run: [{run: x, send: {min: 100kbit}}]}, b: {}}\nlinks: [{between: [a, b], rate: 1mbit}]";
    let plan = load_text("net", text.as_bytes()).unwrap().plan;
    let lane = Lane { link: LinkId(0), direction: LinkDirection::Up };
    let check = |lane, patch| {
        let change = LinkChange { patches: vec![(lane, patch)], state: Vec::new() };
        plan.validate_action(&EventAction::Link(change)).map_err(|error| error.to_string())
    };
    let rate = |bits| LinkPatch {
        rate: Rate::from_bits_per_second(bits).map(PropertySetting::To),
        ..LinkPatch::default()
    };
    assert_eq!(check(lane, rate(100_000)), Ok(()));
    let error = check(lane, rate(99_999)).unwrap_err();
    assert_eq!(error, "a-b: the rate is less than the 100000 bit/s of the programs' minimums");
    let other =
        || LinkPatch { discipline: Some(QueueDiscipline::DropHead), ..LinkPatch::default() };
    let error = check(lane, other()).unwrap_err();
    assert_eq!(error, "a-b: the discipline of a link that programs share does not change");
    assert_eq!(check(lane.reverse(), other()), Ok(()));
}
