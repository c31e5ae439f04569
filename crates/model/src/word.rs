//! States that files and messages name by words, and the words.

mod state_word;

use serde::{Deserialize, Serialize};

use crate::plan::{FailOver, IpTransport, LoadBalancingPolicy, NatType, NodeVerb};
use crate::record::kind::RecordSource;
use crate::resource::Resource;

pub use state_word::{NamedState, StateWord};

/// What a direction of a link does with packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneOperationalState {
    Up,
    /// Also in the dark phase of a flap.
    Down,
    /// A partition cuts it.
    Parted,
}

impl NamedState for LaneOperationalState {
    const WORDS: &'static [(Self, &'static str)] = &[
        (LaneOperationalState::Up, "up"),
        (LaneOperationalState::Down, "down"),
        (LaneOperationalState::Parted, "parted"),
    ];
}

/// How far a program is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramState {
    /// It has not started yet.
    Waiting,
    /// Churn has its node outside the population.
    Absent,
    Running,
    /// It runs, and is what `ready` asks for.
    Ready,
    Paused,
    Exited,
    /// It could not be started.
    Failed,
    /// Its machine is lost.
    Lost,
}

impl NamedState for ProgramState {
    const WORDS: &'static [(Self, &'static str)] = &[
        (ProgramState::Waiting, "waiting"),
        (ProgramState::Absent, "absent"),
        (ProgramState::Running, "running"),
        (ProgramState::Ready, "ready"),
        (ProgramState::Paused, "paused"),
        (ProgramState::Exited, "exited"),
        (ProgramState::Failed, "failed"),
        (ProgramState::Lost, "lost"),
    ];
}

/// Whether a replica gets new connections, or why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplicaAvailability {
    /// Nothing listens.
    Waiting,
    Registered,
    Unhealthy,
    Draining,
    /// Its node was killed or has left, or its machine is lost.
    Lost,
    Removed,
}

impl NamedState for ReplicaAvailability {
    const WORDS: &'static [(Self, &'static str)] = &[
        (ReplicaAvailability::Waiting, "waiting"),
        (ReplicaAvailability::Registered, "registered"),
        (ReplicaAvailability::Unhealthy, "unhealthy"),
        (ReplicaAvailability::Draining, "draining"),
        (ReplicaAvailability::Lost, "lost"),
        (ReplicaAvailability::Removed, "removed"),
    ];
}

/// Why a replica was expelled from a connection that outlives its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpulsionCause {
    /// Its node is.
    Gone,
    Silent,
    Stalled,
    /// It sent another byte.
    Differed,
    /// It finished where others went on.
    FinishedAlone,
    /// It reset the connection.
    Reset,
    /// It refused the connection.
    Refused,
    /// It did not answer in time.
    NoAnswer,
}

impl NamedState for ExpulsionCause {
    const WORDS: &'static [(Self, &'static str)] = &[
        (ExpulsionCause::Gone, "gone"),
        (ExpulsionCause::Silent, "silent"),
        (ExpulsionCause::Stalled, "stalled"),
        (ExpulsionCause::Differed, "differed"),
        (ExpulsionCause::FinishedAlone, "finished-alone"),
        (ExpulsionCause::Reset, "reset"),
        (ExpulsionCause::Refused, "refused"),
        (ExpulsionCause::NoAnswer, "no-answer"),
    ];
}

/// Whether a layer of a live run is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerRecordingState {
    On,
    Off,
    Unavailable,
}

impl NamedState for LayerRecordingState {
    const WORDS: &'static [(Self, &'static str)] = &[
        (LayerRecordingState::On, "on"),
        (LayerRecordingState::Off, "off"),
        (LayerRecordingState::Unavailable, "unavailable"),
    ];
}

impl NamedState for IpTransport {
    const WORDS: &'static [(Self, &'static str)] = &[
        (IpTransport::Tcp, IpTransport::Tcp.name()),
        (IpTransport::Udp, IpTransport::Udp.name()),
        (IpTransport::Icmp, IpTransport::Icmp.name()),
    ];
}

impl NamedState for FailOver {
    const WORDS: &'static [(Self, &'static str)] = &[
        (FailOver::New, FailOver::New.name()),
        (FailOver::Transparent, FailOver::Transparent.name()),
    ];
}

impl NamedState for LoadBalancingPolicy {
    const WORDS: &'static [(Self, &'static str)] = &[
        (LoadBalancingPolicy::Nearest, LoadBalancingPolicy::Nearest.name()),
        (LoadBalancingPolicy::Hops, LoadBalancingPolicy::Hops.name()),
        (LoadBalancingPolicy::Weighted, LoadBalancingPolicy::Weighted.name()),
        (LoadBalancingPolicy::LeastConnections, LoadBalancingPolicy::LeastConnections.name()),
        (LoadBalancingPolicy::Hash, LoadBalancingPolicy::Hash.name()),
        (LoadBalancingPolicy::Ordered, LoadBalancingPolicy::Ordered.name()),
        (LoadBalancingPolicy::RoundRobin, LoadBalancingPolicy::RoundRobin.name()),
        (LoadBalancingPolicy::Random, LoadBalancingPolicy::Random.name()),
    ];
}

