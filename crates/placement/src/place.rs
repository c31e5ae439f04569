//! From a plan and machines to a placement.

use alloc::vec;
use alloc::vec::Vec;

use windtunnel_model::placement::Strategy;
use windtunnel_model::plan::Node;
use windtunnel_model::{Bytes, Plan, Resource};
use windtunnel_routing::Routes;

use crate::closeness::{self, NodeProximity, UnionFind};
use crate::host::{PlacementHost, Rtts};
use crate::net::Net;
use crate::outcome::{NodePlacement, PlacedRunLoad, UplinkTrafficBound};
use crate::problem::{PlacementProblem, PlacementUnit, UnitDemand};
use crate::refused::{PlacementRefusal, PlacementRefusalReason, UplinkDirection};
use crate::{search, uplink};

/// Memory of a node's namespaces, devices and init on its machine.
pub const BYTES_PER_NODE: u64 = 1_000_000;

/// Puts every node of `plan` on one of `hosts`, by the plan's strategy. With [`Strategy::Auto`]
/// fewer machines are used where all of them together cannot carry it.
///
/// # Errors
/// With every reason that was found if there is a pin that means no machine, if processors, memory
/// or room for nodes do not suffice, if a path between machines is shorter than half their round
/// trip, or if nodes can send more than an uplink carries.
pub fn place(
    plan: &Plan,
    hosts: &[PlacementHost],
    rtts: &Rtts,
) -> Result<NodePlacement, PlacementRefusal> {
    let refused = |reasons| PlacementRefusal { reasons, attempt: None };
    if hosts.is_empty() {
        return Err(refused(vec![PlacementRefusalReason::NoHosts]));
    }
    let reasons = unknown_pins(plan, hosts);
    if !reasons.is_empty() {
        return Err(refused(reasons));
    }
    let site = PlacementInputs::new(plan, hosts, rtts);
    let all = vec![true; hosts.len()];
    let reasons = site.totals(&all);
    if !reasons.is_empty() {
        return Err(refused(reasons));
    }
    let fewer = |count: usize| site.first(count).filter(|used| site.totals(used).is_empty());
    match plan.placement {
        Strategy::Spread => site.attempt(Strategy::Spread, &all),
        Strategy::Auto => site.attempt(Strategy::Auto, &all).or_else(|refused| {
            let mut fewer = (1..hosts.len()).rev().filter_map(fewer);
            fewer.find_map(|used| site.attempt(Strategy::Auto, &used).ok()).ok_or(refused)
        }),
        Strategy::Pack => {
            let mut fewer = (1..hosts.len()).filter_map(fewer);
            let found = fewer.find_map(|used| site.attempt(Strategy::Pack, &used).ok());
            found.map_or_else(|| site.attempt(Strategy::Pack, &all), Ok)
        }
    }
}

/// One reason for each pin that means no machine.
fn unknown_pins(plan: &Plan, hosts: &[PlacementHost]) -> Vec<PlacementRefusalReason> {
    let mut reasons: Vec<PlacementRefusalReason> = Vec::new();
    for node in &plan.nodes {
        let Some(said) = &node.pin else { continue };
        if hosts.iter().any(|host| host.answers_to(said)) {
            continue;
        }
        let known = reasons.iter_mut().find_map(|reason| match reason {
            PlacementRefusalReason::UnknownPin { pin, more, .. } if pin == said => Some(more),
            _ => None,
        });
        if let Some(more) = known {
            *more += 1;
            continue;
        }
        let known = hosts.iter().map(|host| host.name.clone()).collect();
        let (node, pin) = (node.name.clone(), said.clone());
        reasons.push(PlacementRefusalReason::UnknownPin { node, more: 0, pin, known });
    }
    reasons
}

/// All that attempts share.
struct PlacementInputs<'a> {
    plan: &'a Plan,
    hosts: &'a [PlacementHost],
    rtts: &'a Rtts,
    net: Net,
    routes: Routes,
    tree: Vec<NodeProximity>,
    /// Each node by itself, without its links.
    nodes: Vec<PlacementUnit>,
}

