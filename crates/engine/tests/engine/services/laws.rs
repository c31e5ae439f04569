//! Laws over random networks, services and packets.

use std::collections::BTreeMap;

use proptest::prelude::*;
use windtunnel_model::plan::{
    EventAction, FlowPinningScope, Hash, LinkChange, LoadBalancingPolicy, ReplicaLossResponse,
    ServiceUpdate,
};
use windtunnel_model::{Lane, LinkPatch, NodeId, Span};
use windtunnel_wire::{build, tcp};

use super::*;
use crate::support::{MS, Out};

/// Something that happens.
#[derive(Debug, Clone)]
enum Step {
    /// The client opens, uses or leaves a connection from this port.
    Open(u16),
    Use(u16),
    Close(u16),
    /// It sends a datagram.
    Ask(u16),
    /// Something else of it, to another address.
    Other(u16),
    /// A lane gets another latency, goes down or up.
    Slow(usize, u64),
    State(usize, bool),
    Reroute,
    /// What is known of a replica changes.
    Update(u32, u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (1..6u16).prop_map(Step::Open),
        6 => (1..6u16).prop_map(Step::Use),
        1 => (1..6u16).prop_map(Step::Close),
        3 => (1..6u16).prop_map(Step::Ask),
        2 => (1..6u16).prop_map(Step::Other),
        2 => (0..12usize, 0..60u64).prop_map(|(lane, millis)| Step::Slow(lane, millis)),
        1 => (2..12usize, any::<bool>()).prop_map(|(lane, up)| Step::State(lane, up)),
        1 => Just(Step::Reroute),
        3 => (1..4u32, 0..8u8).prop_map(|(replica, what)| Step::Update(replica, what)),
    ];
    proptest::collection::vec(step, 1..60)
}

fn policies() -> impl Strategy<Value = LoadBalancingPolicy> {
    prop_oneof![
        Just(LoadBalancingPolicy::Nearest),
        Just(LoadBalancingPolicy::Hops),
        Just(LoadBalancingPolicy::Weighted),
        Just(LoadBalancingPolicy::LeastConnections),
        Just(LoadBalancingPolicy::Hash),
        Just(LoadBalancingPolicy::Ordered),
    ]
}

fn update(replica: u32, what: u8) -> ServiceUpdate {
    let replica = NodeId(replica);
    match what {
        0 => ServiceUpdate::Withdrawn { replica, port: port("80/tcp") },
        1 => ServiceUpdate::Lost { replica },
        2 => ServiceUpdate::Drain { replica, drain: true },
        3 => ServiceUpdate::Health { replica, healthy: false },
        4 => ServiceUpdate::Remove { replica },
        5 => ServiceUpdate::Add { replica },
        6 => ServiceUpdate::Health { replica, healthy: true },
        _ => ServiceUpdate::Registered { replica, port: port("80/tcp") },
    }
}

fn open(from: u16, initial: u32) -> Vec<u8> {
    build::tcp(client(from), www(), initial, tcp::SYN, b"")
}

/// Plays steps, a second apart, in which everything arrives; what came out of each.
fn play(net: &mut Net, steps: &[Step]) -> Vec<Vec<Out>> {
    let mut outs = Vec::new();
    for (number, step) in (0u32..).zip(steps) {
        let at = (u64::from(number) + 1) * 1000 * MS;
        let before = net.out.len();
        match *step {
            Step::Open(from) => net.call(at, &open(from, number * 1000)),
            Step::Use(from) => net.call(at, &data(from, b"data")),
            Step::Close(from) => {
                net.call(at, &build::tcp(client(from), www(), 1002, tcp::FIN | tcp::ACK, b""));
            }
            Step::Ask(from) => net.call(at, &query(from)),
            Step::Other(from) => net.call(at, &other(from)),
            Step::Slow(lane, millis) => {
                let latency = Some(Span::from_millis(millis));
                net.patch(
                    at,
                    Lane::from_index(lane),
                    LinkPatch { latency, ..LinkPatch::default() },
                );
            }
            Step::State(lane, up) => {
                let state = vec![(Lane::from_index(lane), up)];
                net.apply(at, &EventAction::Link(LinkChange { patches: Vec::new(), state }));
            }
            Step::Reroute => net.apply(at, &EventAction::Reroute),
            Step::Update(replica, what) => {
                if !net.plan.services.is_empty() {
                    net.update(at, update(replica, what));
                }
            }
        }
        net.run_until(at + 999 * MS);
        outs.push(net.out[before..].to_vec());
    }
    outs
}

