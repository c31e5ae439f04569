//! What the main loop knows of the network is what the engine knows, whatever has been changed.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use windtunnel_engine::{Engine, EngineLimits};
use windtunnel_model::plan::{LinkChange, ServiceChange, ServiceUpdate};
use windtunnel_model::profile::PropertySetting;
use windtunnel_model::{NetworkVertex, NodeId, RouterId, ServiceId, Span, Time};

use crate::live::links::*;
use windtunnel_verdict::evidence::ServiceState;

const FILE: &str = "
services: {www: {ports: [80/tcp, 53/udp], replicas: [b, c]}}
nodes: {a: {}, b: {}, c: {}, d: {}}
routers: [r]
links:
  - {between: [a, r], latency: 5ms}
  - {between: [b, r], rate: 8mbit}
  - {between: [c, r]}
  - {between: [d, r]}
";
const WWW: ServiceId = ServiceId(0);

fn lane() -> impl Strategy<Value = Lane> {
    (0usize..8).prop_map(Lane::from_index)
}

fn node() -> impl Strategy<Value = NodeId> {
    (0u32..4).prop_map(NodeId)
}

fn patch() -> impl Strategy<Value = LinkPatch> {
    let rate = option::of(1_000_000u64..20_000_000).prop_map(|rate| {
        let rate = rate.and_then(Rate::from_bits_per_second);
        rate.map_or(PropertySetting::Default, PropertySetting::To)
    });
    let parts = (option::of((0u64..50).prop_map(Span::from_millis)), option::of(rate));
    parts.prop_map(|(latency, rate)| LinkPatch { latency, rate, ..LinkPatch::default() })
}

fn link() -> impl Strategy<Value = EventAction> {
    let change = (vec((lane(), patch()), 0..3), vec((lane(), any::<bool>()), 0..3));
    change.prop_map(|(patches, state)| EventAction::Link(LinkChange { patches, state }))
}

fn partition() -> impl Strategy<Value = EventAction> {
    let cut = prop::sample::select(vec![
        PartitionMode::Between,
        PartitionMode::OneWay,
        PartitionMode::Pairs,
    ]);
    // Which of five vertices is in which of two groups, or in none.
    (prop::array::uniform5(0usize..3), cut).prop_map(|(sides, cut)| {
        let vertex = |number| match number {
            4 => NetworkVertex::Router(RouterId(0)),
            _ => NetworkVertex::Node(NodeId(number)),
        };
        let group = |side| {
            let vertices = (0u32..).zip(&sides).filter(|(_, of)| **of == side);
            vertices.map(|(number, _)| vertex(number)).collect()
        };
        EventAction::Partition { groups: vec![group(0), group(1)], cut }
    })
}

fn service() -> impl Strategy<Value = EventAction> {
    let port = || prop::sample::select(vec!["80/tcp", "53/udp"]);
    let update = prop_oneof![
        3 => (node(), port()).prop_map(|(replica, port)| {
            ServiceUpdate::Registered { replica, port: port.parse().unwrap() }
        }),
        1 => (node(), port()).prop_map(|(replica, port)| {
            ServiceUpdate::Withdrawn { replica, port: port.parse().unwrap() }
        }),
        1 => node().prop_map(|replica| ServiceUpdate::Lost { replica }),
        1 => (node(), any::<bool>()).prop_map(|(replica, healthy)| ServiceUpdate::Health { replica, healthy }),
        1 => (node(), any::<bool>()).prop_map(|(replica, drain)| ServiceUpdate::Drain { replica, drain }),
        1 => (node(), 0u32..9).prop_map(|(replica, weight)| ServiceUpdate::Weight { replica, weight }),
        1 => node().prop_map(|replica| ServiceUpdate::Add { replica }),
        1 => node().prop_map(|replica| ServiceUpdate::Remove { replica }),
    ];
    let change = update.prop_map(|update| ServiceChange { service: WWW, update });
    vec(change, 1..4).prop_map(EventAction::Service)
}

fn action() -> impl Strategy<Value = EventAction> {
    prop_oneof![
        3 => link(),
        2 => (vec(lane(), 1..4), any::<bool>()).prop_map(|(lanes, up)| EventAction::Flap { lanes, up }),
        2 => partition(),
        1 => Just(EventAction::Heal),
        1 => Just(EventAction::Reroute),
        4 => service(),
    ]
}

proptest! {
    #[test]
    fn after_the_same_changes_the_main_loop_and_the_engine_know_the_same(
        actions in vec(action(), 1..40),
    ) {
        let plan = crate::live::testing::plan(FILE);
        let mut engine = Engine::new(&plan, EngineLimits { packet_memory: 1 << 20 });
        let mut links = LinkStates::new(&plan);
        let mut www = ServiceState::new(&plan.services[0]);
        for (millis, action) in (0..).zip(&actions) {
            let at = Time::ZERO + Span::from_millis(millis);
            engine.apply(at, action);
            links.apply(&plan, action);
            let EventAction::Service(changes) = action else { continue };
            for ServiceChange { update, .. } in changes {
                if !update.is_asked_for() {
                    www.follow(update);
                }
                www.applied(update, at, None);
            }
        }
        for (index, state) in links.0.iter().enumerate() {
            let lane = Lane::from_index(index);
            prop_assert_eq!(state.is_up(), engine.is_up(lane));
            prop_assert_eq!(&state.profile, engine.profile(lane));
        }
        let known = engine.services().replicas(WWW).into_iter().map(|replica| replica.state);
        let own = www.replicas.into_iter().map(|replica| replica.state);
        prop_assert_eq!(own.collect::<Vec<_>>(), known.collect::<Vec<_>>());
    }
}
