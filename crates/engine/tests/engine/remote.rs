//! Flows of several members: what one announces, and what it does with announcements.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;

use windtunnel_engine::{Engine, EngineLimits};
use windtunnel_model::flow::{ActiveFlow, FlowChange, FlowKey, FlowTerms};
use windtunnel_model::plan::{BandwidthSharing, EventAction, LinkChange, NetworkModel};
use windtunnel_model::profile::PropertySetting;
use windtunnel_model::{DropReason, LinkPatch, LinkProfile, NodeId, Plan, Rate, Span};
use windtunnel_wire::build;

use crate::parts::{at, dumbbell, engine, news, outputs, send, udp};
use crate::support::{MS, Topology, rated, up};

fn key(source: u32, destination: u32, number: u32) -> FlowKey {
    FlowKey { source: NodeId(source), destination: NodeId(destination), number }
}

fn greedy(rtt: Span) -> Option<FlowTerms> {
    Some(FlowTerms::new(rtt))
}

/// A flow that began at time zero, or ended.
fn change(key: FlowKey, terms: Option<FlowTerms>) -> FlowChange {
    FlowChange { key, flow: terms.map(|terms| ActiveFlow { terms, since: at(0) }) }
}

/// Sends 32 Mbit/s for some milliseconds.
fn flood(engine: &mut Engine, plan: &Plan, from: usize, to: usize, millis: Range<u64>) {
    let frame = udp(plan, from, to, 7000);
    for millis in millis {
        for part in 0..4 {
            let port = u32::try_from(from).unwrap();
            send(engine, millis * MS + part * MS / 4, port, &frame);
        }
    }
}

#[test]
fn a_flow_is_announced_when_it_begins_wants_less_and_ends() {
    let plan = dumbbell(LinkProfile { latency: Span::from_millis(10), ..rated(8_000_000) });
    let mut engine = engine(&plan, 0, &[0]);
    let frame = udp(&plan, 0, 2, 7000);
    send(&mut engine, 0, 0, &frame);
    assert_eq!(news(&mut engine), [], "it has a share from the end of its first period");
    send(&mut engine, 49 * MS, 0, &frame);
    engine.handle_timeout(at(50 * MS));
    let began = news(&mut engine);
    // Two packets of 1000 bytes a period are 320 kbit/s, and a quarter more.
    let demand = Rate::from_bits_per_second(400_000);
    let terms = FlowTerms { demand, ..FlowTerms::new(Span::from_millis(20)) };
    let flow = ActiveFlow { terms, since: at(50 * MS) };
    assert_eq!(began, [FlowChange { key: key(0, 2, 0), flow: Some(flow) }]);
    let small = {
        let socket =
            |node: usize| SocketAddr::from((plan.nodes[node].interfaces[0].v4.unwrap(), 7000));
        build::udp(socket(0), socket(2), &[0; 100])
    };
    (51..500).for_each(|millis| send(&mut engine, millis * MS, 0, &small));
    let less = news(&mut engine);
    assert_eq!(less.len(), 1, "only the latest of a flow");
    let demand = less[0].flow.unwrap().terms.demand.unwrap().bits_per_second();
    // 1000 packets of 128 bytes a second are 1.02 Mbit/s.
    assert!(demand < 4_000_000, "{demand}");
    engine.handle_timeout(at(800 * MS));
    assert_eq!(news(&mut engine), [change(key(0, 2, 0), None)]);
    assert_eq!(engine.poll_timeout(), None);
}

#[test]
fn a_smaller_demand_is_announced_late_and_a_larger_one_soon() {
    let plan = dumbbell(rated(8_000_000));
    let mut engine = engine(&plan, 0, &[0]);
    let frame = udp(&plan, 0, 2, 7000);
    let mut announced = Vec::new();
    let mut play = |engine: &mut Engine, millis: u64| {
        send(engine, millis * MS, 0, &frame);
        for one in news(engine) {
            announced.push((millis, one.flow.unwrap().terms.demand));
        }
    };
    // 1000 bytes each 2 ms are 4 Mbit/s, then each 10 ms 0.8, and then each millisecond all that
    // there is.
    (0..50).step_by(2).for_each(|millis| play(&mut engine, millis));
    (50..=1000).step_by(10).for_each(|millis| play(&mut engine, millis));
    (1001..=1100).for_each(|millis| play(&mut engine, millis));
    let times: Vec<u64> = announced.iter().map(|(millis, _)| *millis).collect();
    assert_eq!(times[..4], [50, 250, 350, 450], "{announced:?}");
    let more = announced.iter().position(|(millis, _)| *millis > 1000).unwrap();
    let less = &announced[1..more];
    assert!(less.is_sorted_by(|before, after| before.1 > after.1), "{announced:?}");
    assert!(less.windows(2).all(|pair| pair[1].0 - pair[0].0 >= 100), "{announced:?}");
    assert!(
        announced[more].0 <= 1050
            && announced[more].1.is_none_or(|more| Some(more) > less.last().unwrap().1)
    );
}