impl<'a> PlacementInputs<'a> {
    fn new(plan: &'a Plan, hosts: &'a [PlacementHost], rtts: &'a Rtts) -> Self {
        let net = Net::new(plan);
        let (tree, routes) = (closeness::tree(&net), Routes::compute(plan));
        PlacementInputs { plan, hosts, rtts, tree, routes, nodes: units(plan, hosts), net }
    }

    /// The first `count` machines: those that pins need, then those with the most free; `None` if
    /// some node may be on none of them.
    fn first(&self, count: usize) -> Option<Vec<bool>> {
        let only = |host: usize| {
            self.nodes.iter().any(|node| {
                node.allowed[host] && node.allowed.iter().filter(|allowed| **allowed).count() == 1
            })
        };
        let mut order: Vec<usize> = (0..self.hosts.len()).collect();
        order.sort_by_key(|at| {
            let host = &self.hosts[*at];
            let free = (host.free_cpu_millis(), host.free_memory());
            (core::cmp::Reverse((only(*at), free)), *at)
        });
        let mut used = vec![false; self.hosts.len()];
        order.into_iter().take(count).for_each(|host| used[host] = true);
        let may_be = |unit: &PlacementUnit| unit.allowed.iter().zip(&used).any(|(a, b)| *a && *b);
        self.nodes.iter().all(may_be).then_some(used)
    }

    /// Resources lacking on all used machines together.
    fn totals(&self, used: &[bool]) -> Vec<PlacementRefusalReason> {
        let hosts = || self.hosts.iter().zip(used).filter(|(_, used)| **used).map(|(host, _)| host);
        let loads = self.needs(&vec![0; self.plan.nodes.len()]);
        let Some(all) = loads.first() else { return Vec::new() };
        let nodes = hosts().map(|host| host.free_nodes().map(u64::from)).sum::<Option<u64>>();
        let cpu = hosts().map(PlacementHost::free_cpu_millis).sum();
        let memory = hosts().map(|host| host.free_memory().0).sum();
        let asked = [
            (Some(Resource::Cpu), all.cpu_millis, cpu),
            (Some(Resource::Memory), all.memory.0, memory),
            (None, u64::from(all.nodes), nodes.unwrap_or(u64::MAX)),
        ];
        lacking(None, asked)
    }

    fn attempt(
        &self,
        strategy: Strategy,
        used: &[bool],
    ) -> Result<NodePlacement, PlacementRefusal> {
        let (groups, group_of) = self.groups(used);
        let (hosts, rtts) = (self.hosts, self.rtts);
        let mut problem =
            PlacementProblem::new(&self.net, groups, &group_of, &self.tree, hosts, rtts);
        problem.fill(strategy, used);
        let labels = search::divide(&problem);
        let placed: Vec<usize> = group_of.iter().map(|group| labels[*group]).collect();
        let (close, warnings) =
            closeness::check(self.plan, &self.routes, &self.net, &placed, hosts, rtts);
        let loads = self.loads(&placed);
        let mut reasons: Vec<PlacementRefusalReason> = close;
        for (host, load) in hosts.iter().zip(&loads) {
            reasons.extend(too_little(host, load));
            reasons.extend(too_much(host, load));
        }
        let placement = NodePlacement { hosts: placed, loads, warnings };
        match reasons.is_empty() {
            true => Ok(placement),
            false => Err(PlacementRefusal { reasons, attempt: Some(placement) }),
        }
    }

