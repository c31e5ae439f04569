//! Services with the model of paths: where both models are exact, they are the same; and what waits
//! at its source waits for the share of the way to its replica.

use std::net::{Ipv4Addr, SocketAddr};

use windtunnel_model::plan::{EventAction, ServiceChange, ServiceUpdate};
use windtunnel_model::{RouterId, ServiceId, Span};
use windtunnel_simlab::{
    ConstantRateSender, FrameDelivery, RenoReceiver, RenoSender, UdpEchoServer, Wire, World, ms,
};
use windtunnel_wire::packet::ParsedPacket;
use windtunnel_wire::{build, icmp, tcp};

#[path = "common/rates.rs"]
mod rates;

use rates::{assert_near, rate};

const WWW: ServiceId = ServiceId(0);
const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 80);
/// UDP payload of a packet of 1480 bytes: with a tunnel's header 1500, and 1538 on the wire.
const FULL: usize = 1452;

/// Clients a and b at r; replicas near (at s) and far (at t, behind s); an origin at r.
fn network(model: &str, links: [&str; 3], service: &str) -> String {
    let [first, middle, last] = links;
    format!(
        "model: {model}\nseed: 3\nnodes: {{a: {{}}, b: {{}}, near: {{}}, far: {{}}, web: {{}}}}\nrouters: [r, s, t]\n\
         links:\n  - {{between: [a, r], latency: 1ms{first}}}\n  - {{between: [b, r], latency: 1ms}}\n  \
         - {{between: [near, s], latency: 3ms{last}}}\n  - {{between: [far, t], latency: 4ms}}\n  \
         - {{between: [web, r], latency: 1ms}}\n  - {{between: [r, s], latency: 2ms{middle}}}\n  \
         - {{between: [s, t], latency: 10ms}}\n\
         services: {{www: {{address: {ADDRESS}, ports: [80/tcp, 53/udp], replicas: [near, far]{service}}}}}\n"
    )
}

fn update(world: &mut World, at: u64, update: ServiceUpdate) {
    let change = ServiceChange { service: WWW, update };
    world.at(ms(at)).apply(&EventAction::Service(vec![change]));
}

/// All replicas listen on all ports.
fn register(mut world: World) -> World {
    for name in ["near", "far"] {
        let replica = world.plan().node_named(name).expect("it is a node");
        for port in ["80/tcp", "53/udp"] {
            let port = port.parse().expect("it is a port");
            update(&mut world, 0, ServiceUpdate::Registered { replica, port });
        }
    }
    world
}

fn lose(world: &mut World, at: u64, name: &str) {
    let replica = world.plan().node_named(name).expect("it is a node");
    update(world, at, ServiceUpdate::Lost { replica });
}

fn dns() -> SocketAddr {
    (ADDRESS, 53).into()
}

fn seen(world: &World) -> Vec<Vec<FrameDelivery>> {
    ["a", "b", "near", "far", "web"].map(|node| world.deliveries(node).to_vec()).to_vec()
}

/// SYNs and data of 40 connections of two clients, and datagrams, each by itself (a flow has a share
/// until it was silent for a second); on the way a replica goes and comes back.
fn single_packets(mut world: World) -> Vec<Vec<FrameDelivery>> {
    for node in ["near", "far"] {
        world.attach(node, UdpEchoServer);
    }
    let www = (ADDRESS, 80).into();
    for number in 0..40u16 {
        let at = u64::from(number) * 4000 + 10;
        let node = if number % 2 == 0 { "a" } else { "b" };
        let from = SocketAddr::new(world.socket(node).ip(), 1000 + number);
        world.at(ms(at)).send(node, build::tcp(from, www, 5, tcp::SYN, b""));
        world.at(ms(at + 1300)).send(node, build::tcp(from, www, 6, tcp::ACK, &[7; 1400]));
        world.at(ms(at + 2600)).send(node, build::udp(from, dns(), &[1; FULL]));
        let near = world.plan().node_named("near").expect("it is a node");
        let port = "80/tcp".parse().expect("it is a port");
        match number {
            10 => lose(&mut world, at + 3900, "near"),
            20 => update(&mut world, at + 3900, ServiceUpdate::Registered { replica: near, port }),
            30 => {
                update(&mut world, at + 3900, ServiceUpdate::Drain { replica: near, drain: true });
            }
            _ => {}
        }
    }
    world.run_until(ms(170_000));
    world.assert_conservation();
    seen(&world)
}

