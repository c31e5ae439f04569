//! Whether a plan fits this machine, said before it runs.

use std::fs;

use windtunnel_model::{Bytes, LinkProfile, Plan};
use windtunnel_sys::limits;

/// Something about a plan that this machine may not carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanFitConcern {
    /// What, with the numbers.
    pub text: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// What of `plan` may not fit this machine; empty when nothing is known against it.
#[must_use]
pub fn fits(plan: &Plan, packet_memory: Bytes) -> Vec<PlanFitConcern> {
    let concerns = [
        descriptors(plan),
        namespaces(plan),
        memory(plan, packet_memory),
        packets_under_way(plan, packet_memory),
        fastest_link(plan),
        neighbours(plan),
    ];
    concerns.into_iter().flatten().collect()
}

fn descriptors(plan: &Plan) -> Option<PlanFitConcern> {
    let programs: usize = plan.nodes.iter().map(|node| node.programs.len()).sum();
    let needed = DESCRIPTORS_BASE + plan.nodes.len() as u64 * 2 + programs as u64 * 2;
    let allowed = limits::open_files().hard?;
    (needed > allowed).then(|| PlanFitConcern {
        text: format!("the run needs {needed} open files, this process may have {allowed}"),
        hint: Some(format!("raise the limit: `ulimit -Hn {needed}` as root, or in limits.conf")),
    })
}

fn namespaces(plan: &Plan) -> Option<PlanFitConcern> {
    let needed = plan.nodes.len() as u64 + 1;
    let allowed = number("/proc/sys/user/max_net_namespaces")?;
    (needed > allowed).then(|| PlanFitConcern {
        text: format!("the run needs {needed} network namespaces, a user may have {allowed}"),
        hint: Some(format!("sudo sysctl -w user.max_net_namespaces={}", needed * 2)),
    })
}

fn memory(plan: &Plan, packet_memory: Bytes) -> Option<PlanFitConcern> {
    let wanted = plan.nodes.len() as u64 * BYTES_PER_NODE + packet_memory.0.min(under_way(plan));
    let available = available_memory()?;
    (wanted > available).then(|| PlanFitConcern {
        text: format!(
            "the network needs about {} MB beside its programs, {} MB are free",
            wanted / 1_000_000,
            available / 1_000_000
        ),
        hint: None,
    })
}

fn packets_under_way(plan: &Plan, packet_memory: Bytes) -> Option<PlanFitConcern> {
    let most = under_way(plan);
    (most > packet_memory.0).then(|| PlanFitConcern {
        text: format!(
            "full links and queues hold {} MB of packets, more than the packet memory of {} MB",
            most / 1_000_000,
            packet_memory.0 / 1_000_000
        ),
        hint: Some(format!("run with --packet-memory {}MB", most.div_ceil(1_000_000))),
    })
}

fn fastest_link(plan: &Plan) -> Option<PlanFitConcern> {
    let profiles = plan.links.iter().flat_map(|link| link.profiles.iter().map(move |p| (link, p)));
    let (link, rate) =
        profiles.filter_map(|(link, p)| Some((link, p.rate?))).max_by_key(|l| l.1)?;
    (rate.bits_per_second() > ENGINE_BITS_PER_S).then(|| PlanFitConcern {
        text: format!(
            "link {} asks for {rate}; one core moves about {} gbit in full packets",
            link.name,
            ENGINE_BITS_PER_S / 1_000_000_000
        ),
        hint: Some("the verdict says whether the run kept up".to_owned()),
    })
}

/// Where all stations of the LANs talk to all others, each kernel keeps a neighbour for each; all
/// namespaces of the machine share the room for them, one a family.
fn neighbours(plan: &Plan) -> Option<PlanFitConcern> {
    let stations = plan.lans.iter().map(|lan| lan.attachments.len() as u64);
    let needed: u64 = stations.map(|count| count * count.saturating_sub(1)).sum();
    // Only the machine's own namespace shows the setting; elsewhere it is usually the default.
    let allowed = number("/proc/sys/net/ipv4/neigh/default/gc_thresh3").unwrap_or(NEIGHBOURS);
    (needed > allowed).then(|| PlanFitConcern {
        text: format!(
            "if all hosts of its LANs talk to all, {needed} addresses are resolved at a time, the machine \
             keeps {allowed}"
        ),
        hint: Some(format!(
            "sudo sysctl -w net.ipv4.neigh.default.gc_thresh3={0} net.ipv6.neigh.default.gc_thresh3={0}",
            needed * 2
        )),
    })
}

/// Bytes in flight and in queues when every rated direction is full.
fn under_way(plan: &Plan) -> u64 {
    let profiles = plan.links.iter().flat_map(|link| &link.profiles);
    profiles.map(full_link).fold(0, u64::saturating_add)
}

fn full_link(profile: &LinkProfile) -> u64 {
    let Some(rate) = profile.rate else { return 0 };
    let queue = profile.effective_queue().map_or(0, |limit| limit.bytes_at(rate, profile.mtu));
    rate.bytes_in(profile.latency).saturating_add(queue)
}

fn available_memory() -> Option<u64> {
    let table = fs::read_to_string("/proc/meminfo").ok()?;
    let line = table.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_ascii_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}

fn number(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The engine's socket, the control socket, the files of the run, the libraries.
const DESCRIPTORS_BASE: u64 = 64;
/// Namespaces, devices and the init of one node.
const BYTES_PER_NODE: u64 = 1_000_000;
/// `gc_thresh3` of arp(7).
const NEIGHBOURS: u64 = 1024;
/// Above this, a link's rate may not be reached.
const ENGINE_BITS_PER_S: u64 = 10_000_000_000;
