//! The engine against closed forms, in virtual time: waiting, loss and transmission times that are
//! known beforehand.

use windtunnel_engine::{Engine, EngineLimits};
use windtunnel_model::{DropReason, Lane, Plan, PortId, Rate, Time};
use windtunnel_simlab::{SimulationRng, World};
use windtunnel_wire::vnet;

const HOUR: u64 = 3_600_000_000_000;

/// Two nodes and a link with these properties from a to b.
fn world(properties: &str) -> World {
    World::new(&format!(
        "nodes: {{a: {{}}, b: {{}}}}\nlinks:\n  - {{between: [a, b], up: {{{properties}}}}}\n"
    ))
}

/// An engine alone: frames of one size in, departures out.
struct Line {
    engine: Engine,
    frame: Vec<u8>,
    lane: Lane,
    out: Vec<u64>,
}

impl Line {
    /// Packets of `ip_len` bytes over a link with these properties.
    fn new(properties: &str, ip_len: usize) -> Self {
        let world = world(properties);
        let plan: Plan = world.plan().clone();
        let engine = Engine::new(&plan, EngineLimits { packet_memory: 1 << 28 });
        let frame = world.udp("a", "b", &vec![0; ip_len - 28]);
        Line { engine, frame, lane: world.lane("a-b"), out: Vec::new() }
    }

    fn send(&mut self, at: u64) {
        self.run_until(at);
        let mut frame = self.frame.clone();
        let now = Time::from_nanos(at);
        let express =
            self.engine.handle_packet(now, PortId(0), vnet::VirtioNetHeader::default(), &mut frame);
        assert!(express.is_none(), "the link has a rate");
        self.collect();
    }

    fn run_until(&mut self, end: u64) {
        while let Some(due) = self.engine.poll_timeout().filter(|due| due.as_nanos() <= end) {
            self.engine.handle_timeout(due);
            self.collect();
        }
    }

    fn collect(&mut self) {
        while let Some(departure) = self.engine.poll_output() {
            self.out.push(departure.intended.as_nanos());
            self.engine.recycle(departure.frame);
        }
    }
}

/// An exponential time with this mean, of a seeded draw.
fn exponential(rng: &mut SimulationRng, mean: f64) -> u64 {
    let uniform = (rng.below(1 << 53) as f64 + 0.5) / 9_007_199_254_740_992.0;
    let time = -uniform.ln() * mean;
    // As the sum of many of them stays far below 2⁵³ ns, nothing is lost.
    std::time::Duration::from_secs_f64(time / 1e9).as_nanos().try_into().unwrap_or(u64::MAX)
}

/// M/D/1 (Pollaczek 1930, Khinchine 1932): packets that come as a Poisson process at load ρ and
/// take one service time each wait ρ/(2(1 − ρ)) service times on average.
///
/// The mean over n packets has a standard error of about √(T·V/n), V = ρ/(3(1−ρ)) + (ρ/(2(1−ρ)))²
/// being the variance of the wait and T ≈ 2/(1−ρ)² packets the time over which waits are correlated
/// (Asmussen, *Applied Probability and Queues*, IV.6). Four of it are allowed.
#[test]
fn poisson_arrivals_wait_as_long_as_in_md1() {
    const COUNT: u32 = 200_000;
    const SERVICE: f64 = 1_000_000.0;
    for (seed, load) in [(1, 0.3), (2, 0.5), (3, 0.7), (4, 0.85), (5, 0.9)] {
        let mut line = Line::new("rate: 8mbit, overhead: none, queue: 100000p", 1000);
        let (mut rng, mut at, mut sent) = (SimulationRng::new(seed), 0, Vec::new());
        for _ in 0..COUNT {
            at += exponential(&mut rng, SERVICE / load);
            line.send(at);
            sent.push(at);
        }
        line.run_until(u64::MAX);
        let waits = line.out.iter().zip(&sent).map(|(out, sent)| (out - sent - 1_000_000) as f64);
        let mean = waits.sum::<f64>() / f64::from(COUNT) / SERVICE;
        let expected = load / (2.0 * (1.0 - load));
        let variance = load / (3.0 * (1.0 - load)) + expected * expected;
        let bound = 4.0 * (2.0 / (1.0 - load).powi(2) * variance / f64::from(COUNT)).sqrt();
        assert!(
            (mean - expected).abs() < bound,
            "load {load}: {mean} service times instead of {expected} ± {bound}"
        );
    }
}

/// A constant λ over a rate of C, both in packets: of n that come, the line takes one each 1/C and
/// the queue keeps its limit; all others are dropped. In the long run that is 1 − C/λ.
#[test]
fn drop_tail_loses_just_the_excess_of_a_constant_overload() {
    // λ/C of 5/4, 3/2, 2 and 1000/999: each packet takes 1 ms.
    for (gap, limit) in [(800_000, 50u64), (666_667, 100), (500_000, 10), (999_000, 3)] {
        let text = format!("rate: 8mbit, overhead: none, queue: {limit}p");
        let mut line = Line::new(&text, 1000);
        let count = 100_000;
        for number in 0..count {
            line.send(number * gap);
        }
        // Transmissions have begun at 0, 1, 2 … ms, up to the last arrival; the queue is full.
        let begun = (count - 1) * gap / 1_000_000 + 1;
        let lost = line.engine.lane(line.lane).dropped[DropReason::QueueFull];
        let waiting = line.engine.lane(line.lane).queue_packets;
        assert_eq!(lost + begun + waiting, count, "gap {gap}");
        assert_eq!(waiting, limit, "the queue is full after each arrival");
        let (share, law) = (lost as f64 / count as f64, 1.0 - gap as f64 / 1e6);
        let (held, all) = ((limit + 1) as f64, count as f64);
        assert!(share <= law + 1.0 / all && share >= law - held / all - 1.0 / all, "{share} {law}");
    }
}

/// The n-th departure of a line that is never idle is n·bits/rate after the start, rounded down to
/// a nanosecond: no rate drifts over an hour.
#[test]
fn transmission_times_do_not_drift_by_a_nanosecond_in_an_hour() {
    let rates = ["3mbit", "7mbit", "999999bit", "1234567bit", "64001bit"];
    for (rate, ip_len) in rates.into_iter().zip([1500, 1499, 977, 1400, 61]) {
        let text = format!("rate: {rate}, overhead: 38B, queue: 4p");
        let mut line = Line::new(&text, ip_len);
        let bits = u128::try_from(ip_len + 38).unwrap_or(0) * 8 * 1_000_000_000;
        let parsed: Rate = rate.parse().unwrap_or_else(|error| panic!("{error}"));
        let after = |packets: u64| {
            let nanos = u128::from(packets) * bits / u128::from(parsed.bits_per_second());
            u64::try_from(nanos).unwrap_or(u64::MAX)
        };
        // One is on the line and one waits, always: at each departure another comes.
        line.send(0);
        let mut number = 0;
        while after(number) < HOUR {
            line.send(after(number));
            number += 1;
            if line.out.len() > 100_000 {
                check(&mut line.out, number, &after);
            }
        }
        check(&mut line.out, number, &after);
        assert!(number > 200_000, "{rate}: {number} packets in an hour");
    }
}

/// Compares the departures, up to the last that is due, and forgets them.
fn check(out: &mut Vec<u64>, sent: u64, after: &impl Fn(u64) -> u64) {
    let last = sent - 1;
    let count = u64::try_from(out.len()).unwrap_or(u64::MAX);
    for (at, number) in out.drain(..).zip(last + 1 - count..) {
        assert_eq!(at, after(number), "departure {number}");
    }
}
