//! The placement of nodes on machines, and the resources that it takes.

use serde::Serialize;
use windtunnel_model::{Bytes, Plan};
use windtunnel_placement::{
    NodePlacement, PlacedRunLoad, PlacementHost, PlacementRefusal, PlacementRefusalReason,
    UplinkTrafficBound,
};

use crate::render::quantity;
use crate::render::table::{ColumnAlignment, TextTable};

/// A placement for `--json`: exact values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct PlacementOutput {
    strategy: &'static str,
    /// None where it did not come to that.
    hosts: Vec<OnHost>,
    warnings: Vec<String>,
    /// Why the machines cannot carry it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refusals: Vec<PlacementRefusalOutput>,
}

/// One reason for which it is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct PlacementRefusalOutput {
    message: String,
    hint: String,
}

/// The load of one machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct OnHost {
    host: String,
    nodes: Vec<String>,
    cpu: ExpectedCpuLoad,
    memory: ExpectedMemoryLoad,
    up: Uplink,
    down: Uplink,
}

/// Thousandths of processors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct ExpectedCpuLoad {
    expected_millis: u64,
    free_millis: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct ExpectedMemoryLoad {
    expected: Bytes,
    free: Bytes,
}

/// One direction of an uplink.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Uplink {
    /// The most bits a second that can cross it; none where nothing bounds them.
    most: Option<u64>,
    /// How many nodes nothing bounds.
    unbounded_nodes: u32,
    /// Bits a second that no other run has; none where the uplink is not known.
    free: Option<u64>,
}

/// A placement, to be serialised; of one that was refused the best that was found, with the
/// reasons.
pub(crate) fn json(
    placed: Result<&NodePlacement, &PlacementRefusal>,
    plan: &Plan,
    hosts: &[PlacementHost],
) -> PlacementOutput {
    let (placement, reasons) = match placed {
        Ok(placement) => (Some(placement), &[][..]),
        Err(refused) => (refused.attempt.as_ref(), &refused.reasons[..]),
    };
    let warnings = placement.iter().flat_map(|placement| &placement.warnings);
    PlacementOutput {
        strategy: plan.placement.name(),
        warnings: warnings.map(ToString::to_string).collect(),
        hosts: placement.map(|placement| on_hosts(placement, plan, hosts)).unwrap_or_default(),
        refusals: reasons.iter().map(PlacementRefusalOutput::of).collect(),
    }
}

fn on_hosts(placement: &NodePlacement, plan: &Plan, hosts: &[PlacementHost]) -> Vec<OnHost> {
    let each = hosts.iter().zip(&placement.loads).enumerate();
    let hosts = each.map(|(at, (host, load))| OnHost {
        host: host.name.clone(),
        nodes: placement.nodes_on(at).map(|id| plan.nodes[id.index()].name.clone()).collect(),
        cpu: ExpectedCpuLoad {
            expected_millis: load.cpu_millis,
            free_millis: host.free_cpu_millis(),
        },
        memory: ExpectedMemoryLoad { expected: load.memory, free: host.free_memory() },
        up: Uplink::of(load.up, host.free_up()),
        down: Uplink::of(load.down, host.free_down()),
    });
    hosts.collect()
}

impl PlacementRefusalOutput {
    fn of(refusal: &PlacementRefusalReason) -> Self {
        PlacementRefusalOutput { message: refusal.to_string(), hint: refusal.hint() }
    }
}

impl Uplink {
    fn of(traffic: UplinkTrafficBound, free: Option<u64>) -> Self {
        match traffic {
            UplinkTrafficBound::Bounded(most) => {
                Uplink { most: Some(most), unbounded_nodes: 0, free }
            }
            UplinkTrafficBound::Unbounded { nodes } => {
                Uplink { most: None, unbounded_nodes: nodes, free }
            }
        }
    }
}

/// A placement for people: a row for each machine, then which nodes are where, then warnings.
pub(crate) fn text(placement: &NodePlacement, plan: &Plan, hosts: &[PlacementHost]) -> String {
    let right = ["nodes", "cpu of free", "memory of free", "up of free", "down of free"];
    let columns = right.into_iter().map(|heading| (heading, ColumnAlignment::Right));
    let columns: Vec<_> = std::iter::once(("host", ColumnAlignment::Left)).chain(columns).collect();
    let mut table = TextTable::new(&columns);
    for (host, load) in hosts.iter().zip(&placement.loads) {
        table.row(row(host, load));
    }
    let mut text = table.render("");
    for (at, host) in hosts.iter().enumerate() {
        let names = names(placement, plan, at);
        if !names.is_empty() {
            text.push_str(&format!("{}: {names}\n", host.name));
        }
    }
    for warning in &placement.warnings {
        text.push_str(&format!("warning: {warning}\n"));
    }
    text
}

fn row(host: &PlacementHost, load: &PlacedRunLoad) -> Vec<String> {
    let bytes = |bytes: Bytes| quantity::bytes(bytes.0);
    let nodes = match host.free_nodes() {
        Some(free) => format!("{} of {free}", load.nodes),
        None => load.nodes.to_string(),
    };
    vec![
        host.name.clone(),
        nodes,
        format!(
            "{} of {}",
            quantity::processors(load.cpu_millis),
            quantity::processors(host.free_cpu_millis())
        ),
        format!("{} of {}", bytes(load.memory), bytes(host.free_memory())),
        uplink(load.up, host.free_up()),
        uplink(load.down, host.free_down()),
    ]
}