#[test]
fn flows_of_one_pair_have_names_of_their_own_which_are_given_again() {
    let plan = dumbbell(rated(8_000_000));
    let mut engine = engine(&plan, 0, &[0]);
    for port in [1, 2, 3] {
        send(&mut engine, 0, 0, &udp(&plan, 0, 2, port));
    }
    send(&mut engine, 0, 0, &udp(&plan, 0, 3, 1));
    engine.handle_timeout(at(50 * MS));
    let keys = |news: &[FlowChange]| news.iter().map(|change| change.key).collect::<Vec<_>>();
    let all = [key(0, 2, 0), key(0, 2, 1), key(0, 2, 2), key(0, 3, 0)];
    assert_eq!(keys(&news(&mut engine)), all);
    engine.handle_timeout(at(100 * MS));
    engine.handle_timeout(at(150 * MS));
    let ended = news(&mut engine);
    assert!(ended.iter().all(|news| news.flow.is_none()));
    assert_eq!(keys(&ended), all);
    send(&mut engine, 200 * MS, 0, &udp(&plan, 0, 2, 9));
    engine.handle_timeout(at(250 * MS));
    assert_eq!(keys(&news(&mut engine)), [key(0, 2, 0)]);
    assert_eq!(engine.flow_counts().nameless, 0);
}

#[test]
fn flows_of_another_machine_take_their_share_and_give_it_back() {
    let plan = dumbbell(rated(8_000_000));
    let mut engine = engine(&plan, 0, &[0, 2, 3]);
    let pace = |engine: &mut Engine, millis: Range<u64>| {
        let length = millis.end - millis.start;
        flood(engine, &plan, 0, 2, millis);
        u64::try_from(outputs(engine).len()).unwrap() * 1000 / length
    };
    pace(&mut engine, 0..200);
    assert!(pace(&mut engine, 200..700).abs_diff(1000) <= 4, "8 Mbit/s, packets of 1000 bytes");
    let began = [change(key(1, 3, 0), greedy(Span::from_millis(1)))];
    engine.handle_flows(at(700 * MS), 1, &began);
    assert_eq!(engine.flow_counts().remote, 1);
    assert!(pace(&mut engine, 701..1201).abs_diff(500) <= 4, "half of it");
    let wants = |demand| FlowTerms { demand, ..FlowTerms::new(Span::from_millis(1)) };
    let modest = [change(key(1, 3, 0), Some(wants(Rate::from_bits_per_second(2_000_000))))];
    engine.handle_flows(at(1201 * MS), 1, &modest);
    assert!(pace(&mut engine, 1202..1702).abs_diff(750) <= 4, "what it does not want");
    let two = [0, 1].map(|number| change(key(1, 3, number), greedy(Span::from_millis(1))));
    engine.handle_flows(at(1702 * MS), 1, &two);
    assert!(pace(&mut engine, 1703..2303).abs_diff(333) <= 4, "a third");
    engine.handle_flows(at(2303 * MS), 1, &[change(key(1, 3, 1), None)]);
    assert!(pace(&mut engine, 2304..2804).abs_diff(500) <= 4);
    engine.forget_part(at(2804 * MS), 7);
    assert_eq!(engine.flow_counts().remote, 1, "another part's flows stay");
    engine.forget_part(at(2804 * MS), 1);
    assert!(pace(&mut engine, 2805..3305).abs_diff(1000) <= 4, "all of it");
    assert_eq!((engine.flow_counts().remote, engine.flow_counts().refused), (0, 0));
    assert!(engine.lane(up(0)).dropped[DropReason::QueueFull] > 0);
}

#[test]
fn an_invalid_announcement_is_counted_and_does_nothing() {
    let plan = dumbbell(rated(8_000_000));
    let terms = greedy(Span::from_millis(1));
    let wrong = [
        change(key(9, 3, 0), terms),
        change(key(1, u32::MAX, 0), terms),
        change(key(0, 3, 0), terms),
    ];
    let mut part = engine(&plan, 0, &[0]);
    part.handle_flows(at(1), 1, &wrong);
    part.handle_flows(at(1), 0, &[change(key(1, 3, 0), terms)]);
    assert_eq!((part.flow_counts().refused, part.flow_counts().remote), (4, 0));
    part.handle_flows(at(1), 1, &[change(key(1, 3, 0), None)]);
    assert_eq!(part.flow_counts().refused, 4, "an end of what never was known");
    let mut whole = Engine::new(&plan, EngineLimits { packet_memory: 1 << 20 });
    whole.handle_flows(at(1), 1, &[change(key(1, 3, 0), terms)]);
    assert_eq!(whole.flow_counts().refused, 1);
}

