//! Words for states in files and messages, which another version may know more of.

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::plan::{FailOver, IpTransport, LoadBalancingPolicy};

/// What has a word in files and messages.
pub trait NamedState: Copy + PartialEq + 'static {
    /// Each with its word.
    const WORDS: &'static [(Self, &'static str)];
}

/// A state as a file or message has it: one that this version knows, or a word of another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String", bound = "T: NamedState")]
pub enum StateWord<T> {
    Known(T),
    Other(String),
}

impl<T: NamedState> StateWord<T> {
    /// The state, if it is known.
    #[must_use]
    pub fn known(&self) -> Option<T> {
        match self {
            StateWord::Known(state) => Some(*state),
            StateWord::Other(_) => None,
        }
    }

    /// Its word.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            StateWord::Known(state) => {
                let words = T::WORDS.iter();
                words.copied().find(|(known, _)| known == state).map_or("", |(_, word)| word)
            }
            StateWord::Other(word) => word,
        }
    }
}

impl<T: NamedState> PartialEq<T> for StateWord<T> {
    fn eq(&self, state: &T) -> bool {
        self.known() == Some(*state)
    }
}

impl<T: NamedState> From<T> for StateWord<T> {
    fn from(state: T) -> Self {
        StateWord::Known(state)
    }
}

impl<T: NamedState> From<&str> for StateWord<T> {
    fn from(text: &str) -> Self {
        let known = T::WORDS.iter().find(|(_, word)| *word == text);
        known.map_or_else(|| StateWord::Other(text.to_owned()), |(state, _)| (*state).into())
    }
}

impl<T: NamedState> From<String> for StateWord<T> {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl<T: NamedState> From<StateWord<T>> for String {
    fn from(word: StateWord<T>) -> Self {
        word.as_str().to_owned()
    }
}

impl<T: NamedState> fmt::Display for StateWord<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// No word, as of a message that says nothing.
impl<T: NamedState> Default for StateWord<T> {
    fn default() -> Self {
        StateWord::Other(String::new())
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_written_as_it_was_read_whether_it_is_known_or_not() {
        for text in ["\"parted\"", "\"sideways\"", "\"\""] {
            let word: StateWord<LaneOperationalState> = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&word).unwrap(), text);
        }
    }

    #[test]
    fn only_a_known_word_is_a_state() {
        let word = StateWord::from("no-answer");
        assert_eq!(word.known(), Some(ExpulsionCause::NoAnswer));
        assert!(word == ExpulsionCause::NoAnswer && word != ExpulsionCause::Gone);
        assert_eq!(StateWord::<ProgramState>::from("up").known(), None);
        assert_eq!(StateWord::<ProgramState>::default().as_str(), "");
    }
}
