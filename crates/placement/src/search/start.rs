//! Divisions to start from.

use alloc::collections::BinaryHeap;
use alloc::vec;
use alloc::vec::Vec;

use crate::problem::{PlacementProblem, UnitDemand};

/// A label for each unit, several times.
pub(super) fn starts(problem: &PlacementProblem) -> Vec<Vec<usize>> {
    let order = neighbourly(problem);
    vec![grown(problem), poured(problem, &order), dealt(problem), fitted(problem)]
}

/// Every division of the groups, with routers nowhere yet, if there are no more than `most`; else
/// none.
pub(super) fn each(problem: &PlacementProblem, most: usize) -> impl Iterator<Item = Vec<usize>> {
    let (groups, hosts) = (problem.groups, problem.rooms.len());
    let count = u32::try_from(groups).ok().and_then(|groups| hosts.checked_pow(groups));
    let count = count.filter(|count| *count <= most).unwrap_or(0);
    let division = move |number: usize| {
        let mut labels = vec![hosts; problem.units.len()];
        let mut rest = number;
        for label in &mut labels[..groups] {
            (*label, rest) = (rest % hosts, rest / hosts);
        }
        labels
    };
    let allowed = move |labels: &Vec<usize>| {
        (0..groups).all(|group| problem.units[group].allowed[labels[group]])
    };
    (0..count).map(division).filter(allowed)
}

/// Each machine grows from a seed by the unit that is tied most to its units, until its share is
/// full.
fn grown(problem: &PlacementProblem) -> Vec<usize> {
    let nowhere = problem.rooms.len();
    let mut labels = vec![nowhere; problem.units.len()];
    let mut filling = PartialMachineLoads::new(problem);
    place_pinned(problem, &mut labels, &mut filling);
    for host in by_share(problem) {
        let mut ties = vec![0i64; problem.units.len()];
        let mut open: BinaryHeap<(i64, core::cmp::Reverse<usize>)> = BinaryHeap::new();
        let mut seeds = 0..problem.groups;
        let members: Vec<usize> = (0..labels.len()).filter(|u| labels[*u] == host).collect();
        members.into_iter().for_each(|unit| reach(problem, unit, &mut ties, &mut open));
        while filling.weight[host] < filling.share(host) {
            let next = loop {
                match open.pop() {
                    Some((tie, core::cmp::Reverse(unit))) if tie == ties[unit] => break Some(unit),
                    Some(_) => {}
                    None => {
                        break seeds
                            .find(|seed| labels[*seed] == nowhere && filling.fits(*seed, host));
                    }
                }
            };
            let Some(unit) = next else { break };
            let is_group = unit < problem.groups;
            if labels[unit] != nowhere || (is_group && !filling.fits(unit, host)) {
                continue;
            }
            labels[unit] = host;
            filling.add(unit, host);
            reach(problem, unit, &mut ties, &mut open);
        }
    }
    rest(problem, &mut labels, &mut filling);
    labels
}

/// Raises the ties of a unit's neighbours.
fn reach(
    problem: &PlacementProblem,
    unit: usize,
    ties: &mut [i64],
    open: &mut BinaryHeap<(i64, core::cmp::Reverse<usize>)>,
) {
    for edge in &problem.units[unit].edges {
        ties[edge.to] += edge.weight;
        open.push((ties[edge.to], core::cmp::Reverse(edge.to)));
    }
}

/// Machine after machine is filled in the order of a walk through the network.
fn poured(problem: &PlacementProblem, order: &[usize]) -> Vec<usize> {
    let nowhere = problem.rooms.len();
    let mut labels = vec![nowhere; problem.units.len()];
    let mut filling = PartialMachineLoads::new(problem);
    place_pinned(problem, &mut labels, &mut filling);
    for host in 0..nowhere {
        for unit in order {
            if filling.weight[host] >= filling.share(host) {
                break;
            }
            if labels[*unit] == nowhere && filling.fits(*unit, host) {
                labels[*unit] = host;
                filling.add(*unit, host);
            }
        }
    }
    rest(problem, &mut labels, &mut filling);
    labels
}

/// Round robin.
fn dealt(problem: &PlacementProblem) -> Vec<usize> {
    let hosts = problem.rooms.len();
    let mut labels = vec![hosts; problem.units.len()];
    let mut filling = PartialMachineLoads::new(problem);
    let mut next = 0;
    for (unit, label) in labels[..problem.groups].iter_mut().enumerate() {
        let mut turn = (0..hosts).map(|step| (next + step) % hosts);
        if let Some(host) = turn.find(|host| filling.fits(unit, *host)) {
            *label = host;
            filling.add(unit, host);
            next = (host + 1) % hosts;
        }
    }
    rest(problem, &mut labels, &mut filling);
    labels
}

