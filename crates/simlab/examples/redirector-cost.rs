//! Cost of redirecting packets for services, in the engine alone and in virtual time.
//! `bench/redirector` runs it. Rows of name, asked, baseline, ours and ratio of the baseline to ours
//! (of throughput: 1 is no cost), between tabs: ns of a processor for one packet, medians of the rounds (least to
//! greatest). The two cases of a row take turns, and the ratio is that of the two of a round. With
//! arguments (a case, properties of the links, packets) it runs one case once: for a profiler, or to
//! count instructions.

#[path = "support/measure.rs"]
mod measure;

use std::hint::black_box;
use std::net::{Ipv4Addr, SocketAddr};

use windtunnel_engine::{Engine, EngineLimits};
use windtunnel_model::plan::{EventAction, ServiceChange, ServiceUpdate};
use windtunnel_model::{NodeId, Plan, ServiceId, Time};
use windtunnel_simlab::World;
use windtunnel_wire::{build, tcp};

use measure::{pass, processor_ns, spread};

const ROUNDS: usize = 9;
/// So many that the processor's time, which is counted up at each tick, is exact to some percent.
const PACKETS: u32 = 300_000;
/// Pinned connections.
const MANY: u32 = 1_000_000;

const CLIENT: NodeId = NodeId(0);
const SERVER: NodeId = NodeId(1);
const OTHER: NodeId = NodeId(2);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [case, properties, count] = arguments.as_slice() {
        let Ok(count) = count.parse() else {
            eprintln!(
                "usage: redirector-cost [none|direct|redirected|beside|pinned PROPERTIES PACKETS]"
            );
            std::process::exit(2);
        };
        println!("{:.1}", single(case, properties).run(count));
        return;
    }
    for (name, properties) in
        [("no property", ""), ("latency, rate", ", latency: 1ms, rate: 10gbit")]
    {
        let services = plan(properties, 1);
        for payload in [24, 1400] {
            let plain = Bench::new(&services, own(&services, SERVER), payload, 1);
            let redirected = Bench::new(&services, service(0), payload, 1);
            let row = format!("redirected, {name}, {} bytes", payload + 40);
            compare(&row, "of a run 0.98; reach for 0.995", [plain, redirected]);
        }
        let (none, many) = (plan(properties, 0), plan(properties, 157));
        let [without, beside] =
            [&none, &many].map(|plan| Bench::new(plan, own(plan, OTHER), 24, 1));
        let row = format!(
            "not redirected beside {} rows, {name}",
            beside.engine.services().rows().count()
        );
        compare(&row, "0.99; reach for 1", [without, beside]);
    }
    pinned();
}

/// One case by its name.
fn single(case: &str, properties: &str) -> Bench {
    let count = match case {
        "beside" => 157,
        "none" => 0,
        _ => 1,
    };
    let services = plan(properties, count);
    match case {
        "redirected" => Bench::new(&services, service(0), 24, 1),
        "pinned" => Bench::new(&services, service(0), 24, MANY),
        _ => Bench::new(&services, own(&services, OTHER), 24, 1),
    }
}

/// Memory of a pin, and what it costs to find one of many instead of always the same.
fn pinned() {
    let plan = plan("", 1);
    let mut one = Bench::new(&plan, service(0), 24, 1);
    one.run(PACKETS);
    let before = resident();
    let mut many = Bench::new(&plan, service(0), 24, MANY);
    many.run(MANY);
    let each = (resident() - before) as f64 / f64::from(MANY);
    assert_eq!(many.engine.services().pins().held, u64::from(MANY), "all are pinned");
    let counted = "200 B; reach for 64";
    println!("memory of a pin, of {MANY}\t{counted}\t\t{each:.1} B\t");
    let mut costs: Vec<[f64; 3]> = (0..ROUNDS)
        .map(|_| {
            let [one, many] = [one.run(PACKETS), many.run(PACKETS)];
            [one, many, many - one]
        })
        .collect();
    let [one, many, more] = [0, 1, 2].map(|at| spread(&mut costs, at));
    println!(
        "redirected, of 1 and of {MANY} pinned connections at random\t200 ns more; reach for 60\t{one} ns\t{many} ns\t{more} ns more"
    );
}

