//! What the links of a live run are like, for who asks and for the log.

use std::collections::BTreeMap;

use serde_json::Value;
use windtunnel_control::{LaneProperties, LaneStatus};
use windtunnel_model::plan::{EventAction, PartitionMode, RouteChange};
use windtunnel_model::state::{LaneChange, LaneCut, LaneState};
use windtunnel_model::word::LaneOperationalState;
use windtunnel_model::{Lane, LinkPatch, LinkProfile, Plan, Rate, TraceUse, Traces};
use windtunnel_trace::event::{EventLogEntryKind, WhyRerouted};

/// The state of every link direction, by lane index.
#[derive(Debug)]
pub(super) struct LinkStates(Vec<LaneState>);

impl LinkStates {
    /// As the run begins.
    pub(super) fn new(plan: &Plan) -> Self {
        LinkStates(LaneState::all(plan))
    }

    /// A change of the network has taken effect. Returns the events that it is, as the log has
    /// them. Those of services are services' own to report.
    pub(super) fn apply(&mut self, plan: &Plan, action: &EventAction) -> Vec<EventLogEntryKind> {
        let mut events = network_events(plan, action);
        let ends = plan.links.iter().map(|link| link.ends.each_ref().map(|end| end.vertex));
        action.each_lane(ends, |lane, change| {
            let Some(state) = self.0.get_mut(lane.index()) else { return };
            events.extend(lane_event(plan, lane, change, &state.profile.traces));
            state.apply(change);
        });
        events
    }

    /// By lane index: what each direction is like, and what it `did`, as far as that is known.
    pub(super) fn statuses(&self, plan: &Plan, did: Vec<LaneStatus>) -> Vec<LaneStatus> {
        let did = did.into_iter().map(Some).chain(std::iter::repeat(None));
        let lanes = self.0.iter().zip(did).enumerate();
        lanes
            .map(|(index, (state, did))| {
                let (link, direction) = names(plan, Lane::from_index(index));
                LaneStatus { link, direction, ..status(state, did.unwrap_or_default()) }
            })
            .collect()
    }

    /// By lane index: all properties, and what those that have changed were in the plan.
    pub(super) fn properties(&self, plan: &Plan) -> Vec<LaneProperties> {
        let lanes = self.0.iter().enumerate().map(|(index, state)| {
            let lane = Lane::from_index(index);
            let (link, direction) = names(plan, lane);
            let planned = &plan.links[lane.link.index()].profiles[index % 2];
            let properties = as_properties(plan, &state.profile);
            let mut changed_from = as_properties(plan, planned);
            changed_from.retain(|key, before| properties.get(key) != Some(before));
            let state = operational_state(state).into();
            LaneProperties { link, direction, state, properties, changed_from }
        });
        lanes.collect()
    }
}

/// What a direction does with packets.
fn operational_state(state: &LaneState) -> LaneOperationalState {
    match state.cut() {
        None => LaneOperationalState::Up,
        Some(LaneCut::Down) => LaneOperationalState::Down,
        Some(LaneCut::Partition) => LaneOperationalState::Parted,
    }
}

fn status(state: &LaneState, did: LaneStatus) -> LaneStatus {
    let profile = &state.profile;
    let traces = &profile.traces;
    let traced = [
        ("latency", traces.latency.is_some()),
        ("rate", traces.rate.is_some()),
        ("loss", traces.loss.is_some()),
    ];
    LaneStatus {
        state: operational_state(state).into(),
        latency_ns: profile.latency.as_nanos(),
        rate_bit_per_s: profile.rate.map(Rate::bits_per_second),
        loss_ppb: profile.loss.long_run().parts_per_billion(),
        traced: traced.iter().filter(|(_, is)| *is).map(|(key, _)| (*key).to_owned()).collect(),
        ..did
    }
}

/// What a change is that is not one of single lanes.
fn network_events(plan: &Plan, action: &EventAction) -> Vec<EventLogEntryKind> {
    match action {
        EventAction::Partition { groups, cut } => {
            let names = |group: &Vec<_>| {
                group.iter().map(|&vertex| plan.vertex_name(vertex).to_owned()).collect()
            };
            let groups = groups.iter().map(names).collect();
            let (one_way, pairs) = (*cut == PartitionMode::OneWay, *cut == PartitionMode::Pairs);
            vec![EventLogEntryKind::Partitioned { groups, one_way, pairs }]
        }
        EventAction::Heal => vec![EventLogEntryKind::Healed],
        EventAction::Route(change) => route_change(plan, change),
        EventAction::Reroute => vec![EventLogEntryKind::Rerouted { why: WhyRerouted::Event }],
        _ => Vec::new(),
    }
}

