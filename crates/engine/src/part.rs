//! Which part of a network is on one machine.

use alloc::vec;
use alloc::vec::Vec;

use windtunnel_model::Plan;

/// One machine's part of a run that is spread over several machines, each with an engine of the
/// whole plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkPart {
    /// Which part: 0 upwards, another one on each machine. Machines have the same lanes, and the
    /// number separates their random streams: part 0 draws what a machine with everything draws,
    /// each other one has streams of its own.
    pub number: u32,
    /// By node: whether it is on this machine.
    pub here: Vec<bool>,
}

impl NetworkPart {
    /// Everything, on one machine.
    #[must_use]
    pub fn whole(plan: &Plan) -> NetworkPart {
        NetworkPart { number: 0, here: vec![true; plan.nodes.len()] }
    }

    /// Whether all nodes are here.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.here.iter().all(|here| *here)
    }
}
