//! Random networks, loads and changes from seeds: nothing is lost unseen, and every run repeats
//! itself.
//!
//! `WINDTUNNEL_SEEDS` says how many seeds are tried (default 20), `WINDTUNNEL_SEED` which one
//! alone.

use windtunnel_model::plan::{EventAction, LinkChange, PartitionMode};
use windtunnel_model::{Lane, NetworkVertex, Span};
use windtunnel_simlab::{
    ConstantRateSender, RenoReceiver, RenoSender, SimulationRng, UdpEchoServer, World, ms,
};
use windtunnel_wire::build;

/// A star of four nodes around two routers, each link with random properties.
fn network(rng: &mut SimulationRng, seed: u64) -> String {
    let mut text = format!(
        "seed: {seed}\nnodes: {{a: {{}}, b: {{}}, c: {{}}, d: {{}}}}\nrouters: [r, s]\nlinks:\n"
    );
    for ends in ["a, r", "b, r", "c, s", "d, s", "r, s"] {
        let latency = rng.below(20_000);
        let jitter = rng.below(2000);
        let loss = rng.pick(&["0%", "1%", "{packets: [2, 3, 9]}"]);
        let rate = rng.pick(&["", ", rate: 1mbit", ", rate: 30mbit", ", rate: 2gbit"]);
        let more = rng.pick(&["", ", duplicate: 5%", ", corrupt: 5%", ", mtu: 1280"]);
        let queue = match rate {
            "" => "",
            _ => rng.pick(&[
                "",
                ", queue: 5p",
                ", discipline: codel",
                ", discipline: drop-head",
                ", discipline: {red: {min: 3p, max: 9p, weight: 5%}}",
                ", discipline: {pie: {target: 2ms, burst: 5ms}}",
                ", queue: 30p, discipline: {fq-codel: {flows: 4}}",
                ", queue: 30p, discipline: fair",
            ]),
        };
        text += &format!(
            "  - {{between: [{ends}], latency: {latency}us, jitter: {jitter}us, loss: {loss}{rate}{more}{queue}}}\n"
        );
    }
    text
}

/// Everything that can be seen from outside, as text.
fn play(seed: u64) -> String {
    let mut rng = SimulationRng::new(seed);
    let mut world = World::new(&network(&mut rng, seed));
    let (a, b, c, d) = (world.socket("a"), world.socket("b"), world.socket("c"), world.socket("d"));
    world.attach("c", RenoReceiver::default());
    world.attach("d", UdpEchoServer);
    world.attach("a", RenoSender::new(a, c, 1000, Span::from_millis(300)));
    let gap = Span::from_micros(500 + rng.below(5000));
    world.attach("b", ConstantRateSender { from: b, to: d, payload: 200, gap, left: 200 });
    let mut millis = 0;
    for _ in 0..40 {
        millis += rng.below(40);
        operate(&mut world, &mut rng, millis);
        world.assert_conservation();
    }
    world.run_until(ms(millis + 2000));
    world.assert_conservation();
    summary(&world)
}

fn operate(world: &mut World, rng: &mut SimulationRng, millis: u64) {
    let lane = Lane::from_index(usize::try_from(rng.below(10)).unwrap_or(0));
    match rng.below(4) {
        0 => {
            let state = vec![(lane, rng.below(3) > 0)];
            let change = LinkChange { patches: Vec::new(), state };
            world.at(ms(millis)).apply(&EventAction::Link(change));
        }
        1 => {
            let vertex = |index| NetworkVertex::Node(windtunnel_model::NodeId(index));
            let groups =
                [vec![vertex(0)], vec![NetworkVertex::Router(windtunnel_model::RouterId(0))]];
            world.at(ms(millis)).apply(&EventAction::Partition {
                groups: groups.to_vec(),
                cut: PartitionMode::Between,
            });
        }
        2 => world.at(ms(millis)).apply(&EventAction::Heal),
        _ => {
            let payload = vec![1; usize::try_from(1 + rng.below(60_000)).unwrap_or(1)];
            let (from, to) = (world.socket("a"), world.socket("d"));
            let (frame, header) = build::tcp_train(from, to, 1, 0x10, &payload, 1200);
            world.at(ms(millis)).send_train("a", header, frame);
        }
    }
}

fn summary(world: &World) -> String {
    let lanes = (0..world.plan().links.len() * 2).map(Lane::from_index);
    let counters: Vec<_> = lanes.map(|lane| *world.engine().lane(lane)).collect();
    let seen = ["a", "b", "c", "d"].map(|node| world.deliveries(node).to_vec());
    format!("{counters:?} {seen:?}")
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn every_seed_conserves_packets_and_repeats_itself() {
    let count = number("WINDTUNNEL_SEEDS").unwrap_or(20);
    let seeds = number("WINDTUNNEL_SEED").map_or(1..count + 1, |seed| seed..seed + 1);
    for seed in seeds {
        let outcome = std::panic::catch_unwind(|| assert!(play(seed) == play(seed), "runs differ"));
        assert!(
            outcome.is_ok(),
            "seed {seed} fails; again: WINDTUNNEL_SEED={seed} cargo test -p windtunnel-simlab --test seeds"
        );
    }
}