#[test]
fn single_packets_come_to_the_same_replicas_at_the_same_times_as_with_the_model_of_hops() {
    // A rate on one link at a time: then a packet is transmitted once in both models.
    let rate = ", rate: 10mbit";
    for links in [["", "", ""], [rate, "", ""], ["", rate, ""], ["", "", rate]] {
        for more in [
            "",
            ", policy: hops",
            ", policy: {weighted: {near: 2}}",
            ", policy: least-connections",
            ", policy: hash",
            ", policy: ordered",
            ", at: [s, t], origin: web",
            ", at: [s, t], origin: far",
            ", encapsulation: none",
            ", on-loss: reset",
        ] {
            // What a router itself sends waits nowhere with the model of paths.
            if more == ", on-loss: reset" && links[0] == rate {
                continue;
            }
            let run = |model| single_packets(register(World::new(&network(model, links, more))));
            let (hops, paths) = (run("hops"), run("paths"));
            assert!(hops == paths, "{links:?}{more}");
            let all: usize = hops.iter().map(Vec::len).sum();
            assert!(all > 100, "{links:?}{more}: {all}");
        }
    }
}

/// With a queue before which nothing takes time: else packets that come and go at one instant do so
/// in another order at the source.
#[test]
fn a_redirected_window_alone_goes_as_with_the_model_of_hops() {
    for [first, middle] in [["", ", rate: 10mbit"], [", rate: 10mbit", ""]] {
        let run = |model: &str| {
            let mut world = World::new(&format!(
                "model: {model}\nnodes: {{a: {{}}, near: {{}}, far: {{}}}}\nrouters: [r, s]\nlinks:\n  \
                 - {{between: [a, r]{first}}}\n  - {{between: [r, s], latency: 10ms{middle}}}\n  \
                 - {{between: [near, s]}}\n  - {{between: [far, s], latency: 10ms}}\n\
                 services: {{www: {{address: {ADDRESS}, ports: [80/tcp, 53/udp], replicas: [near, far]}}}}\n"
            ));
            world = register(world);
            world.attach("near", RenoReceiver::default());
            let sender = RenoSender::new(world.socket("a"), dns(), FULL, Span::from_millis(1000));
            world.attach("a", sender);
            world.run_until(ms(5000));
            world.assert_conservation();
            (world.deliveries("near").to_vec(), world.deliveries("a").to_vec())
        };
        let hops = run("hops");
        assert!(hops.0.len() > 1000, "{}", hops.0.len());
        assert!(run("paths") == hops, "{first} {middle}");
    }
}

fn steady(from: SocketAddr, to: SocketAddr, payload: usize, left: u64) -> ConstantRateSender {
    // 20 Mbit/s of packets of 1538 bytes.
    ConstantRateSender { from, to, payload, gap: Span::from_nanos(1538 * 8 * 1000 / 20), left }
}

#[test]
fn a_redirected_flow_and_a_plain_one_share_a_link_and_the_header_counts() {
    let mut world = register(World::new(&network("paths", ["", ", rate: 10mbit", ""], "")));
    let (a, b, far) = (world.socket("a"), world.socket("b"), world.socket("far"));
    // With equal latencies: the near replica is made as far as the other.
    world.attach("a", steady(a, dns(), FULL, u64::MAX));
    world.attach("b", steady(b, (world.socket("near").ip(), far.port()).into(), 1472, u64::MAX));
    world.run_until(ms(4000));
    let of = |client: SocketAddr| -> Vec<FrameDelivery> {
        let from = |it: &&FrameDelivery| {
            ParsedPacket::parse(&it.frame).is_ok_and(|it| it.info.source == client.ip())
        };
        world.deliveries("near").iter().filter(from).cloned().collect()
    };
    assert_near(rate(&of(b), ms(1000), ms(4000)), 5.0, 0.005);
    // 1518 of its 1538 bytes come out of the tunnel.
    assert_near(rate(&of(a), ms(1000), ms(4000)), 5.0 * 1518.0 / 1538.0, 0.005);
    world.assert_conservation();
}