/// What a connection or flow of a service is doing, as its client's packets show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServiceFlowState {
    /// TCP: the client has sent SYNs only.
    Opening,
    /// TCP: it has acknowledged something.
    Open,
    /// TCP: an end has sent FIN or RST.
    Closing,
    /// UDP.
    Flow,
}

impl NamedState for ServiceFlowState {
    const WORDS: &'static [(Self, &'static str)] = &[
        (ServiceFlowState::Opening, "opening"),
        (ServiceFlowState::Open, "open"),
        (ServiceFlowState::Closing, "closing"),
        (ServiceFlowState::Flow, "flow"),
    ];
}

/// What happens to the programs of a node by an event, a command or churn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeProgramsAction {
    /// By an event or a command.
    Ordered(NodeVerb),
    /// Churn takes the node out of the population.
    Leave,
    /// Churn brings it back.
    Join,
}

impl NamedState for NodeProgramsAction {
    const WORDS: &'static [(Self, &'static str)] = &[
        (NodeProgramsAction::Ordered(NodeVerb::Kill), NodeVerb::Kill.name()),
        (NodeProgramsAction::Ordered(NodeVerb::Stop), NodeVerb::Stop.name()),
        (NodeProgramsAction::Ordered(NodeVerb::Pause), NodeVerb::Pause.name()),
        (NodeProgramsAction::Ordered(NodeVerb::Resume), NodeVerb::Resume.name()),
        (NodeProgramsAction::Ordered(NodeVerb::Restart), NodeVerb::Restart.name()),
        (NodeProgramsAction::Leave, "leave"),
        (NodeProgramsAction::Join, "join"),
    ];
}

/// By what the clocks of two machines are known to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClockSource {
    /// By messages between the two: the fastest each way.
    #[default]
    Exchanges,
    /// Also by the bound that each machine's kernel has for its clock, which NTP or PTP keeps.
    Synchronised,
    /// Also by what the operator has said of them.
    Stated,
}

impl NamedState for ClockSource {
    const WORDS: &'static [(Self, &'static str)] = &[
        (ClockSource::Exchanges, "exchanges"),
        (ClockSource::Synchronised, "synchronised"),
        (ClockSource::Stated, "stated"),
    ];
}

impl NamedState for NatType {
    const WORDS: &'static [(Self, &'static str)] = &[
        (NatType::FullCone, "full-cone"),
        (NatType::AddressRestricted, "address-restricted"),
        (NatType::PortRestricted, "port-restricted"),
        (NatType::Symmetric, "symmetric"),
    ];
}

impl NamedState for Resource {
    const WORDS: &'static [(Self, &'static str)] = &[
        (Resource::Cpu, Resource::Cpu.key()),
        (Resource::Memory, Resource::Memory.key()),
        (Resource::Pids, Resource::Pids.key()),
        (Resource::Disk, Resource::Disk.key()),
        (Resource::OpenFiles, Resource::OpenFiles.key()),
    ];
}

impl NamedState for RecordSource {
    const WORDS: &'static [(Self, &'static str)] = &[
        (RecordSource::Engine, RecordSource::Engine.name()),
        (RecordSource::Calls, RecordSource::Calls.name()),
        (RecordSource::Tcp, RecordSource::Tcp.name()),
        (RecordSource::Kernel, RecordSource::Kernel.name()),
    ];
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fmt::Debug;

    use super::*;

    fn names_each_once<T: NamedState>() {
        let words: BTreeSet<_> = T::WORDS.iter().map(|(_, word)| *word).collect();
        assert!(words.len() == T::WORDS.len() && !words.contains(""), "{words:?}");
    }

    /// Where serde has the words as well.
    fn is_as_derived<T: NamedState + Serialize + Debug>() {
        for (state, word) in T::WORDS {
            assert_eq!(serde_json::to_value(state).unwrap(), *word, "{state:?}");
        }
        names_each_once::<T>();
    }

    #[test]
    fn a_word_names_one_state_and_is_the_one_that_serde_has() {
        names_each_once::<LaneOperationalState>();
        names_each_once::<ProgramState>();
        names_each_once::<ReplicaAvailability>();
        names_each_once::<ExpulsionCause>();
        names_each_once::<LayerRecordingState>();
        names_each_once::<NodeProgramsAction>();
        names_each_once::<LoadBalancingPolicy>();
        is_as_derived::<IpTransport>();
        is_as_derived::<FailOver>();
        is_as_derived::<ServiceFlowState>();
        is_as_derived::<ClockSource>();
        names_each_once::<NatType>();
        is_as_derived::<Resource>();
        names_each_once::<RecordSource>();
    }
}
