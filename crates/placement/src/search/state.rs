//! A division with its cost, kept up to date move by move.

use alloc::vec;
use alloc::vec::Vec;

use super::cost::PlacementCost;
use crate::problem::{MachineHeadroom, PlacementProblem, UnitDemand};

/// A machine for every unit. Units without weight may be nowhere: the label after the last
/// machine's.
#[derive(Debug, Clone)]
pub(super) struct PlacementAssignment<'p> {
    pub(super) problem: &'p PlacementProblem,
    pub(super) labels: Vec<usize>,
    pub(super) cost: PlacementCost,
    /// By unit and label: the links of the unit with those of the label.
    ties: Vec<UnitHostAffinity>,
    /// By machine.
    loads: Vec<MachineLoad>,
}

#[derive(Debug, Clone, Copy, Default)]
struct UnitHostAffinity {
    weight: i64,
    out: i64,
    back: i64,
}

/// The load of a machine.
#[derive(Debug, Clone, Copy, Default)]
struct MachineLoad {
    need: UnitDemand,
    weight: i64,
    up: i64,
    down: i64,
}

impl<'p> PlacementAssignment<'p> {
    pub(super) fn new(problem: &'p PlacementProblem, labels: Vec<usize>) -> Self {
        let width = problem.rooms.len() + 1;
        let mut ties = vec![UnitHostAffinity::default(); problem.units.len() * width];
        let mut loads = vec![MachineLoad::default(); problem.rooms.len()];
        let mut cost = PlacementCost::default();
        for (id, unit) in problem.units.iter().enumerate() {
            let here = labels[id];
            for edge in &unit.edges {
                ties[id * width + labels[edge.to]].add(edge.weight, edge.out, edge.back);
                if labels[edge.to] != here {
                    cost.cut += if edge.to > id { edge.weight } else { 0 };
                    if let Some(load) = loads.get_mut(here) {
                        load.up += edge.out;
                        load.down += edge.back;
                    }
                }
            }
            if let Some(load) = loads.get_mut(here) {
                load.need = load.need.plus(unit.need, 1);
                load.weight += unit.weight;
            }
            let later = unit.near.iter().filter(|(other, _)| *other > id);
            cost.distance +=
                later.map(|near| too_far(problem, here, labels[near.0], near.1)).sum::<i64>();
        }
        cost += loads
            .iter()
            .zip(&problem.rooms)
            .fold(PlacementCost::default(), |sum, (l, r)| sum + l.cost(r));
        PlacementAssignment { problem, labels, cost, ties, loads }
    }

    /// The label that stands for no machine.
    pub(super) fn nowhere(&self) -> usize {
        self.problem.rooms.len()
    }

    /// How the cost changes if a unit goes to `to`.
    pub(super) fn change(&self, unit: usize, to: usize) -> PlacementCost {
        let (problem, from) = (self.problem, self.labels[unit]);
        let tie = |label: usize| self.ties[unit * (self.nowhere() + 1) + label];
        let moved = &problem.units[unit];
        let near = moved.near.iter().map(|(other, latency)| {
            let there = self.labels[*other];
            too_far(problem, to, there, *latency) - too_far(problem, from, there, *latency)
        });
        let mut change = PlacementCost {
            distance: near.sum(),
            cut: tie(from).weight - tie(to).weight,
            ..PlacementCost::default()
        };
        for (label, sign) in [(from, -1), (to, 1)] {
            if let (Some(load), Some(room)) = (self.loads.get(label), problem.rooms.get(label)) {
                change += self.with(load, unit, label, sign).cost(room) - load.cost(room);
            }
        }
        change
    }

    /// A machine's load after a unit came (`sign` 1) or went (-1).
    fn with(&self, load: &MachineLoad, unit: usize, label: usize, sign: i64) -> MachineLoad {
        let moved = &self.problem.units[unit];
        let width = self.nowhere() + 1;
        let all = self.ties[unit * width..][..width].iter();
        let (out, back) = all.fold((0, 0), |sum, tie| (sum.0 + tie.out, sum.1 + tie.back));
        let own = self.ties[unit * width + label];
        MachineLoad {
            need: load.need.plus(moved.need, sign),
            weight: load.weight + sign * moved.weight,
            // Links to others of the machine are cut while the unit is elsewhere, those to others
            // while it is here.
            up: load.up + sign * (out - own.out - own.back),
            down: load.down + sign * (back - own.back - own.out),
        }
    }

    pub(super) fn apply(&mut self, unit: usize, to: usize) {
        let from = self.labels[unit];
        self.cost += self.change(unit, to);
        for (label, sign) in [(from, -1), (to, 1)] {
            if let Some(load) = self.loads.get(label) {
                self.loads[label] = self.with(load, unit, label, sign);
            }
        }
        self.labels[unit] = to;
        let width = self.nowhere() + 1;
        for edge in &self.problem.units[unit].edges {
            // Seen from the other end, there and back change places.
            self.ties[edge.to * width + from].add(-edge.weight, -edge.back, -edge.out);
            self.ties[edge.to * width + to].add(edge.weight, edge.back, edge.out);
        }
    }

    /// The weight of links between a unit and those of a label.
    pub(super) fn tie(&self, unit: usize, label: usize) -> i64 {
        self.ties[unit * (self.nowhere() + 1) + label].weight
    }
}

impl UnitHostAffinity {
    fn add(&mut self, weight: i64, out: i64, back: i64) {
        self.weight += weight;
        self.out += out;
        self.back += back;
    }
}

impl UnitDemand {
    pub(crate) fn plus(self, other: UnitDemand, sign: i64) -> UnitDemand {
        UnitDemand {
            cpu: self.cpu + sign * other.cpu,
            memory: self.memory + sign * other.memory,
            nodes: self.nodes + sign * other.nodes,
        }
    }

    /// The amount lacking where there is `room`.
    pub(crate) fn lack(self, room: UnitDemand) -> i64 {
        let over = |need: i64, room: i64| (need - room).max(0);
        over(self.cpu, room.cpu) + over(self.memory, room.memory) + over(self.nodes, room.nodes)
    }
}

impl MachineLoad {
    fn cost(&self, room: &MachineHeadroom) -> PlacementCost {
        let uneven = (self.weight - room.even.1).max(0) + (room.even.0 - self.weight).max(0);
        let (strict, uneven) = if room.strict { (uneven, 0) } else { (0, uneven) };
        PlacementCost {
            lack: self.need.lack(room.need),
            strict,
            uplink: (self.up - room.up).max(0) + (self.down - room.down).max(0),
            uneven,
            ..PlacementCost::default()
        }
    }
}

fn too_far(problem: &PlacementProblem, a: usize, b: usize, latency: u64) -> i64 {
    i64::from(a != b && problem.one_way[a][b] > latency)
}
