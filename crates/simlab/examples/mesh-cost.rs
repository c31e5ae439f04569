//! Traffic of the mesh, and how soon a flow is known and a loss is noticed, in virtual time;
//! `bench/mesh` runs it. With an argument: only worlds up to that many agents (default 1000). With
//! a second one: only worlds from that many, and no flows.

use std::ops::RangeInclusive;

use windtunnel_model::Span;
use windtunnel_simlab::mesh::LinkConditions;
use windtunnel_simlab::mesh::measure::{
    AgentState, FlowSpreadLoad, PeakAgentTraffic, SortedDurations, idle, losses, quiet, spread,
};

const SEED: u64 = 42;
/// QUIC's bytes for a datagram: flags, connection id (8), packet number (2), frame header (3), tag
/// (16).
const QUIC: u64 = 30;

fn main() {
    let argument = |index| std::env::args().nth(index).and_then(|text| text.parse().ok());
    let (most, least): (usize, Option<usize>) = (argument(1).unwrap_or(1000), argument(2));
    if least.is_none() {
        spreads();
    }
    let sizes = least.unwrap_or(0)..=most;
    notices(&sizes, AgentState::Run);
    notices(&sizes, AgentState::Idle);
    in_quiet(&sizes);
    without_run(&sizes);
}

fn spreads() {
    println!(
        "A flow's start known to each of 15 other agents; 150 nodes, 300 starts and ends a second, all announced to all; 20 s"
    );
    println!(
        "| network | mean | p50 | p99 | most | sent by the busiest agent | of 1 Gbit/s | with QUIC |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    let slow = LinkConditions {
        delay: Span::from_millis(1),
        jitter: Span::from_millis(1),
        loss: 0,
        twice: 0,
    };
    for (name, conditions) in [
        ("40 to 60 µs each way", LinkConditions::LAN),
        ("the same, 1 % lost", LinkConditions::LAN.losing(10_000)),
        ("the same, 5 % lost", LinkConditions::LAN.losing(50_000)),
        ("1 to 2 ms, reordered", slow),
    ] {
        let span = Span::from_secs(20);
        let load = FlowSpreadLoad { machines: 16, nodes: 150, starts: 300, span, conditions };
        let result = spread(&load, SEED);
        let SortedDurations(all) = &result.known;
        let worst = all.last().copied().unwrap_or_default();
        let (mean, half, most) =
            (result.known.mean(), result.known.percentile(50), result.known.percentile(99));
        println!(
            "| {name} | {} | {} | {} | {} | {} |",
            millis(mean),
            millis(half),
            millis(most),
            millis(worst),
            traffic(result.sent)
        );
    }
}

fn notices(sizes: &RangeInclusive<usize>, state: AgentState) {
    println!("\nA killed agent known to be lost by every other ({state:?})");
    println!("| agents | lost datagrams | kills | mean | most |\n| --- | --- | --- | --- | --- |");
    let rows = [(2, 200), (16, 100), (100, 30), (300, 6), (1000, 2)];
    for (count, kills) in rows.into_iter().filter(|(count, _)| sizes.contains(count)) {
        for loss in [0, 50_000] {
            let times = losses(count, LinkConditions::LAN.losing(loss), kills, SEED, state);
            let worst = times.0.last().copied().unwrap_or_default();
            println!(
                "| {count} | {} % | {kills} | {} | {} |",
                loss / 10_000,
                millis(times.mean()),
                millis(worst)
            );
        }
    }
}

fn in_quiet(sizes: &RangeInclusive<usize>) {
    println!("\nAll agents in one run in which nothing happens");
    println!(
        "| agents | all know all and agree after | sent by the busiest agent | of 1 Gbit/s | with QUIC |"
    );
    println!("| --- | --- | --- | --- | --- |");
    for count in [10, 30, 100, 300, 1000] {
        if sizes.contains(&count) {
            let (sent, settled) = quiet(count, LinkConditions::LAN, Span::from_secs(5), SEED);
            println!("| {count} | {} | {} |", millis(settled), traffic(sent));
        }
    }
}

fn without_run(sizes: &RangeInclusive<usize>) {
    println!("\nAgents without a run");
    println!(
        "| agents | sent by the busiest agent | of 1 Gbit/s | with QUIC | speaks to at most |"
    );
    println!("| --- | --- | --- | --- | --- |");
    for count in [3, 12, 30, 100, 300, 1000] {
        if sizes.contains(&count) {
            let (sent, spoken) = idle(count, LinkConditions::LAN, Span::from_secs(30), SEED);
            println!("| {count} | {} | {spoken} |", traffic(sent));
        }
    }
}

fn millis(span: Span) -> String {
    format!("{:.2} ms", span.as_nanos() as f64 / 1e6)
}

fn traffic(sent: PeakAgentTraffic) -> String {
    let share = |bits: u64| format!("{:.4} %", bits as f64 / 1e7);
    format!(
        "{} datagrams/s, {:.1} kbit/s | {} | {}",
        sent.datagrams,
        sent.bits as f64 / 1e3,
        share(sent.bits),
        share(sent.bits + 8 * QUIC * sent.datagrams)
    )
}
