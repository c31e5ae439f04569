//! Machines and plans for tests.

use windtunnel_cluster::protocol::{AgentClockOffset, AgentDescription, PeerAgent};
use windtunnel_model::word::ClockSource;
use windtunnel_model::{Bytes, Plan};

/// A machine at 10.0.0.`last` with 8 processors and 16 GB, of which 12 are free.
#[must_use]
pub fn card(name: &str, last: u8) -> AgentDescription {
    AgentDescription {
        agent: format!("{name}-{last}"),
        host: name.into(),
        address: ([10, 0, 0, last], 7447).into(),
        labels: ["ssd".to_owned()].into(),
        windtunnel: "1".into(),
        kernel: "6".into(),
        cpus: 8,
        load_hundredths: 105,
        memory: Bytes(16_000_000_000),
        memory_free: Bytes(12_000_000_000),
        uplink: None,
        nodes_max: None,
        cpu_millis_max: None,
        reserved: Default::default(),
        refused_datagrams: 0,
        unfit: None,
        peers: Vec::new(),
    }
}

/// One machine has measured how far another is.
pub fn knows(cards: &mut [AgentDescription], from: usize, to: usize, rtt_ns: u64) {
    let (agent, address) = (cards[to].agent.clone(), cards[to].address);
    let clock = Some(AgentClockOffset {
        by: ClockSource::Exchanges,
        offset_ns: 0,
        error_ns: rtt_ns / 2,
        rtt_ns,
    });
    cards[from].peers.push(PeerAgent { agent, address, clock });
}

/// The plan of a file for several machines.
///
/// # Panics
/// If the file has a mistake.
#[must_use]
pub fn plan(text: &str) -> Plan {
    let source = windtunnel_scenario::ScenarioSource {
        name: "net.yaml",
        text: text.as_bytes(),
        default_name: "net",
        base_dir: "/",
    };
    let instead =
        windtunnel_scenario::ScenarioOverrides { several_machines: true, ..Default::default() };
    windtunnel_scenario::load_instead(&source, &|_| Err(String::new()), instead)
        .unwrap_or_else(|errors| panic!("{errors}"))
        .plan
}