/// Flows that the table has, but for those that close and those whose time is over.
fn open_flows(net: &Net) -> u64 {
    let pinned = net.engine.services().pinned(WWW, usize::MAX);
    let open = pinned
        .iter()
        .filter(|flow| flow.state != windtunnel_model::word::ServiceFlowState::Closing);
    open.count().try_into().unwrap()
}

/// A packet of the client to the web server, which no service is at.
fn other(from: u16) -> Vec<u8> {
    build::udp(client(from), (Ipv4Addr::new(10, 0, 3, 1), 80).into(), &[3; 300])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// An established connection stays with its replica whatever changes, here also where routers
    /// are apart: all packets of the client meet the same one. The counts are those of the pins.
    #[test]
    fn a_pinned_connection_never_changes_its_replica(
        steps in steps(), policy in policies(), [reset, apart, maglev] in any::<[bool; 3]>(),
    ) {
        let on_loss = if reset { ReplicaLossResponse::Reset } else { ReplicaLossResponse::Silent };
        let is_apart = apart && policy != LoadBalancingPolicy::LeastConnections;
        let pins = if is_apart { FlowPinningScope::PerRouter } else { FlowPinningScope::Shared };
        let hash = if maglev { Hash::Maglev } else { Hash::Rendezvous };
        let mut net = world(Service { policy, hash, pins, on_loss, ..service() });
        let outs = play(&mut net, &steps);
        // By port: the replica that the last connection's first segment came to.
        let mut replicas: BTreeMap<u16, u32> = BTreeMap::new();
        for (step, outs) in steps.iter().zip(outs) {
            let came = outs.iter().map(|out| out.port).find(|port| [NEAR, FAR, ORIGIN].contains(port));
            match step {
                Step::Open(from) => {
                    replicas.remove(from);
                }
                Step::Use(from) => {
                    if let Some(replica) = came {
                        let known = *replicas.entry(*from).or_insert(replica);
                        prop_assert_eq!(known, replica, "port {}", from);
                    }
                }
                _ => {}
            }
        }
        net.check_conservation();
        // Every second all pins are looked at, and those whose time is over leave the counts.
        let before = open_flows(&net);
        let at = net.now.as_nanos();
        net.run_until(at + 1_100 * MS);
        let live: u64 = (0..net.engine.services().replicas(WWW).len())
            .map(|replica| net.counters(replica))
            .map(|it| it.live_connections + it.live_flows)
            .sum();
        let now = open_flows(&net);
        prop_assert!((now..=before).contains(&live), "{} of {} to {}", live, now, before);
    }

    /// What is for no service is the same bytes at the same times, with services and without.
    #[test]
    fn what_matches_nothing_is_not_touched(steps in steps(), policy in policies()) {
        let mut with = world(Service { policy, ..service() });
        let mut without = Net::new(network());
        let others = |outs: Vec<Vec<Out>>| -> Vec<Vec<Out>> {
            let is_other = |step: &Step| matches!(step, Step::Other(_));
            steps.iter().zip(outs).filter(|(step, _)| is_other(step)).map(|(_, out)| out).collect()
        };
        let (with, without) = (play(&mut with, &steps), play(&mut without, &steps));
        prop_assert_eq!(others(with), others(without));
    }

    /// The same calls give the same bytes.
    #[test]
    fn a_run_can_be_repeated(steps in steps(), policy in policies()) {
        let run = || {
            let mut net = world(Service { policy, ..service() });
            let outs = play(&mut net, &steps);
            (outs, net.engine.services().replicas(WWW), *net.engine.services().counters(WWW))
        };
        prop_assert_eq!(run(), run());
    }
}