#[test]
fn a_flow_whose_replica_is_lost_leaves_its_share_to_others_and_has_one_on_its_new_way() {
    let links = ["", "", ", rate: 4mbit"];
    let mut world = register(World::new(&network("paths", links, "")));
    let (a, b, near) = (world.socket("a"), world.socket("b"), world.socket("near"));
    world.attach("a", steady(a, dns(), FULL, u64::MAX));
    world.attach("b", steady(b, near, 1472, u64::MAX));
    world.run_until(ms(3000));
    let before = world.deliveries("near").len();
    lose(&mut world, 3000, "near");
    world.run_until(ms(6000));
    // As with the model of hops, what waits behind the redirector goes on to the lost replica's
    // node: near's link carries 4 Mbit/s of both. a's way has no limit but its own 20 (1538 with
    // the header, of which 1518 come out).
    assert_near(rate(world.deliveries("far"), ms(3500), ms(6000)), 20.0 * 1518.0 / 1538.0, 0.005);
    assert!(before > 900, "{before}");
    world.run_until(ms(12_000));
    assert_near(rate(world.deliveries("near"), ms(9000), ms(12_000)), 4.0, 0.005);
    let last = world
        .deliveries("near")
        .last()
        .map(|it| ParsedPacket::parse(&it.frame).map(|it| it.info.source));
    assert_eq!(last, Some(Ok(b.ip())));
    world.assert_conservation();
}

const TWO: [&[&str]; 2] = [&["a", "b", "web"], &["near", "far"]];

fn wire() -> Wire {
    Wire::new(Span::from_micros(200), [Span::from_micros(100), Span::from_micros(500)], 7)
}

#[test]
fn over_machines_the_same_replicas_are_chosen_and_packets_are_there_at_the_same_times() {
    for more in ["", ", policy: {weighted: {near: 2}}", ", policy: hash"] {
        let text = network("paths", ["", ", rate: 10mbit", ""], more);
        let one = single_packets(register(World::new(&text)));
        let two = single_packets(register(World::over(&text, &TWO, wire())));
        assert!(one == two, "{more}");
    }
}

#[test]
fn an_error_about_an_answer_finds_its_replica_on_another_machine_than_its_clients() {
    let text = network("paths", ["", ", mtu: 1400", ""], "");
    for world in [World::new(&text), World::over(&text, &TWO, wire())] {
        let mut world = register(world);
        let client = world.socket("a");
        world.at(ms(1)).send("a", build::udp(client, dns(), b"name?"));
        let answer = build::with_dont_fragment(build::udp(dns(), client, &[1; FULL]));
        world.at(ms(100)).send("near", answer);
        world.run_until(ms(200));
        let last = world.deliveries("near").last().expect("an error came");
        let packet = ParsedPacket::parse(&last.frame).expect("it is a packet");
        let view = icmp::IcmpMessage::parse(packet.payload()).expect("it is ICMP");
        // 3 ms to the router before the narrow link, and back in a tunnel of no length.
        assert_eq!((view.kind(), view.code(), last.at), (3, 4, ms(106)));
    }
}

#[test]
fn a_detour_that_no_name_says_is_counted_as_a_flow_that_could_not_be_announced() {
    // r does not redirect, and the way to the origin leads over t: there the near replica is behind.
    let text =
        network("paths", ["", "", ", rate: 10mbit"], ", at: [t], origin: far, policy: ordered");
    let mut world = register(World::over(&text, &TWO, wire()));
    let a = world.socket("a");
    world.attach("a", steady(a, dns(), FULL, 100));
    world.run_until(ms(500));
    assert_eq!(world.engines()[0].flow_counts().nameless, 1);
    assert_eq!(world.engines()[0].router(RouterId(2)).redirected, 100);
    // Straight ways have names.
    let text = network("paths", ["", "", ", rate: 10mbit"], "");
    let mut world = register(World::over(&text, &TWO, wire()));
    world.attach("a", steady(a, dns(), FULL, 100));
    world.run_until(ms(500));
    assert_eq!(world.engines()[0].flow_counts().nameless, 0);
    assert_eq!(world.engines()[1].flow_counts().remote, 0, "it is over");
    assert_eq!(world.engines()[0].router(RouterId(0)).redirected, 100);
}
