//! What programs had of links that they shared, as `run.json` has it.

use windtunnel_dataplane::LaneShares;
use windtunnel_engine::ClassCounters;
use windtunnel_model::Rate;
use windtunnel_model::profile::{QueueDiscipline, SendShare, Wf2qParameters};
use windtunnel_trace::report::{NodeShares, ProgramShare};

use crate::evidence::RunEvidence;

pub(super) fn report(evidence: &RunEvidence<'_>) -> Vec<NodeShares> {
    evidence.tally.shares.iter().filter_map(|shares| of_lane(evidence, shares)).collect()
}

fn of_lane(evidence: &RunEvidence<'_>, shares: &LaneShares) -> Option<NodeShares> {
    let (plan, lane) = (evidence.plan, shares.lane);
    let profile = &plan.links[lane.link.index()].profiles[lane.direction.index()];
    let QueueDiscipline::Wf2q(setting) = &profile.discipline else { return None };
    let rest =
        SendShare { name: REST.to_owned(), min: None, weight: Wf2qParameters::WEIGHT_OF_REST };
    let classes = setting.classes.iter().chain([&rest]).zip(&shares.classes.counters);
    let programs = classes.enumerate().map(|(number, (class, counters))| {
        program((number < setting.rest()).then_some(number), class, counters)
    });
    let ownership = &shares.classes.ownership;
    Some(NodeShares {
        node: plan.vertex_name(plan.lane_start(lane)).to_owned(),
        lane: plan.lane_name(lane),
        programs: programs.collect(),
        flows: ownership.flows,
        shared_flows: shares.shared_flows,
        attributed_packets: ownership.attributed.packets,
        attributed_bytes: ownership.attributed.bytes,
        unattributed_packets: ownership.unattributed.packets,
        unattributed_bytes: ownership.unattributed.bytes,
        early_packets: ownership.asked.packets,
        early_bytes: ownership.asked.bytes,
        unowned_packets: ownership.unowned.packets,
        unowned_bytes: ownership.unowned.bytes,
        portless_packets: ownership.no_socket.packets,
        portless_bytes: ownership.no_socket.bytes,
        untracked_packets: ownership.untracked.packets,
        untracked_bytes: ownership.untracked.bytes,
    })
}

fn program(number: Option<usize>, class: &SendShare, counters: &ClassCounters) -> ProgramShare {
    ProgramShare {
        program: number,
        name: class.name.clone(),
        min_bits_per_second: class.min.map(Rate::bits_per_second),
        weight: class.weight,
        packets: counters.packets,
        bytes: counters.bytes,
        wire_bytes: counters.wire_bytes,
        dropped_packets: counters.dropped_packets,
    }
}

/// The name of what belongs to no program.
const REST: &str = "(rest)";
