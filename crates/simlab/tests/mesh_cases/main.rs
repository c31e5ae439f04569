//! The mesh in worlds made for one question each.

mod clocks;
mod flows;
mod lives;
mod losses;
mod runs;
mod silence;
mod star;

use windtunnel_mesh::{PlanHash, RunPeerState};
use windtunnel_model::flow::{ActiveFlow, FlowKey, FlowTerms};
use windtunnel_model::{Bytes, NodeId, Span, Time};
use windtunnel_simlab::mesh::MeshWorld;
use windtunnel_simlab::mesh::measure::RUN;

const PLAN: PlanHash = PlanHash([1; 32]);
const SECOND: Span = Span::from_secs(1);

fn key(number: u32) -> FlowKey {
    FlowKey { source: NodeId(0), destination: NodeId(1), number }
}

fn flow() -> ActiveFlow {
    ActiveFlow {
        terms: FlowTerms::new(Span::from_millis(40)).with_window(Bytes(65_536)),
        since: Time::ZERO,
    }
}

/// The part that a machine's agent takes another's to have.
fn part(world: &MeshWorld, machine: usize, of: usize) -> RunPeerState {
    let agent = world.machines()[of].agent;
    let mesh = world.machines()[machine].mesh.as_ref().expect("it lives");
    mesh.members(RUN).find(|member| member.agent == agent).expect("a member").part
}

fn flows(world: &MeshWorld, machine: usize) -> usize {
    world.machines()[machine].mesh.as_ref().map_or(0, |mesh| mesh.flows(RUN).count())
}

fn settle(world: &mut MeshWorld) -> Span {
    world.settle(Span::from_secs(30)).unwrap_or_else(|found| panic!("{found}"))
}
