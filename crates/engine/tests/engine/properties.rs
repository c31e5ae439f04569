//! What holds for every network: conservation, order, determinism.

pub(crate) mod strategy;

use proptest::prelude::*;
use windtunnel_engine::{Engine, RecordSettings};
use windtunnel_model::plan::EventAction;
use windtunnel_model::profile::{PacketReordering, PropertySetting};
use windtunnel_model::{Lane, LinkPatch, LinkProfile, NetworkVertex, NodeId, Plan};
use windtunnel_wire::{build, ecn};

use crate::support::{Net, Out, Topology, US, partition, path, segments, up};
use strategy::{Step, profile, steps};

/// Plays steps over a network, perhaps with everything recorded.
pub(crate) fn play(plan: &Plan, steps: &[(u64, Step)], memory: u64, recorded: bool) -> Net {
    play_with(plan, steps, memory, |engine| {
        engine.recorder_mut().record(recorded.then(RecordSettings::default));
    })
}

/// The same with an engine that was prepared.
pub(crate) fn play_with(
    plan: &Plan,
    steps: &[(u64, Step)],
    memory: u64,
    prepare: impl FnOnce(&mut Engine),
) -> Net {
    let mut net = Net::with_memory(plan.clone(), memory);
    prepare(&mut net.engine);
    // A record has no time 0.
    let mut at = 1;
    for (index, (pause, step)) in steps.iter().enumerate() {
        at += pause;
        play_step(&mut net, at, u32::try_from(index).unwrap(), step);
        net.check_conservation();
    }
    net.finish();
    net.check_conservation();
    let empty = (0..plan.links.len() * 2).map(Lane::from_index);
    assert!(empty.map(|lane| net.engine.in_lane_packets(lane)).all(|inside| inside == 0));
    net
}

fn play_step(net: &mut Net, at: u64, tag: u32, step: &Step) {
    match step {
        Step::Packet { port, ip_len } => {
            let (from, to) = ends(net, *port);
            let mut payload = vec![7; ip_len - 28];
            payload[..4].copy_from_slice(&tag.to_be_bytes());
            let frame = build::with_ecn(build::udp(from, to, &payload), 2);
            net.send(at, *port, Default::default(), &frame);
        }
        Step::Train { port, payload, gso_size } => {
            let (from, to) = ends(net, *port);
            let (frame, header) =
                build::tcp_train(from, to, tag << 17, 0x10, &vec![5; *payload], *gso_size);
            net.send(at, *port, header, &frame);
        }
        Step::Patch { link, patch } => net.patch(at, up(*link), (**patch).clone()),
        Step::State { link, up: state } => net.set_up(at, up(*link), *state),
        Step::Part => {
            let groups = [0, 1].map(|id| vec![NetworkVertex::Node(NodeId(id))]);
            let router = vec![NetworkVertex::Router(windtunnel_model::RouterId(0))];
            let [a, b] = groups;
            net.apply(at, &partition(vec![a, [b, router].concat()]));
        }
        Step::Heal => net.apply(at, &EventAction::Heal),
    }
}

fn ends(net: &Net, port: u32) -> (std::net::SocketAddr, std::net::SocketAddr) {
    let from = usize::try_from(port).unwrap();
    (net.socket(from), net.socket(1 - from))
}

fn summary(net: &Net) -> (Vec<Out>, Vec<String>) {
    let lanes = (0..net.plan.links.len() * 2).map(Lane::from_index);
    (net.out.clone(), lanes.map(|lane| format!("{:?}", net.engine.lane(lane))).collect())
}

/// Four stations and a router on a LAN, each with its own properties, and a node beyond the router.
fn lan(profiles: &[LinkProfile]) -> Plan {
    let mut plan = Topology::new(3);
    let office = plan.lan("office");
    let mut stations: Vec<NetworkVertex> =
        ["a", "b", "c", "d"].iter().map(|name| plan.node(name)).collect();
    let far = plan.node("far");
    let router = plan.router("r");
    stations.push(router);
    for (station, profile) in stations.iter().zip(profiles) {
        plan.link([*station, office], [profile.clone(), profile.clone()]);
    }
    plan.link([router, far], [LinkProfile::default(), LinkProfile::default()]);
    plan.build()
}

/// A frame of station `from`: to another one, to the router's far side, or to all.
fn frame(net: &Net, from: u32, to: u32, len: usize) -> Vec<u8> {
    let (from, to) = (usize::try_from(from).unwrap(), usize::try_from(to).unwrap());
    let mac = |port| net.plan.ports().nth(port).unwrap().1.mac();
    let to_all = to == from;
    let target = if to_all { "255.255.255.255:9".parse().unwrap() } else { net.socket(to) };
    let mut frame = build::udp(net.socket(from), target, &vec![0; len]);
    let next = match to {
        _ if to_all => [0xff; 6],
        4 => net.plan.routers[0].interfaces[0].mac(),
        to => mac(to),
    };
    windtunnel_wire::ethernet::set_addresses(&mut frame, next, mac(from));
    frame
}