/// What a change of a lane is that followed these traces before; `None`: one event is that of all
/// lanes.
fn lane_event(
    plan: &Plan,
    lane: Lane,
    change: LaneChange<'_>,
    followed: &Traces,
) -> Option<EventLogEntryKind> {
    let names = || names(plan, lane);
    let event = match change {
        LaneChange::Set(patch) => {
            let (link, direction) = names();
            EventLogEntryKind::LinkSet { link, direction, set: as_set(plan, patch, followed) }
        }
        LaneChange::Up(up) => {
            let (link, direction) = names();
            EventLogEntryKind::LinkState { link, direction, up }
        }
        LaneChange::Flap(up) => {
            let (link, direction) = names();
            EventLogEntryKind::LinkFlap { link, direction, up }
        }
        LaneChange::Parted(_) => return None,
    };
    Some(event)
}

/// A patch as the log has it, with the files of traces that are followed now, and which of those
/// before are followed no more.
fn as_set(plan: &Plan, patch: &LinkPatch, followed: &Traces) -> Value {
    let mut set = serde_json::to_value(patch).unwrap_or_default();
    let Some(map) = set.as_object_mut() else { return set };
    map.remove("traces");
    let changes = [
        ("rate", patch.rate.is_some(), patch.traces.rate, followed.rate),
        ("latency", patch.latency.is_some(), patch.traces.latency, followed.latency),
        ("loss", patch.loss.is_some(), patch.traces.loss, followed.loss),
    ];
    let mut ended = Vec::new();
    for (key, _, new, old) in changes.into_iter().filter(|(_, set, ..)| *set) {
        match (new.and_then(|it| trace_of(plan, it)), old) {
            (Some(trace), _) => {
                map.insert(key.to_owned(), trace.into());
            }
            (None, Some(_)) => ended.push(key),
            (None, None) => {}
        }
    }
    if !ended.is_empty() {
        map.insert("follows-no-more-its-trace-of".to_owned(), ended.join(", ").into());
    }
    set
}

/// A profile as `plan.json` has it, with the files of traces in the place of what follows them.
fn as_properties(plan: &Plan, profile: &LinkProfile) -> BTreeMap<String, Value> {
    let Ok(Value::Object(mut all)) = serde_json::to_value(profile) else { return BTreeMap::new() };
    all.remove("traces");
    let Traces { rate, latency, loss, .. } = profile.traces;
    for (key, traced) in [("rate", rate), ("latency", latency), ("loss", loss)] {
        if let Some(trace) = traced.and_then(|it| trace_of(plan, it)) {
            all.insert(key.to_owned(), trace.into());
        }
    }
    all.into_iter().collect()
}

/// A trace that is followed, as the log has it.
fn trace_of(plan: &Plan, it: TraceUse) -> Option<String> {
    let trace = plan.traces.get(usize::try_from(it.trace).ok()?)?;
    Some(format!("trace {}", trace.file))
}

/// What a change of fixed routes is, as the log has it.
fn route_change(plan: &Plan, change: &RouteChange) -> Vec<EventLogEntryKind> {
    let node = |id: &windtunnel_model::NodeId| plan.nodes[id.index()].name.clone();
    let free = change
        .release
        .iter()
        .map(|(from, to)| EventLogEntryKind::RouteFreed { from: node(from), to: node(to) });
    let fixed = change.fix.iter().map(|route| {
        let names = route.path.iter().map(|&vertex| plan.vertex_name(vertex).to_owned());
        EventLogEntryKind::RouteFixed { path: names.collect() }
    });
    free.chain(fixed).collect()
}

fn names(plan: &Plan, lane: Lane) -> (String, String) {
    (plan.links[lane.link.index()].name.clone(), plan.lane_name(lane))
}

#[cfg(test)]
mod tests {
    mod agreement;

    use windtunnel_model::plan::LinkChange;
    use windtunnel_model::{NetworkVertex, NodeId, Span};

    use super::*;
    use crate::live::testing::plan;

    /// `a` up to `b` is lane 0, `b` down to `a` lane 1, `b` up to `c` lane 2.
    const CHAIN: &str = "nodes: {a: {}, b: {}, c: {}}\n\
                         links: [{between: [a, b], latency: 5ms, rate: 8mbit}, {between: [b, c]}]";

    fn states(links: &LinkStates, plan: &Plan) -> Vec<String> {
        links.statuses(plan, Vec::new()).into_iter().map(|lane| lane.state.to_string()).collect()
    }

    fn lane(index: usize) -> Lane {
        Lane::from_index(index)
    }