    /// Nodes that must share a machine, whichever it is: their paths are shorter than between any
    /// two. They stay separate where pins or room leave no machine for all of them; that is then
    /// refused with numbers.
    fn groups(&self, used: &[bool]) -> (Vec<PlacementUnit>, Vec<usize>) {
        let mut groups = UnionFind::new(self.nodes.len());
        let mut units = self.nodes.clone();
        for near in self.inseparable(used) {
            let (a, b) = (groups.of(near.a), groups.of(near.b));
            if a == b {
                continue;
            }
            let joined = joined(&units[a], &units[b]);
            if self.has_room(&joined, used) {
                groups.join(a, b);
                units[a.min(b)] = joined;
            }
        }
        let mut numbers = vec![None; units.len()];
        let (mut kept, mut group_of) = (Vec::new(), Vec::new());
        for node in 0..self.nodes.len() {
            let root = groups.of(node);
            let number = *numbers[root].get_or_insert_with(|| {
                kept.push(units[root].clone());
                kept.len() - 1
            });
            group_of.push(number);
        }
        (kept, group_of)
    }

    /// The edges of the tree that no two of the machines can be between.
    fn inseparable(&self, used: &[bool]) -> Vec<NodeProximity> {
        let used: Vec<usize> = (0..used.len()).filter(|host| used[*host]).collect();
        let pairs = used
            .iter()
            .enumerate()
            .flat_map(|(at, a)| used[at + 1..].iter().map(move |b| (*a, *b)));
        let limit = pairs.map(|(a, b)| self.rtts.one_way(a, b)).min().unwrap_or(0);
        let near = self.tree.iter().filter(|near| near.latency < limit);
        let (none, some): (Vec<NodeProximity>, Vec<NodeProximity>) =
            near.partition(|near| near.latency == 0);
        let is_near = |near: &NodeProximity| {
            closeness::is_nearer(self.plan, &self.routes, &self.net, *near, limit)
        };
        let mut found: Vec<NodeProximity> = some.into_iter().filter(is_near).collect();
        // Nodes without latency between them are free to part, unless one has a near neighbour:
        // then so has the other.
        let mut alike = UnionFind::new(self.nodes.len());
        for near in &none {
            alike.join(near.a, near.b);
        }
        let mut strict = vec![false; self.nodes.len()];
        for near in &found {
            strict[alike.of(near.a)] = true;
            strict[alike.of(near.b)] = true;
        }
        found.extend(none.into_iter().filter(|near| strict[alike.of(near.a)]));
        found
    }

    fn has_room(&self, unit: &PlacementUnit, used: &[bool]) -> bool {
        let whole = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        (0..self.hosts.len()).any(|at| {
            let host = &self.hosts[at];
            let room = UnitDemand {
                cpu: whole(host.free_cpu_millis()),
                memory: whole(host.free_memory().0 / 1000),
                nodes: host.free_nodes().map_or(i64::MAX, i64::from),
            };
            used[at] && unit.allowed[at] && unit.need.lack(room) == 0
        })
    }

    fn loads(&self, placed: &[usize]) -> Vec<PlacedRunLoad> {
        let mut loads = self.needs(placed);
        for (host, load) in loads.iter_mut().enumerate() {
            load.up = uplink::up(&self.net, placed, host);
            load.down = uplink::down(&self.net, placed, host);
        }
        loads
    }

    /// Loads without the network's.
    fn needs(&self, placed: &[usize]) -> Vec<PlacedRunLoad> {
        let nothing = UplinkTrafficBound::Bounded(0);
        let empty =
            PlacedRunLoad { nodes: 0, cpu_millis: 0, memory: Bytes(0), up: nothing, down: nothing };
        let mut loads = vec![empty; self.hosts.len()];
        for (node, host) in self.plan.nodes.iter().zip(placed) {
            let load = &mut loads[*host];
            load.nodes += 1;
            load.cpu_millis += node.reserved_cpu_millis();
            let memory = node.reserved_memory().saturating_add(BYTES_PER_NODE);
            load.memory = Bytes(load.memory.0.saturating_add(memory));
        }
        loads
    }
}

