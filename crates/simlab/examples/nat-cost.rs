//! Cost of NATs and firewalls, in the engine alone and in virtual time. `bench/nat` runs it. Rows of
//! name, asked, baseline, ours and what ours costs more, between tabs: ns of a processor for one
//! packet, medians of the rounds (least to greatest). The two cases of a row take turns, and the
//! difference is that of the two of a round. With arguments (a case, properties of the links,
//! packets) it runs one case once: for a profiler, or to count instructions.

#[path = "support/measure.rs"]
mod measure;

use std::hint::black_box;
use std::net::SocketAddr;

use windtunnel_engine::{Engine, EngineLimits};
use windtunnel_model::Plan;
use windtunnel_simlab::World;
use windtunnel_wire::build;

use measure::{pass, processor_ns, spread};

const ROUNDS: usize = 15;
/// So many that the processor's time, which is counted up at each tick, is exact to some percent.
const PACKETS: u32 = 1_000_000;
/// Sessions that take turns.
const MANY: u32 = 50_000;

const CASES: [(&str, &str, u32); 5] = [
    ("none", "", 1),
    ("nat", "{nat: port-restricted}", 1),
    ("symmetric", "{nat: symmetric}", 1),
    ("firewall", "{firewall: {}}", 1),
    ("many", "{nat: port-restricted}", MANY),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [case, properties, count] = arguments.as_slice() {
        let known = CASES.iter().find(|(name, ..)| name == case);
        let (Some((_, router, flows)), Ok(count)) = (known, count.parse()) else {
            eprintln!("usage: nat-cost [none|nat|symmetric|firewall|many PROPERTIES PACKETS]");
            std::process::exit(2);
        };
        println!("{:.1}", Bench::new(router, properties, 24, *flows).run(count));
        return;
    }
    for (name, properties) in
        [("no property", ""), ("latency, rate", ", latency: 1ms, rate: 10gbit")]
    {
        for payload in [24, 1400] {
            let [none, ours] =
                ["", "{nat: port-restricted}"].map(|it| Bench::new(it, properties, payload, 1));
            compare(&format!("port-restricted NAT, {name}, {} bytes", payload + 28), [none, ours]);
        }
        for (case, router, flows) in &CASES[2..] {
            let none = Bench::new("", properties, 24, *flows);
            let ours = Bench::new(router, properties, 24, *flows);
            compare(&format!("{case}, {name}, 52 bytes"), [none, ours]);
        }
    }
}

/// One row.
fn compare(name: &str, [mut base, mut ours]: [Bench; 2]) {
    for bench in [&mut base, &mut ours] {
        bench.run(PACKETS);
    }
    let mut costs: Vec<[f64; 3]> = (0..ROUNDS)
        .map(|round| {
            let (first, second) = if round % 2 == 0 {
                let first = base.run(PACKETS);
                (first, ours.run(PACKETS))
            } else {
                let second = ours.run(PACKETS);
                (base.run(PACKETS), second)
            };
            [first, second, second - first]
        })
        .collect();
    let [base, ours, more] = [0, 1, 2].map(|at| spread(&mut costs, at));
    println!("{name}\t60 ns more\t{base} ns\t{ours} ns\t{more} ns more");
}

/// An engine, and a datagram that is sent again and again.
struct Bench {
    engine: Engine,
    frame: Vec<u8>,
    flows: u32,
    number: u32,
    at: u64,
}

impl Bench {
    fn new(router: &str, properties: &str, payload: usize, flows: u32) -> Bench {
        let plan = plan(router, properties);
        let engine = Engine::new(&plan, EngineLimits { packet_memory: 1 << 30 });
        let own = |node: usize| -> SocketAddr {
            let address = plan.nodes[node].interfaces[0].v4.expect("it has IPv4");
            (address, 5000).into()
        };
        let frame = build::udp(own(0), own(1), &vec![0; payload]);
        Bench { engine, frame, flows, number: 0, at: 0 }
    }

    /// ns for each of so many packets.
    fn run(&mut self, count: u32) -> f64 {
        let mut frame = self.frame.clone();
        let mut bytes = 0;
        let start = processor_ns();
        for _ in 0..count {
            frame.copy_from_slice(&self.frame);
            // Ports take turns by a step that meets each once.
            self.number = (self.number + 7919) % self.flows;
            let [_, _, high, low] = (1024 + self.number).to_be_bytes();
            if self.flows > 1 {
                (frame[34], frame[35]) = (high, low);
                // No checksum, which would differ for each.
                (frame[40], frame[41]) = (0, 0);
            }
            // 2 µs: 60 packets of 1478 bytes are on the way at 6 Gbit/s.
            self.at += 2000;
            bytes += pass(&mut self.engine, self.at, &mut frame);
        }
        assert!(black_box(bytes) > 0, "packets arrive");
        (processor_ns() - start) as f64 / f64::from(count)
    }
}

/// A client and a server around a router, which is what is given.
fn plan(router: &str, properties: &str) -> Plan {
    let sides =
        if router.is_empty() { String::new() } else { router.replacen('{', "{inside: a, ", 1) };
    World::new(&format!(
        "ipv6: false\nnodes: {{a: {{}}, b: {{}}}}\nrouters:\n  r: {sides}\nlinks:\n\
         - {{between: [a, r]{properties}}}\n- {{between: [b, r]{properties}}}\n"
    ))
    .plan()
    .clone()
}