/// What is left of a lane is divided by the modest flows of all machines.
#[test]
fn two_machines_do_not_take_the_same_spare_capacity() {
    let plan = dumbbell(rated(8_000_000));
    // Flows of 1 Mbit/s on each of two machines: two here, one there.
    let mut engines = [engine(&plan, 0, &[0]), engine(&plan, 1, &[1])];
    let flows: [(usize, usize, u16); 3] = [(0, 0, 1), (0, 0, 2), (1, 1, 1)];
    let mut second = 0;
    for millis in 0..1000 {
        for (machine, node, port) in flows {
            if millis % 8 == 0 {
                let from = u32::try_from(node).unwrap();
                send(&mut engines[machine], millis * MS, from, &udp(&plan, node, node + 2, port));
            }
        }
        let announced = engines.each_mut().map(news);
        for (to, from) in [(1, 0u32), (0, 1)] {
            let announced = &announced[usize::try_from(from).unwrap()];
            engines[to].handle_flows(at(millis * MS), from, announced);
        }
        second = millis;
    }
    // A burst of ten packets: at which pace do they leave? Each flow has its demand and a third of
    // what is left.
    let pace = |engine: &mut Engine, node: usize, port: u16| {
        outputs(engine);
        let start = (second + 1) * MS;
        (0..4).for_each(|_| {
            send(engine, start, u32::try_from(node).unwrap(), &udp(&plan, node, node + 2, port));
        });
        engine.handle_timeout(at(start + 40 * MS));
        let times: Vec<u64> = outputs(engine).iter().map(|(_, at)| *at).collect();
        8000 * 1_000_000_000 * 3 / (times[3] - times[0])
    };
    let [first, other] = &mut engines;
    let (first, other) = (pace(first, 0, 1), pace(other, 1, 1));
    assert!(first + other <= 8_000_000, "{first} + {other}");
    assert!(first + other > 7_900_000, "{first} + {other}");
    assert!(first > other, "{first}, {other}");
}

#[test]
fn flows_of_others_go_where_routes_lead() {
    // a--l, l--r, l--m, m--r, r--x: the direct way, and one with one more hop.
    let mut plan = Topology::new(3);
    let [a, b, x] = ["a", "b", "x"].map(|name| plan.node(name));
    let [l, m, r] = ["l", "m", "r"].map(|name| plan.router(name));
    let fast = || [rated(8_000_000), rated(8_000_000)];
    let direct = plan.link([l, r], fast());
    let around = plan.link([l, m], fast());
    plan.link([m, r], fast());
    for (node, router) in [(a, l), (b, l), (x, r)] {
        plan.link([node, router], [LinkProfile::default(), LinkProfile::default()]);
    }
    let mut plan = plan.build();
    plan.model = NetworkModel::Paths(BandwidthSharing::Equal);
    let mut engine = engine(&plan, 0, &[0]);
    engine.handle_flows(at(0), 1, &[change(key(1, 2, 0), greedy(Span::from_millis(1)))]);
    let links = |engine: &mut Engine| {
        let lanes = engine.lanes_of(key(1, 2, 0));
        lanes.iter().map(|lane| lane.link).collect::<Vec<_>>()
    };
    assert!(links(&mut engine).contains(&direct));
    let pace = |engine: &mut Engine, millis: Range<u64>| {
        let length = millis.end - millis.start;
        flood(engine, &plan, 0, 2, millis);
        u64::try_from(outputs(engine).len()).unwrap() * 1000 / length
    };
    pace(&mut engine, 0..200);
    assert!(pace(&mut engine, 200..700).abs_diff(500) <= 4, "both go the direct way");
    // The direct way is down; both go around, and share that one.
    let lane = up(direct.0);
    let change = LinkChange { patches: Vec::new(), state: vec![(lane, false)] };
    engine.apply(at(700 * MS), &EventAction::Link(change));
    engine.apply(at(700 * MS), &EventAction::Reroute);
    assert!(links(&mut engine).contains(&around) && !links(&mut engine).contains(&direct));
    let wide = LinkPatch {
        rate: Rate::from_bits_per_second(16_000_000).map(PropertySetting::To),
        ..LinkPatch::default()
    };
    for link in [1, 2] {
        let patches = vec![(up(link), wide.clone())];
        let change = LinkChange { patches, state: Vec::new() };
        engine.apply(at(701 * MS), &EventAction::Link(change));
    }
    pace(&mut engine, 702..802);
    assert!(pace(&mut engine, 802..1302).abs_diff(1000) <= 4, "half of 16 Mbit/s");
}