fn uplink(traffic: UplinkTrafficBound, free: Option<u64>) -> String {
    let free = free.map_or_else(|| "?".to_owned(), quantity::rate);
    match traffic {
        UplinkTrafficBound::Bounded(most) => format!("{} of {free}", quantity::rate(most)),
        UplinkTrafficBound::Unbounded { nodes } => format!("not bounded ({nodes}) of {free}"),
    }
}

/// The nodes on a machine: a group that is there whole by its name, of others how many.
fn names(placement: &NodePlacement, plan: &Plan, host: usize) -> String {
    let mut groups: Vec<(&str, usize)> = Vec::new();
    for id in placement.nodes_on(host) {
        let group = plan.nodes[id.index()].group.as_str();
        match groups.last_mut().filter(|(last, _)| *last == group) {
            Some((_, count)) => *count += 1,
            None => groups.push((group, 1)),
        }
    }
    let names = groups.into_iter().map(|(group, here)| {
        let all = plan.nodes.iter().filter(|node| node.group == group).count();
        if here == all { group.to_owned() } else { format!("{group} ({here} of {all})") }
    });
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use windtunnel_placement::{Rtts, place};

    use super::*;

    fn example() -> (Plan, Vec<PlacementHost>) {
        let file = b"nodes: {web: {pin: m1, cpu: 1.5, memory: 256MB}, c: {count: 3}}\nrouters: [r]\nlinks:\n\
                     - {between: [web, r], rate: 100mbit}\n- {between: [c, r], rate: 10mbit}\n";
        let source = windtunnel_scenario::ScenarioSource {
            name: "n.yaml",
            text: file,
            default_name: "n",
            base_dir: "/",
        };
        let plan = windtunnel_scenario::load(&source).unwrap().plan;
        let mut hosts = vec![PlacementHost::new("m1"), PlacementHost::new("m2")];
        hosts[0].uplink = "1gbit".parse().ok();
        hosts[0].reserved.uplink_up = 250_000_000;
        hosts[1].nodes_max = Some(8);
        (plan, hosts)
    }

    #[test]
    fn the_table_shows_what_each_machine_gets_of_its_free_resources() {
        let (plan, hosts) = example();
        let mut placed = place(&plan, &hosts, &Rtts::default()).unwrap();
        placed.hosts = vec![0, 0, 1, 1];
        let nodes = |load: PlacedRunLoad, nodes| PlacedRunLoad { nodes, ..load };
        placed.loads = vec![nodes(placed.loads[0], 2), nodes(placed.loads[1], 2)];
        placed.loads[0].cpu_millis = 1500;
        placed.loads[0].memory = Bytes(258_000_000);
        placed.loads[0].up = UplinkTrafficBound::Bounded(20_286_086);
        placed.loads[0].down = UplinkTrafficBound::Unbounded { nodes: 2 };
        placed.loads[1].memory = Bytes(2_000_000);
        (placed.loads[1].up, placed.loads[1].down) =
            (UplinkTrafficBound::Bounded(0), UplinkTrafficBound::Bounded(5));
        let expected = "\
host   nodes  cpu of free   memory of free           up of free              down of free
m1         2    1.5 of 16    258MB of 64GB  20.29mbit of 750mbit  not bounded (2) of 1gbit
m2    2 of 8      0 of 16      2MB of 64GB             0bit of ?                 5bit of ?
m1: web, c (1 of 3)
m2: c (2 of 3)
warning: the round-trip time between m1 and m2 is not known: no path was compared with it
";
        let spaced = |text: &str| -> Vec<String> {
            text.lines().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
        };
        assert_eq!(spaced(&text(&placed, &plan, &hosts)), spaced(expected));
    }

    #[test]
    fn json_has_exact_values_and_every_node() {
        let (plan, hosts) = example();
        let placed = place(&plan, &hosts, &Rtts::default()).unwrap();
        let value = serde_json::to_value(json(Ok(&placed), &plan, &hosts)).unwrap();
        assert_eq!(value.get("refusals"), None);
        let hosts = value["hosts"].as_array().unwrap();
        let nodes: usize = hosts.iter().map(|host| host["nodes"].as_array().unwrap().len()).sum();
        assert_eq!((hosts.len(), nodes), (2, 4));
        assert_eq!(value["strategy"], "auto");
        assert_eq!(hosts[0]["nodes"][0], "web");
        assert_eq!(hosts[0]["cpu"]["expected_millis"], 1500);
        assert_eq!(hosts[0]["up"]["free"], 750_000_000);
        assert_eq!(hosts[1]["up"]["free"], serde_json::Value::Null);
    }
    #[test]
    fn json_of_a_refusal_has_the_reasons_and_the_best_that_was_found() {
        let (mut plan, hosts) = example();
        plan.nodes[0].demand.cpu_reserved_millis = Some(17_000);
        let refused = place(&plan, &hosts, &Rtts::default()).unwrap_err();
        let value = serde_json::to_value(json(Err(&refused), &plan, &hosts)).unwrap();
        assert_eq!(value["hosts"][0]["cpu"]["expected_millis"], 17_000);
        let text = "host m1: the nodes put there need 17 processors, it has 16 processors free";
        assert_eq!(value["refusals"][0]["message"], text);
        plan.nodes[0].pin = Some("m9".to_owned());
        let refused = place(&plan, &hosts, &Rtts::default()).unwrap_err();
        let value = serde_json::to_value(json(Err(&refused), &plan, &hosts)).unwrap();
        assert_eq!(value["hosts"], serde_json::json!([]));
        assert_eq!(value["refusals"][0]["hint"], "the machines are m1, m2");
    }
}