proptest! {
    #[test]
    fn every_copy_on_a_lan_is_counted_and_none_comes_back_to_its_sender(
        profiles in prop::collection::vec(profile(), 5),
        steps in prop::collection::vec((0..400 * US, 0u32..4, 0u32..5, 4usize..1400, 0u32..12), 1..60),
        memory in prop_oneof![4 => Just(1u64 << 30), 1 => 0u64..400_000],
    ) {
        let plan = lan(&profiles);
        let play = || {
            let mut net = Net::with_memory(plan.clone(), memory);
            net.engine.recorder_mut().record(Some(RecordSettings::default()));
            let mut at = 1;
            for (pause, from, to, len, change) in &steps {
                at += pause;
                match change {
                    0 => {
                        let side = |ids: [u32; 2]| ids.map(|id| NetworkVertex::Node(NodeId(id))).to_vec();
                        net.apply(at, &partition(vec![side([0, 1]), side([2, 3])]));
                    }
                    1 => net.apply(at, &EventAction::Heal),
                    2 => net.set_up(at, up(*from), len % 2 == 0),
                    _ => {}
                }
                let sent = frame(&net, *from, *to, *len);
                net.send(at, *from, Default::default(), &sent);
                net.check_conservation();
            }
            net.finish();
            net.check_conservation();
            net
        };
        let (first, second) = (play(), play());
        crate::records::laws::check(&first);
        prop_assert_eq!(&first.records, &second.records);
        for out in &first.out {
            let source = windtunnel_wire::ethernet::EthernetFrame::parse(&out.frame).unwrap().source();
            let own = first.plan.ports().nth(usize::try_from(out.port).unwrap()).unwrap().1.mac();
            prop_assert_ne!(source, own);
        }
        prop_assert_eq!(summary(&first), summary(&second));
    }

    #[test]
    fn no_packet_is_lost_unseen_and_the_same_calls_give_the_same_bytes(
        profiles in prop::collection::vec(profile(), 3),
        steps in steps(),
        memory in prop_oneof![4 => Just(1u64 << 30), 1 => 0u64..400_000],
    ) {
        let plan = path(3, profiles);
        // What is recorded changes nothing.
        let first = play(&plan, &steps, memory, true);
        let second = play(&plan, &steps, memory, false);
        crate::records::laws::check(&first);
        prop_assert!(second.records.is_empty());
        prop_assert!(first.times().is_sorted());
        prop_assert_eq!(summary(&first), summary(&second));
    }

    #[test]
    fn the_marked_are_those_that_come_out_with_congestion_experienced(
        profile in profile(),
        later in prop::option::of((0usize..80, profile())),
        gaps in prop::collection::vec(0..200 * US, 20..120),
        trains: bool,
    ) {
        let mut net = Net::new(path(3, vec![LinkProfile { mtu: 1500, ..profile }]));
        let mut at = 0;
        for (index, gap) in gaps.iter().enumerate() {
            at += gap;
            let (mut from, to) = ends(&net, 0);
            let came_so = index % 7 == 6;
            from.set_port(if came_so { 77 } else { 78 });
            let (frame, header) = if trains {
                build::tcp_train(from, to, u32::try_from(index).unwrap() << 17, 0x10, &[5; 9000], 1200)
            } else {
                (build::udp(from, to, &[5; 1172]), Default::default())
            };
            // Every seventh comes marked already, from a link before this one.
            let codepoint = if came_so { 3 } else { 2 };
            net.send(at, 0, header, &build::with_ecn(frame, codepoint));
            if let Some((_, profile)) = later.as_ref().filter(|(when, _)| *when == index) {
                let patch = LinkPatch {
                    queue: profile.queue.map(PropertySetting::To),
                    discipline: Some(profile.discipline.clone()),
                    ..LinkPatch::default()
                };
                net.patch(at, up(0), patch);
            }
        }
        net.finish();
        // Corruption leaves ports alone, and the ECN field.
        let fresh = |out: &&Out| {
            ecn::codepoint(&out.frame) == Some(ecn::EcnCodepoint::Ce) && out.frame[35] != 77
        };
        let count = |out: &Out| segments(&out.frame, &out.vnet).len();
        let seen: usize = net.out.iter().filter(fresh).map(count).sum();
        prop_assert_eq!(net.lane(0).marked, u64::try_from(seen).unwrap());
    }

    #[test]
    fn order_is_kept_where_nothing_may_change_it(
        profiles in prop::collection::vec(profile(), 3),
        gaps in prop::collection::vec(0..400 * US, 1..80),
    ) {
        let ordered = |mut profile: LinkProfile| {
            profile.reorder = PacketReordering::default();
            profile.mtu = 1500;
            profile
        };
        let mut net = Net::new(path(3, profiles.into_iter().map(ordered).collect()));
        let mut at = 0;
        for (gap, tag) in gaps.iter().zip(0u32..) {
            at += gap;
            net.send_udp(at, 100 + usize::try_from(tag).unwrap() * 13 % 1300, tag);
        }
        net.finish();
        let intact = net.out.iter().filter(|out| windtunnel_wire::checksum::verify(&out.frame));
        let tags: Vec<u32> =
            intact.map(|out| u32::from_be_bytes(out.frame[42..46].try_into().unwrap())).collect();
        prop_assert!(tags.is_sorted());
    }

    #[test]
    fn any_bytes_are_survived(
        frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 1..20),
        headers in prop::collection::vec(any::<[u8; 10]>(), 20),
        profiles in prop::collection::vec(profile(), 2),
    ) {
        let mut net = Net::new(path(3, profiles));
        for (index, (frame, header)) in frames.iter().zip(headers).enumerate() {
            let mut frame = frame.clone();
            if index % 2 == 0 && frame.len() > 40 {
                // Nearly a packet.
                let whole = net.udp(100, 1);
                frame[..30].copy_from_slice(&whole[..30]);
            }
            let header = windtunnel_wire::vnet::VirtioNetHeader::parse(&header);
            net.send(0, u32::try_from(index % 2).unwrap(), header, &frame);
        }
        net.finish();
        net.check_conservation();
    }
}