/// Each node as a unit. One with unknown processors counts like the mean of the others.
fn units(plan: &Plan, hosts: &[PlacementHost]) -> Vec<PlacementUnit> {
    let reserved = |node: &Node| {
        let cpu = i64::try_from(node.reserved_cpu_millis()).unwrap_or(LARGEST);
        (cpu > 0).then_some(cpu)
    };
    let stated: Vec<i64> = plan.nodes.iter().filter_map(reserved).collect();
    let count = i64::try_from(stated.len()).unwrap_or(i64::MAX);
    let usual = stated.iter().sum::<i64>().checked_div(count).unwrap_or(1000).max(1);
    let units = plan.nodes.iter().map(|node| {
        let memory = node.reserved_memory().saturating_add(BYTES_PER_NODE);
        let memory = i64::try_from(memory.div_ceil(1000)).unwrap_or(i64::MAX);
        let cpu = reserved(node);
        PlacementUnit {
            need: UnitDemand { cpu: cpu.unwrap_or(0), memory: memory.min(LARGEST), nodes: 1 },
            weight: cpu.unwrap_or(usual).max(1),
            allowed: allowed(node.pin.as_deref(), hosts),
            ..PlacementUnit::default()
        }
    });
    units.collect()
}

/// The machine of that name, else all that are labelled so.
fn allowed(pin: Option<&str>, hosts: &[PlacementHost]) -> Vec<bool> {
    let Some(pin) = pin else { return vec![true; hosts.len()] };
    let named = hosts.iter().any(|host| host.name == pin);
    let fits = |host: &PlacementHost| if named { host.name == pin } else { host.answers_to(pin) };
    hosts.iter().map(fits).collect()
}

fn joined(a: &PlacementUnit, b: &PlacementUnit) -> PlacementUnit {
    PlacementUnit {
        need: a.need.plus(b.need, 1),
        weight: a.weight + b.weight,
        allowed: a.allowed.iter().zip(&b.allowed).map(|(a, b)| *a && *b).collect(),
        ..PlacementUnit::default()
    }
}

fn too_little(host: &PlacementHost, load: &PlacedRunLoad) -> Vec<PlacementRefusalReason> {
    let nodes = host.free_nodes().map_or(u64::MAX, u64::from);
    let asked = [
        (Some(Resource::Cpu), load.cpu_millis, host.free_cpu_millis()),
        (Some(Resource::Memory), load.memory.0, host.free_memory().0),
        (None, u64::from(load.nodes), nodes),
    ];
    // A machine that another run has filled does not matter if nothing is put on it.
    if load.nodes == 0 { Vec::new() } else { lacking(Some(host), asked) }
}

/// What is asked of resources, or of room for nodes, and how much of that is free.
fn lacking(
    host: Option<&PlacementHost>,
    asked: [(Option<Resource>, u64, u64); 3],
) -> Vec<PlacementRefusalReason> {
    let lacking = asked.into_iter().filter(|(_, asked, free)| asked > free);
    let reason = |(resource, asked, free)| {
        let host = host.map(|host| host.name.clone());
        match resource {
            Some(resource) => PlacementRefusalReason::TooLittle { resource, asked, free, host },
            None => PlacementRefusalReason::TooMany { asked, free, host },
        }
    };
    lacking.map(reason).collect()
}

fn too_much(host: &PlacementHost, load: &PlacedRunLoad) -> Vec<PlacementRefusalReason> {
    let Some(uplink) = host.uplink else { return Vec::new() };
    let ways = [
        (UplinkDirection::Up, load.up, host.free_up()),
        (UplinkDirection::Down, load.down, host.free_down()),
    ];
    let over = ways.into_iter().filter_map(|(way, traffic, free)| match (traffic, free) {
        (UplinkTrafficBound::Bounded(asked), Some(free)) if asked > free => {
            Some(PlacementRefusalReason::Uplink {
                host: host.name.clone(),
                way,
                asked,
                uplink,
                free,
            })
        }
        _ => None,
    });
    over.collect()
}

/// Kilobytes: sums of it over all nodes fit.
const LARGEST: i64 = 1 << 48;