/// The neediest first, each where it leaves the least room (best fit, decreasing): for tight
/// machines.
fn fitted(problem: &PlacementProblem) -> Vec<usize> {
    let hosts = problem.rooms.len();
    let mut labels = vec![hosts; problem.units.len()];
    let mut filling = PartialMachineLoads::new(problem);
    let size = |need: UnitDemand| {
        let total = problem.rooms.iter().fold(UnitDemand::default(), |sum, room| UnitDemand {
            cpu: sum.cpu.saturating_add(room.need.cpu),
            memory: sum.memory.saturating_add(room.need.memory),
            nodes: 0,
        });
        let part = |need: i64, of: i64| i128::from(need) * 1_000_000_000 / i128::from(of.max(1));
        part(need.cpu, total.cpu).max(part(need.memory, total.memory))
    };
    let mut order: Vec<usize> = (0..problem.groups).collect();
    order.sort_by_key(|unit| (core::cmp::Reverse(size(problem.units[*unit].need)), *unit));
    for unit in order {
        let fitting = (0..hosts).filter(|host| filling.fits(unit, *host));
        if let Some(host) = fitting.min_by_key(|host| size(filling.left(*host))) {
            labels[unit] = host;
            filling.add(unit, host);
        }
    }
    rest(problem, &mut labels, &mut filling);
    labels
}

/// Places units that are allowed on one machine only.
fn place_pinned(
    problem: &PlacementProblem,
    labels: &mut [usize],
    filling: &mut PartialMachineLoads<'_>,
) {
    for (unit, label) in labels[..problem.groups].iter_mut().enumerate() {
        let mut allowed = allowed(problem, unit);
        if let (Some(host), None) = (allowed.next(), allowed.next()) {
            *label = host;
            filling.add(unit, host);
        }
    }
}

/// Places the other units on the allowed machine with the most room.
fn rest(problem: &PlacementProblem, labels: &mut [usize], filling: &mut PartialMachineLoads<'_>) {
    let nowhere = problem.rooms.len();
    for (unit, label) in labels[..problem.groups].iter_mut().enumerate() {
        if *label != nowhere {
            continue;
        }
        let key = |host: &usize| {
            let room = filling.share(*host) - filling.weight[*host];
            (filling.fits(unit, *host), room, core::cmp::Reverse(*host))
        };
        if let Some(host) = allowed(problem, unit).max_by_key(key) {
            *label = host;
            filling.add(unit, host);
        }
    }
}

/// The groups in the order of a walk that stays near (depth first, heaviest links first).
fn neighbourly(problem: &PlacementProblem) -> Vec<usize> {
    let mut seen = vec![false; problem.units.len()];
    let mut order = Vec::with_capacity(problem.groups);
    for root in 0..problem.groups {
        let mut open = vec![root];
        while let Some(unit) = open.pop() {
            if core::mem::replace(&mut seen[unit], true) {
                continue;
            }
            if unit < problem.groups {
                order.push(unit);
            }
            let mut next: Vec<(i64, usize)> =
                problem.units[unit].edges.iter().map(|edge| (edge.weight, edge.to)).collect();
            next.sort_unstable();
            open.extend(next.into_iter().map(|(_, to)| to).filter(|to| !seen[*to]));
        }
    }
    order
}

/// The machines, those with the largest share first.
fn by_share(problem: &PlacementProblem) -> Vec<usize> {
    let filling = PartialMachineLoads::new(problem);
    let mut hosts: Vec<usize> = (0..problem.rooms.len()).collect();
    hosts.sort_by_key(|host| (core::cmp::Reverse(filling.share(*host)), *host));
    hosts
}

fn allowed(problem: &PlacementProblem, unit: usize) -> impl Iterator<Item = usize> + '_ {
    let allowed = problem.units[unit].allowed.iter().enumerate();
    allowed.filter(|(_, allowed)| **allowed).map(|(host, _)| host)
}

/// The load of the machines so far.
struct PartialMachineLoads<'p> {
    problem: &'p PlacementProblem,
    need: Vec<UnitDemand>,
    weight: Vec<i64>,
}

impl<'p> PartialMachineLoads<'p> {
    fn new(problem: &'p PlacementProblem) -> Self {
        let hosts = problem.rooms.len();
        PartialMachineLoads {
            problem,
            need: vec![UnitDemand::default(); hosts],
            weight: vec![0; hosts],
        }
    }

    fn add(&mut self, unit: usize, host: usize) {
        let unit = &self.problem.units[unit];
        self.need[host] = self.need[host].plus(unit.need, 1);
        self.weight[host] += unit.weight;
    }

    fn fits(&self, unit: usize, host: usize) -> bool {
        let it = &self.problem.units[unit];
        let room = self.problem.rooms[host].need;
        it.allowed[host] && self.need[host].plus(it.need, 1).lack(room) == 0
    }

    fn left(&self, host: usize) -> UnitDemand {
        self.problem.rooms[host].need.plus(self.need[host], -1)
    }

    /// The middle of the machine's bounds; without bounds, all that it can get.
    fn share(&self, host: usize) -> i64 {
        match self.problem.rooms[host].even {
            (_, i64::MAX) => i64::MAX / 4,
            (low, high) => low / 2 + high / 2 + (low % 2 + high % 2) / 2,
        }
    }
}