/// Two interfaces on each side, and routers as receivers: a name says which.
#[test]
fn names_say_which_interfaces_and_which_router() {
    let mut plan = Topology::new(3);
    let (a, x) = (plan.node("a"), plan.node("x"));
    let (l, r) = (plan.router("l"), plan.router("r"));
    plan.link([l, r], [rated(8_000_000), rated(8_000_000)]);
    for (node, router) in [(a, l), (a, l), (x, r), (x, r), (x, r)] {
        plan.link([node, router], [LinkProfile::default(), LinkProfile::default()]);
    }
    let mut plan = plan.build();
    plan.model = NetworkModel::Paths(BandwidthSharing::Equal);
    let mut sender = engine(&plan, 0, &[0]);
    let mut receiver = engine(&plan, 1, &[1]);
    let address = |port: usize| plan.ports().nth(port).unwrap().1.v4.unwrap();
    let frame = |from: usize, to| {
        let socket = |address: Ipv4Addr| SocketAddr::from((address, 7000));
        build::udp(socket(address(from)), socket(to), &[0; 972])
    };
    let router = plan.routers[1].interfaces[0].v4.unwrap();
    let ways = [(0, address(2)), (0, address(4)), (1, address(3)), (1, router)];
    for (port, to) in ways {
        send(&mut sender, 0, u32::try_from(port).unwrap(), &frame(port, to));
    }
    sender.handle_timeout(at(50 * MS));
    let announced = news(&mut sender);
    let links = |engine: &mut Engine| {
        announced
            .iter()
            .map(|news| engine.lanes_of(news.key).iter().map(|lane| lane.link.0).collect())
            .collect::<Vec<Vec<u32>>>()
    };
    let seen = links(&mut receiver);
    assert_eq!(seen, links(&mut sender));
    let mut sorted = seen.clone();
    sorted.sort();
    assert_eq!(sorted, [vec![1, 0, 3], vec![1, 0, 5], vec![2, 0], vec![2, 0, 4]]);
    let numbers: Vec<u32> = announced.iter().map(|news| news.key.number).collect();
    // To x: place · 2 + interface. To r, named after a itself: place 3 (two interfaces, one router
    // before) · 2 + 1.
    let keys: Vec<FlowKey> = announced.iter().map(|change| change.key).collect();
    assert_eq!(keys, [key(0, 0, 7), key(0, 1, 0), key(0, 1, 3), key(0, 1, 4)], "{numbers:?}");
    receiver.handle_flows(at(50 * MS), 0, &announced);
    assert_eq!((receiver.flow_counts().remote, receiver.flow_counts().refused), (4, 0));
}

/// With equal ways, both machines find the lane that the packets of the flow take.
#[test]
fn names_say_which_of_the_equal_ways() {
    let mut plan = Topology::new(3);
    let (a, x) = (plan.node("a"), plan.node("x"));
    let (l, r) = (plan.router("l"), plan.router("r"));
    let middle = [0, 1, 2].map(|index| plan.router(&format!("m{index}")));
    plan.link([a, l], [rated(80_000_000), LinkProfile::default()]);
    plan.link([r, x], [LinkProfile::default(), LinkProfile::default()]);
    for router in middle {
        plan.link([l, router], [rated(8_000_000), rated(8_000_000)]);
        plan.link([router, r], [rated(8_000_000), rated(8_000_000)]);
    }
    let mut plan = plan.build();
    plan.model = NetworkModel::Paths(BandwidthSharing::Equal);
    plan.routing.ecmp = true;
    let mut receiver = engine(&plan, 1, &[1]);
    let mut used = BTreeSet::new();
    for port in 1..40 {
        let mut sender = engine(&plan, 0, &[0]);
        send(&mut sender, 0, 0, &udp(&plan, 0, 1, port));
        sender.handle_timeout(at(50 * MS));
        let announced = news(&mut sender);
        let lanes = receiver.lanes_of(announced[0].key);
        for lane in &lanes {
            assert_eq!(sender.lane(*lane).offered_packets, 1, "{port}: {lane:?}");
        }
        assert_eq!(lanes.len(), 4);
        used.insert(lanes[1]);
        receiver.handle_flows(at(0), 0, &announced);
    }
    assert_eq!(used.len(), 3, "all ways occur");
    assert_eq!(receiver.flow_counts().refused, 0);
}