    #[test]
    fn a_direction_shows_what_it_was_last_set_to() {
        let plan = plan(CHAIN);
        let mut links = LinkStates::new(&plan);
        let patch = LinkPatch { latency: Some(Span::from_millis(40)), ..LinkPatch::default() };
        let change = LinkChange { patches: vec![(lane(1), patch)], state: Vec::new() };
        let events = links.apply(&plan, &EventAction::Link(change));
        let [EventLogEntryKind::LinkSet { link, direction, set }] = &events[..] else {
            panic!("{events:?}")
        };
        assert_eq!((link.as_str(), direction.as_str()), ("a--b", "b-a"));
        assert_eq!(set["latency"], serde_json::json!("40ms"));
        let lanes = links.statuses(&plan, Vec::new());
        let latencies: Vec<u64> = lanes.iter().map(|lane| lane.latency_ns / 1_000_000).collect();
        assert_eq!(latencies, [5, 40, 0, 0]);
        assert_eq!(lanes[1].rate_bit_per_s, Some(8_000_000), "the rate stays");
    }

    #[test]
    fn properties_that_have_changed_have_what_they_were_when_the_run_began() {
        let plan = plan(CHAIN);
        let mut links = LinkStates::new(&plan);
        let changed = |links: &LinkStates| {
            let lanes = links.properties(&plan).into_iter();
            lanes.map(|lane| lane.changed_from.into_iter().collect()).collect::<Vec<Vec<_>>>()
        };
        assert_eq!(changed(&links), vec![vec![]; 4]);
        let set = |links: &mut LinkStates, latency| {
            let patch = LinkPatch { latency: Some(latency), ..LinkPatch::default() };
            let change = LinkChange { patches: vec![(lane(1), patch)], state: Vec::new() };
            links.apply(&plan, &EventAction::Link(change));
        };
        set(&mut links, Span::from_millis(40));
        let before = ("latency".to_owned(), serde_json::json!("5ms"));
        assert_eq!(changed(&links), [vec![], vec![before], vec![], vec![]]);
        let lane = &links.properties(&plan)[1];
        assert_eq!(lane.properties["latency"], serde_json::json!("40ms"));
        assert_eq!((lane.direction.as_str(), lane.state.as_str()), ("b-a", "up"));
        // What is as it was has not changed.
        set(&mut links, Span::from_millis(5));
        assert_eq!(changed(&links), vec![vec![]; 4]);
    }

    #[test]
    fn a_flap_within_a_flap_is_up_only_when_both_are() {
        let plan = plan(CHAIN);
        let mut links = LinkStates::new(&plan);
        let mut flap = |up| {
            links.apply(&plan, &EventAction::Flap { lanes: vec![lane(0)], up });
            states(&links, &plan)[0].clone()
        };
        assert_eq!(
            [flap(false), flap(false), flap(true), flap(true)],
            ["down", "down", "down", "up"]
        );
    }

    #[test]
    fn a_link_taken_down_stays_down_when_a_partition_heals() {
        let plan = plan(CHAIN);
        let mut links = LinkStates::new(&plan);
        let down = LinkChange { patches: Vec::new(), state: vec![(lane(0), false)] };
        links.apply(&plan, &EventAction::Link(down));
        let vertex = |node| NetworkVertex::Node(NodeId(node));
        let groups = vec![vec![vertex(0)], vec![vertex(1), vertex(2)]];
        let events =
            links.apply(&plan, &EventAction::Partition { groups, cut: PartitionMode::Between });
        let names = vec![vec!["a".to_owned()], vec!["b".to_owned(), "c".to_owned()]];
        let parted = EventLogEntryKind::Partitioned { groups: names, one_way: false, pairs: false };
        assert_eq!(events, [parted]);
        assert_eq!(states(&links, &plan), ["down", "parted", "up", "up"]);
        assert_eq!(links.apply(&plan, &EventAction::Heal), [EventLogEntryKind::Healed]);
        assert_eq!(states(&links, &plan), ["down", "up", "up", "up"]);
    }

    #[test]
    fn a_one_way_partition_cuts_from_the_first_group_to_the_second() {
        let plan = plan(CHAIN);
        let mut links = LinkStates::new(&plan);
        let vertex = |node| vec![NetworkVertex::Node(NodeId(node))];
        let groups = vec![vertex(0), vertex(1)];
        links.apply(&plan, &EventAction::Partition { groups, cut: PartitionMode::OneWay });
        assert_eq!(states(&links, &plan), ["parted", "up", "up", "up"]);
        // Another partition takes its place.
        let groups = vec![vertex(2), vertex(1)];
        links.apply(&plan, &EventAction::Partition { groups, cut: PartitionMode::OneWay });
        assert_eq!(states(&links, &plan), ["up", "up", "up", "parted"]);
    }

    #[test]
    fn a_status_has_what_the_direction_did() {
        let plan = plan(CHAIN);
        let links = LinkStates::new(&plan);
        let did = vec![LaneStatus { delivered_packets: 9, ..LaneStatus::default() }];
        let lanes = links.statuses(&plan, did);
        assert_eq!(
            lanes.iter().map(|lane| lane.delivered_packets).collect::<Vec<_>>(),
            [9, 0, 0, 0]
        );
        assert_eq!((lanes[3].link.as_str(), lanes[3].direction.as_str()), ("b--c", "c-b"));
    }
}
