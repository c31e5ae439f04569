//! Random worlds from a seed.

use std::net::SocketAddr;

use windtunnel_mesh::{PlanHash, RunId};
use windtunnel_model::flow::{ActiveFlow, FlowKey, FlowTerms};
use windtunnel_model::{Bytes, NodeId, Rate, Span, Time};

use super::machine::SimulatedMachine;
use super::{LinkConditions, MeshWorld};
use crate::SimulationRng;

/// How long agents may take to know the truth after the last change.
const LIMIT: Span = Span::from_secs(30);

/// The least step of a clock that the next exchange proves under any conditions: bounds are as wide
/// as a round trip, 12.4 ms at the most, and what 20 s without one add, 5 ms. A smaller step may
/// hide in them for minutes, as [`windtunnel_mesh::AgentClockEstimate::error`] says.
const STEP_MIN: Span = Span::from_millis(20);

/// The result of a seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeshFuzzOutcome {
    /// Stands for every datagram and event.
    pub transcript: u64,
    /// How long it took after the last change until all agents knew the truth.
    pub settled: Span,
}

/// Events that may happen in a world.
#[derive(Debug)]
struct MeshFuzzer {
    world: MeshWorld,
    rng: SimulationRng,
    runs: Vec<(RunId, Vec<usize>)>,
    /// Something has happened after which an agent may be taken for lost.
    violent: bool,
}

/// Plays a world of that many machines, or of two to six if none is named: conditions, up to fifty
/// operations, and then quiet.
///
/// # Panics
/// If an event makes no sense, or if an agent's view is wrong in the end.
#[must_use]
pub fn play(seed: u64, machines: Option<usize>) -> MeshFuzzOutcome {
    let mut rng = SimulationRng::new(seed);
    let conditions = conditions(&mut rng);
    let mut world = MeshWorld::new(seed, conditions);
    world.set_ended_limit(rng.pick(&[2, 20, 4096]));
    let few = 2 + number(rng.below(5));
    let count = machines.unwrap_or(few);
    for index in 0..count {
        world.add_machine();
        world.start(index, &[0, 1.min(index)]);
    }
    let mut script = MeshFuzzer { world, rng, runs: Vec::new(), violent: false };
    script.begin_run(count);
    let operations = 5 + script.rng.below(45);
    for _ in 0..operations {
        let wait = script.rng.pick(&[0, 100, 1500, 4000, 30_000, 80_000]);
        script.world.run_for(Span::from_micros(script.rng.below(wait + 1)));
        script.operate(count);
    }
    script.end()
}

fn conditions(rng: &mut SimulationRng) -> LinkConditions {
    let micros = |micros| Span::from_micros(micros);
    let conditions = rng.pick(&[
        LinkConditions::LAN,
        LinkConditions::LAN.losing(50_000),
        LinkConditions { delay: micros(200), jitter: micros(6000), loss: 10_000, twice: 50_000 },
        LinkConditions { delay: micros(2000), jitter: micros(1000), loss: 0, twice: 10_000 },
    ]);
    conditions.losing(conditions.loss.min(rng.below(100_000)))
}

impl MeshFuzzer {
    fn begin_run(&mut self, count: usize) {
        let run = RunId(1000 + self.runs.len() as u64);
        let members: Vec<usize> = (0..count).filter(|_| self.rng.below(5) > 0).collect();
        if members.len() > 1 {
            // Now and then a member comes with another plan, or later.
            for member in &members {
                let other = self.rng.below(30) == 0;
                let plan = PlanHash([if other { 2 } else { 1 }; 32]);
                let wait = self.rng.pick(&[0, 0, 0, 500, 20_000]);
                self.world.run_for(Span::from_micros(wait));
                if self.world.machines()[*member].mesh.is_some() {
                    self.world.join_run(*member, run, plan, &members);
                }
            }
            self.runs.push((run, members));
        }
    }