/// One row.
fn compare(name: &str, asked: &str, [mut base, mut ours]: [Bench; 2]) {
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
            [first, second, first / second]
        })
        .collect();
    let [base, ours] = [0, 1].map(|at| spread(&mut costs, at));
    costs.sort_by(|a, b| a[2].total_cmp(&b[2]));
    let [least, median, most] = [0, ROUNDS / 2, ROUNDS - 1].map(|at| costs[at][2]);
    println!("{name}\t{asked}\t{base} ns\t{ours} ns\t{median:.3} ({least:.3} to {most:.3})");
}

/// An engine, and a packet that is sent again and again.
struct Bench {
    engine: Engine,
    frame: Vec<u8>,
    /// Clients take turns, in an order that jumps.
    clients: u32,
    number: u32,
    at: u64,
}

impl Bench {
    fn new(plan: &Plan, to: SocketAddr, payload: usize, clients: u32) -> Bench {
        let mut engine = Engine::new(plan, EngineLimits { packet_memory: 1 << 30 });
        for (number, service) in (0..).zip(&plan.services) {
            for port in &service.ports {
                let update = ServiceUpdate::Registered { replica: SERVER, port: *port };
                let change = ServiceChange { service: ServiceId(number), update };
                engine.apply(Time::ZERO, &EventAction::Service(vec![change]));
            }
        }
        let frame = build::tcp(own(plan, CLIENT), to, 1, tcp::ACK, &vec![0; payload]);
        Bench { engine, frame, clients, number: 0, at: 0 }
    }

    /// ns for each of so many packets.
    fn run(&mut self, count: u32) -> f64 {
        let mut frame = self.frame.clone();
        let mut bytes = 0;
        let start = processor_ns();
        for _ in 0..count {
            frame.copy_from_slice(&self.frame);
            // 16 times 65 536 clients, by a step that meets each of a power of two of them once.
            self.number = (self.number + 1) % self.clients;
            let client = self.number.wrapping_mul(0x9e37_79b1) & 0x000f_ffff;
            let [_, address, high, low] = client.to_be_bytes();
            (frame[29], frame[34], frame[35]) = (address, high, low);
            // 2 µs: 60 packets of 1478 bytes are on the way at 6 Gbit/s.
            self.at += 2000;
            bytes += pass(&mut self.engine, self.at, &mut frame);
        }
        black_box(bytes);
        (processor_ns() - start) as f64 / f64::from(count)
    }
}

/// A client, a server that is the replica of all services, and another node, around a router. Each
/// service has 64 ports of an address of its own.
fn plan(properties: &str, services: u32) -> Plan {
    let mut text =
        String::from("ipv6: false\nnodes: {a: {}, b: {}, c: {}}\nrouters: [r]\nlinks:\n");
    for node in ["a", "b", "c"] {
        text += &format!("  - {{between: [{node}, r]{properties}}}\n");
    }
    text += if services == 0 { "" } else { "services:\n" };
    let ports: Vec<String> = (1..=64).map(|port| format!("{port}/tcp")).collect();
    for number in 0..services {
        let (address, ports) = (service(number).ip(), ports.join(", "));
        text += &format!("  w{number}: {{address: {address}, ports: [{ports}], replicas: [b]}}\n");
    }
    World::new(&text).plan().clone()
}

/// The first port of a service.
fn service(number: u32) -> SocketAddr {
    (Ipv4Addr::from_bits(0x0a01_0100 + number), 1).into()
}

/// Port 80 of a node's own address.
fn own(plan: &Plan, node: NodeId) -> SocketAddr {
    let address = plan.nodes[node.index()].interfaces[0].v4;
    (address.expect("it has IPv4"), 80).into()
}

/// Bytes of memory that this process uses.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0u64) * 4096
}
