//! Messages between an agent and the part of a run on its machine: a process of its own, whose
//! standard input is the socket for them. Messages between parts, and from parts to observers, are
//! opaque text to the agent.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use windtunnel_model::flow::FlowChange;
use windtunnel_model::word::ClockSource;
use windtunnel_model::{Bytes, Plan, Span};

/// Messages from an agent to the part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "to-part", rename_all = "kebab-case")]
pub enum ToPart {
    /// The first message: all that the part is made of. Answers: [`FromPart::Bound`], then
    /// [`FromPart::Prepared`].
    Setup(Box<PartSetup>),
    /// Where the parts' packets go, by member; `None` for the part itself. Answer:
    /// [`FromPart::Reached`].
    Peers {
        /// By member.
        addresses: Vec<Option<SocketAddr>>,
    },
    /// Measure what is to be measured before the run. Answer: [`FromPart::Measured`].
    Measure,
    Begin {
        /// When, on this machine's monotonic clock, in nanoseconds.
        origin_ns: u64,
    },
    /// Flows of another member began, changed or ended.
    Flows {
        member: u16,
        /// Each flow that is not as it was.
        changes: Vec<FlowChange>,
    },
    /// A message of another part.
    News {
        member: u16,
        /// In the part's own format.
        news: String,
    },
    /// A member is lost, for good.
    Lost {
        member: u16,
        /// Why it is taken for lost.
        why: String,
        /// Whether the network was cut between the machines, and those on the other side are the
        /// run.
        #[serde(default)]
        apart: bool,
    },
    /// A member is silent, and not lost yet.
    Silent {
        member: u16,
        /// When something was last received from it, on this machine's monotonic clock, in
        /// nanoseconds.
        since_ns: u64,
    },
    /// A member that was silent answers again.
    Answers { member: u16 },
    /// A member's part of the run has been over for some time: its messages have come by now, or
    /// never will.
    Left { member: u16 },
    /// How members' monotonic clocks stand to this machine's.
    Clocks {
        /// Those that are known.
        clocks: Vec<MemberClock>,
    },
    /// What this machine's agent allows was not held.
    NotHeld {
        /// In a sentence.
        why: String,
    },
    /// The run is to end now.
    Stop(StopWhy),
}

/// How a member's monotonic clock stands to this machine's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberClock {
    pub member: u16,
    /// Nanoseconds by which it is ahead, about.
    pub ahead_ns: i64,
    /// That is wrong by no more than this, in nanoseconds.
    pub error_ns: u64,
    pub by: ClockSource,
}

/// Why a run is to end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopWhy {
    /// By request.
    Asked,
    /// The process that started it got this signal.
    Signal(i32),
    /// It cannot go on.
    Failed(String),
}

/// Messages from a part to its agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "from-part", rename_all = "kebab-case")]
pub enum FromPart {
    /// The socket for packets of other machines is open.
    Bound {
        port: u16,
    },
    Prepared,
    /// Nothing has been received yet from some other parts (or, before the nodes are up, other
    /// agents have not confirmed the run); repeated until it has.
    Unreached {
        members: Vec<u16>,
    },
    Reached,
    /// What was to be measured has been.
    Measured,
    /// It knows when the run begins: it goes on without the process that began it.
    Begun,
    /// The run is over, and its programs are ended.
    Ending,
    /// Datagrams that its port has refused since the last of these.
    Refused {
        datagrams: u64,
    },
    /// Flows of this part began, changed or ended.
    Flows {
        /// Each flow that is not as it was.
        changes: Vec<FlowAnnouncement>,
    },
    /// To every other part.
    News {
        /// In the part's own format.
        news: String,
    },
    /// To all observers of the run.
    Notice {
        /// In the part's own format.
        notice: String,
    },
    /// It is over, and its results are in its folder.
    Ended,
    /// It could not be done; nothing is left.
    Failed {
        message: String,
        /// What to do about it.
        hint: Option<String>,
        /// The exit code that says this.
        code: u8,
    },
}

/// All that a part is made of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartSetup {
    /// Number of the run, the same for all parts.
    pub run: u64,
    pub plan: Plan,
    /// Identifies plan and placement.
    pub plan_hash: String,
    /// This part's number: its position among `members`.
    pub member: u16,
    /// Names of the machines, by member.
    pub members: Vec<String>,
    /// By node: on which member it is.
    pub placement: Vec<u16>,
    /// The key that packets between machines are sealed with, 64 hexadecimal digits; absent: they
    /// are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The part's folder, new.
    pub folder: PathBuf,
    /// Where programs start that name no folder of their own.
    pub base_dir: PathBuf,
    /// The address that packets of other machines come to.
    pub bind: IpAddr,
    /// The first and the last of the UDP ports of which the part takes one that is free.
    pub ports: (u16, u16),
    /// How the run is done.
    pub shared: SharedOptions,
}

/// How a run is done, the same on all machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedOptions {
    /// A packet that leaves later than this after it should have counts as late.
    pub max_lateness: Span,
    /// Bytes kept of each stream that a program writes.
    pub output_limit: Bytes,
    /// Whether packets of up to 64 KiB may travel as one.
    pub offload: bool,
    /// Bytes that packets in queues and in flight may hold, on each machine.
    pub packet_memory: Bytes,
}

/// A flow of a part that is not as it was, and the members to notify.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowAnnouncement {
    pub change: FlowChange,
    /// The members to notify, as far as the part knows; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<Vec<u16>>,
    /// Those of them to notify at once; absent: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_once: Option<Vec<u16>>,
}

/// An error with all its causes, as text.
#[must_use]
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// What 64 hexadecimal digits say: a key, or the hash of a plan.
#[must_use]
pub fn bytes_of(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 2 * bytes.len() {
        return None;
    }
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixty_four_digits_are_thirty_two_bytes_and_nothing_else_is() {
        let text = format!("{}0aff", "0".repeat(60));
        let bytes = bytes_of(&text).unwrap();
        assert_eq!((bytes[29], bytes[30], bytes[31]), (0, 0x0a, 0xff));
        assert_eq!(bytes_of(&text[1..]), None);
        assert_eq!(bytes_of(&text.replace('f', "g")), None);
    }
}