    fn operate(&mut self, count: usize) {
        let machine = number(self.rng.below(count as u64));
        let lives = self.world.machines()[machine].mesh.is_some();
        match self.rng.below(100) {
            0..80 => self.change_flows(machine),
            80..84 if lives => {
                self.world.crash(machine);
                self.violent = true;
            }
            84..86 if lives => self.world.leave(machine),
            80..88 if !lives => self.restart(machine, count),
            88..91 => {
                let sides: Vec<u32> =
                    (0..count).map(|_| u32::from(self.rng.below(2) == 0)).collect();
                self.world.network.cut(&sides);
                self.violent = true;
            }
            91..95 => self.world.network.heal(),
            95..96 => {
                let step = STEP_MIN + Span::from_millis(self.rng.below(50));
                self.world.step_clock(machine, step);
            }
            96..98 if self.runs.len() < 3 => self.begin_run(count),
            98..100 => {
                if let Some((run, _)) = self.run() {
                    self.world.leave_run(machine, run);
                }
            }
            _ => {}
        }
    }

    /// Several changes at a time, as when packets come in batches.
    fn change_flows(&mut self, machine: usize) {
        let Some((run, members)) = self.run() else { return };
        for _ in 0..self.rng.pick(&[1, 1, 2, 20]) {
            let key = FlowKey {
                source: NodeId(number32(machine as u64)),
                destination: NodeId(number32(self.rng.below(4))),
                number: number32(self.rng.below(3)),
            };
            if self.rng.below(3) == 0 {
                self.world.end_flow(machine, run, key);
            } else {
                let demand = self.rng.pick(&[0, 1_000_000, 1]);
                let rtt = Span::from_millis(1 + self.rng.below(3));
                let demand = Rate::from_bits_per_second(demand);
                let terms = FlowTerms { rtt, demand, window: Some(Bytes(65_536)) };
                let flow = ActiveFlow { terms, since: Time::ZERO };
                // The audience of a pair of nodes is mostly the same each time.
                let pick = if self.rng.below(20) == 0 { self.rng.below(8) } else { 3 };
                let to = members.iter().filter(|member| **member as u64 % 3 != pick % 3);
                let to: Vec<usize> = to.copied().collect();
                self.world.set_flow(machine, run, key, flow, &to);
            }
        }
    }

    fn restart(&mut self, machine: usize, count: usize) {
        // All machines are asked: an agent that no other knows cannot be found.
        let seeds: Vec<usize> = (0..count).filter(|other| *other != machine).collect();
        self.world.start(machine, &seeds);
    }

    fn run(&mut self) -> Option<(RunId, Vec<usize>)> {
        let index = number(self.rng.below(self.runs.len() as u64));
        self.runs.get(index).cloned()
    }

    /// An agent that met no other before all its seeds had ended is given the others' addresses: an
    /// agent that no other knows cannot be found.
    fn introduce_strangers(&mut self) {
        let machines = self.world.machines();
        let is_alone = |machine: &&SimulatedMachine| {
            machine.mesh.as_ref().is_some_and(|mesh| mesh.agents().next().is_none())
        };
        let alone = machines.iter().zip(0..).filter(|(machine, _)| is_alone(machine));
        let alone: Vec<usize> = alone.map(|(_, index)| index).collect();
        let addresses: Vec<SocketAddr> = machines.iter().map(|machine| machine.address).collect();
        for index in alone {
            for address in &addresses {
                self.world.act(index, |mesh, now| mesh.join(now, *address));
            }
        }
    }

    fn end(mut self) -> MeshFuzzOutcome {
        self.world.network.heal();
        self.introduce_strangers();
        if self.violent {
            // Suspicions that are open by now are decided.
            self.world.run_for(Span::from_secs(1));
        }
        let settled = self.world.settle(LIMIT);
        let settled =
            settled.unwrap_or_else(|difference| panic!("{difference}\n{}", self.world.describe()));
        if !self.violent {
            assert_eq!(self.world.false_alarms(), 0, "an agent was declared lost that lives");
        }
        // Quiet is quiet: a second later nothing has changed.
        self.world.run_for(Span::from_secs(1));
        assert_eq!(self.world.difference(), None, "the truth was known, and is not any more");
        MeshFuzzOutcome { transcript: self.world.transcript(), settled }
    }
}

fn number(value: u64) -> usize {
    usize::try_from(value).unwrap_or(0)
}

fn number32(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(0)
}
