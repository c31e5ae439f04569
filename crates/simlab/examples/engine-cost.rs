//! Cost of the engine alone in virtual time: ns for one hop of one packet, and how that grows
//! with links and with packets in flight. `bench/engine/run` runs it. With arguments (properties of
//! the link, links, packets in flight, packets, and perhaps `record` or `standby`) it runs one case
//! once: for a profiler, or to count instructions.

use std::hint::black_box;
use std::time::Instant;

use windtunnel_engine::{Engine, EngineLimits, RecordSettings};
use windtunnel_model::{Plan, PortId, Time};
use windtunnel_simlab::World;
use windtunnel_wire::vnet;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [properties, numbers @ ..] = arguments.as_slice() {
        let (mode, numbers) = match numbers {
            [numbers @ .., word] if word == "record" => (Mode::Recorded, numbers),
            [numbers @ .., word] if word == "standby" => (Mode::Standby, numbers),
            numbers => (Mode::Off, numbers),
        };
        let numbers: Result<Vec<u64>, _> = numbers.iter().map(|text| text.parse()).collect();
        let Ok([links, flying, count]) = numbers.as_deref() else {
            eprintln!("usage: engine-cost [PROPERTIES LINKS IN-FLIGHT PACKETS [record|standby]]");
            std::process::exit(2);
        };
        let links = usize::try_from(*links).unwrap_or(usize::MAX);
        println!("{:.1}", cost(properties, links, *flying, *count, mode));
        return;
    }
    println!("one hop of one packet, ns, median of 7 (least to most)");
    for (name, properties) in [
        ("no property (express)", ""),
        ("latency", "latency: 10ms"),
        ("latency, rate", "latency: 10ms, rate: 10gbit"),
        ("latency, rate, jitter, loss", "latency: 10ms, jitter: 1ms, loss: 1%, rate: 10gbit"),
        ("codel", "latency: 10ms, rate: 10gbit, discipline: codel"),
        ("red", "latency: 10ms, rate: 10gbit, discipline: red"),
        ("pie", "latency: 10ms, rate: 10gbit, discipline: pie"),
        ("fq-codel", "latency: 10ms, rate: 10gbit, discipline: fq-codel"),
        ("fair", "latency: 10ms, rate: 10gbit, discipline: fair"),
    ] {
        row(name, properties, Mode::Off);
    }
    for (name, properties) in [
        ("no property (express)", ""),
        ("latency", "latency: 10ms"),
        ("latency, rate", "latency: 10ms, rate: 10gbit"),
    ] {
        row(&format!("{name}, standby"), properties, Mode::Standby);
        row(&format!("{name}, recorded"), properties, Mode::Recorded);
    }
    println!(
        "\nlatency link, ns for one packet\n   links  in flight: 10^3     10^4     10^5     10^6"
    );
    for links in [10, 100, 1000, 10_000] {
        let row = [1000, 10_000, 100_000, 1_000_000].map(|flying| {
            let count = 1_000_000.max(2 * flying);
            format!("{:>8.1}", cost("latency: 10ms", links, flying, count, Mode::Off))
        });
        println!("{links:>8}            {}", row.join(" "));
    }
}

/// What is recorded meanwhile.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Off,
    Standby,
    Recorded,
}

/// One line of the table.
fn row(name: &str, properties: &str, mode: Mode) {
    let mut costs: Vec<f64> = (0..7).map(|_| cost(properties, 1, 1000, 400_000, mode)).collect();
    costs.sort_by(f64::total_cmp);
    println!("  {name:<33} {:>6.1}  ({:.1} to {:.1})", costs[3], costs[0], costs[6]);
}

/// ns for each of `count` packets over that many links, `flying` on the way at a time.
fn cost(properties: &str, links: usize, flying: u64, count: u64, mode: Mode) -> f64 {
    let plan = plan(properties, links);
    let mut engine = Engine::new(&plan, EngineLimits { packet_memory: 8 << 30 });
    engine.recorder_mut().stand_by(mode == Mode::Standby);
    engine.recorder_mut().record((mode == Mode::Recorded).then(RecordSettings::default));
    let mut records = Vec::new();
    let mut frame = World::with_plan(plan, 1 << 20).udp("a", "b", &[0; 36]);
    // The latency is 10 ms: a packet each 10 ms / flying.
    let gap = 10_000_000 / flying;
    let ports = links as u64;
    let mut at = 0;
    let mut number = 0;
    let mut run = |engine: &mut Engine, count: u64| {
        let mut bytes = 0;
        for _ in 0..count {
            number += 1;
            at += gap;
            let port = PortId(u32::try_from(number % ports).unwrap_or(0));
            let now = Time::from_nanos(at);
            let express =
                engine.handle_packet(now, port, vnet::VirtioNetHeader::default(), &mut frame);
            bytes += usize::from(express.is_some());
            while let Some(departure) = engine.poll_output() {
                bytes += departure.frame.len();
                engine.recycle(departure.frame);
            }
            while engine.poll_handoff().is_some() {}
            if number % 64 == 0 && engine.recorder().has_records() {
                engine.recorder_mut().take(&mut records);
                bytes += records.len();
                records.clear();
            }
            black_box(engine.poll_timeout());
        }
        black_box(bytes);
    };
    run(&mut engine, flying.max(10_000) * 2);
    let start = Instant::now();
    run(&mut engine, count);
    start.elapsed().as_nanos() as f64 / count as f64
}

/// Two nodes with so many links between them: port i is the first node's end of link i.
fn plan(properties: &str, links: usize) -> Plan {
    let mut text = String::from("ipv6: false\nnodes: {a: {}, b: {}}\nlinks:\n");
    for _ in 0..links {
        text += &format!("  - {{between: [a, b], up: {{{properties}}}}}\n");
    }
    World::new(&text).plan().clone()
}
