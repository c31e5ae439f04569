//! What the host process and an init say to each other: one JSON value a datagram.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use windtunnel_limit::LimiterReport;
use windtunnel_model::ResourceAmounts;
use windtunnel_model::plan::HealthProbeDatagram;

use crate::net_config::edit::RouteEdit;

/// The longest message, in bytes. A datagram has to fit into the kernel's default socket buffer.
pub const MESSAGE_BYTES_MAX: usize = 200_000;

/// What the host process asks of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum NodeInitRequest {
    /// The node's devices are there: finish the set-up. Sent by [`create`](crate::create) only.
    Continue,
    /// Start a program, with its standard input, output and error as three descriptors.
    Spawn(ProgramSpawnRequest),
    Signal {
        /// The program, with its process group; `None`: every process of the node.
        id: Option<u64>,
        signal: i32,
        /// Chosen by the sender, given back in [`NodeInitReply::Signalled`]; `None`: no such reply.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<u64>,
    },
    /// Say when something listens.
    Watch {
        /// Chosen by the sender, given back in the reply.
        token: u64,
        /// What should listen.
        what: ListeningEndpoint,
    },
    Unwatch {
        token: u64,
    },
    /// Measure round trips with ICMP echo requests through the node's own stack.
    Echo {
        /// Chosen by the sender, given back in the reply.
        token: u64,
        /// The destination.
        address: IpAddr,
        /// How many requests, at most 10,000.
        count: u16,
        /// Nanoseconds from one request to the next.
        interval_ns: u64,
    },
    /// No more requests of an [`NodeInitRequest::Echo`]; the reply comes once those that were sent are
    /// answered, or [`ECHO_PATIENCE_NS`] have passed.
    EndEcho {
        /// The token of the request.
        token: u64,
    },
    /// Change the kernel's routes. Sent by
    /// [`NodeSet::change_routes`](crate::NodeSet::change_routes).
    Routes(RouteEdit),
    /// Say what programs have given to the node that delays, drops or changes packets.
    Interference,
    /// Open a socket that asks the kernel about the node's sockets, and send it to the other end of
    /// the socket that comes along. Sent by [`NodeSet::diagnosis`](crate::NodeSet::diagnosis).
    Diagnose,
    /// From now on, start programs that a preload library cannot enter (static ones, those of Go)
    /// so that their calls are shown to the supervisor at the other end of the socket that comes
    /// along ([`windtunnel_sys::seccomp`]), until it is closed. Sent by
    /// [`RunningNode::supervise`](crate::RunningNode::supervise).
    Supervise {
        /// The path of the preload library, which these programs do not get.
        library: Option<String>,
    },
    /// From now on, hold all programs together to these limits of processor time, memory and
    /// processes: they are stopped and continued, and what is too much is ended. What they had is
    /// reported each second ([`NodeInitReply::Limited`]).
    Limit(ResourceAmounts),
    /// Deliver the packets of a queue ([`windtunnel_sys::frame_queue`]), on a thread of the init.
    /// Three descriptors come along: the queue, a packet socket of the fabric, an event that is
    /// raised for a thread that sleeps. What goes wrong is a [`NodeInitReply::ReceiveFailed`].
    Receive,
    /// Make what the gateway process at the other end of the socket that comes along needs here,
    /// and send it there, or why it cannot be made.
    Gateway,
    /// Look whether a program of the node serves. Answer: [`NodeInitReply::Probed`].
    Probe {
        /// Chosen by the sender, given back in the reply.
        token: u64,
        what: ProgramProbe,
        /// Nanoseconds, after which it has failed.
        timeout_ns: u64,
    },
    /// From now on, programs that start enter the control groups whose `cgroup.procs` come along,
    /// instead of those that came earlier, and have these limits.
    LimitProgram(ProgramLimits),
}

/// Where a program is to answer, and what it is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramProbe {
    /// An address of the node.
    pub address: IpAddr,
    /// Of the protocol that `what` needs.
    pub port: u16,
    /// What it is asked.
    pub what: ProgramProbeMethod,
}

/// What a program is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProgramProbeMethod {
    /// To accept a connection.
    Tcp,
    /// For a path over HTTP.
    Http {
        /// The path.
        path: String,
        /// The host that the request names.
        host: String,
    },
    /// To answer a datagram.
    Udp(HealthProbeDatagram),
}

/// What each process of programs has for itself that start from now on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramLimits {
    /// Of which program, by its position; `None`: of all for which nothing else is said.
    pub program: Option<usize>,
    /// Descriptors of each process.
    pub open_files: Option<u64>,
    /// Processes and threads in the node's own user namespace.
    pub pids: Option<u64>,
    /// Bytes that each process can write to and has for itself, in use or not.
    pub data: Option<u64>,
}

/// A program to start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramSpawnRequest {
    /// Chosen by the asker, unique among the node's programs; later messages name the program by
    /// it.
    pub id: u64,
    /// The words of the command. A first word without a slash is looked up in `PATH`.
    pub argv: Vec<String>,
    /// Variables on top of windtunnel's own environment, or of those of the node's own file system;
    /// `WINDTUNNEL_NODE` is set anyway.
    pub env: BTreeMap<String, String>,
    /// Working directory; `None`: windtunnel's own, or that of the node's own file system.
    pub cwd: Option<String>,
    /// Whether standard input is a terminal that is to control the program's session.
    pub terminal: bool,
    /// Its position among the node's programs in the plan; `None`: it is a command from outside.
    #[serde(default)]
    pub program: Option<usize>,
}

/// Something that programs can connect to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ListeningEndpoint {
    /// A TCP port, of either IP version, at any address.
    Tcp(u16),
    /// Any TCP port, or any bound UDP port, of either IP version.
    Any,
    /// A Unix socket with this path.
    Unix(String),
}

/// What a node reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum NodeInitReply {
    /// Everything that needs no devices is done. Consumed by [`create`](crate::create).
    Prepared,
    /// The node is complete. Consumed by [`create`](crate::create).
    Ready {
        /// What is not as it should be, without being fatal.
        notes: Vec<String>,
    },
    /// A stage of the set-up failed, and the node is gone. Consumed by [`create`](crate::create).
    Failed(NodeSetupFailure),
    Spawned {
        id: u64,
        /// Its number in the node's PID namespace.
        pid: u32,
        /// When it ran, on the monotonic clock.
        at_ns: u64,
    },
    /// A program could not be started.
    SpawnFailed {
        id: u64,
        /// What was tried, such as `cannot run the program "nginx"`.
        message: String,
        /// Why the kernel refused, an errno; 0 if it was not asked.
        errno: i32,
        /// Whether it was the program itself that could not be run, and not something on the way
        /// there.
        #[serde(default)]
        by_program: bool,
    },
    Exited {
        id: u64,
        status: ExitStatus,
    },
    /// A signal could not be sent. That no process was there to get it is not a failure.
    SignalFailed {
        /// As in the request.
        id: Option<u64>,
        message: String,
    },
    /// What there is of that ([`NodeInitRequest::Interference`]).
    Interference(NetworkInterference),
    /// A signal with a token has been sent, or failed to be.
    Signalled {
        /// As in the request.
        token: u64,
        /// When all processes had it, on the monotonic clock.
        at_ns: u64,
    },
    /// Packets of the queue cannot be delivered ([`NodeInitRequest::Receive`]).
    ReceiveFailed {
        /// What the kernel said.
        message: String,
    },
    /// Programs cannot be supervised ([`NodeInitRequest::Supervise`]).
    SuperviseFailed {
        /// What the kernel said.
        message: String,
    },
    /// What came of limits that the init holds ([`NodeInitRequest::Limit`]).
    Limited(Box<LimiterReport>),
    /// Routes could not be changed as asked.
    RoutesFailed {
        /// What was tried, and what the kernel said.
        message: String,
    },
    /// A probe is over.
    Probed {
        /// As in the request.
        token: u64,
        /// What was wrong; `None`: nothing.
        failure: Option<String>,
    },
    /// What was watched listens now; the watch is over.
    Listening {
        token: u64,
    },
    /// All echo requests were answered, or [`ECHO_PATIENCE_NS`] passed after the last of them.
    EchoDone {
        /// The token of the request.
        token: u64,
        /// When the first request was sent, in nanoseconds of the monotonic clock.
        began_ns: u64,
        /// For each request, in order: microseconds after the first, and nanoseconds of its round
        /// trip if it was answered.
        echoes: Vec<(u64, Option<u64>)>,
        /// Why the first of the requests that could not even be sent could not.
        error: Option<String>,
    },
}

/// What programs have given to a node that delays, drops or changes packets beside the emulation, a
/// few words each.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkInterference {
    /// Queue disciplines, such as `netem at eth0 (12 packets dropped, 3 waiting)`.
    pub disciplines: Vec<String>,
    /// Chains of packet filters, such as `ip table t, chain c (input): drop (30 packets)`.
    pub filters: Vec<String>,
    /// Ports of bridges that forward nothing, such as `eth0 of br0 (blocking)`.
    pub ports: Vec<String>,
}

/// For how long after the last echo request replies are waited for, in nanoseconds.
pub const ECHO_PATIENCE_NS: u64 = 3_000_000_000;

/// Why a node could not be set up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeSetupFailure {
    pub stage: NodeSetupStage,
    /// What was tried on what, and what the kernel said.
    pub message: String,
    /// What the user can do about it.
    pub hint: Option<String>,
}

/// A stage of setting up a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeSetupStage {
    /// Its process.
    Process,
    /// Network devices with their addresses.
    Devices,
    /// What is mounted.
    Mounts,
    /// The name of the host.
    Names,
    /// What the kernel is set to for its network.
    Settings,
    Sysctl,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExitStatus {
    /// It exited with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

impl ExitStatus {
    /// The code that a shell would show: 128+n for signal n.
    #[must_use]
    pub fn shell_code(self) -> i32 {
        match self {
            ExitStatus::Code(code) => code,
            ExitStatus::Signal(signal) => signal.saturating_add(128),
        }
    }
}

/// Why a message could not be made or understood.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// It is longer than [`MESSAGE_BYTES_MAX`].
    #[error("message of {bytes} bytes to a node is over the limit of {MESSAGE_BYTES_MAX}")]
    TooLong { bytes: usize },
    /// It is not JSON of the expected kind.
    #[error("malformed message between windtunnel and a node")]
    Malformed(#[from] serde_json::Error),
}

pub(crate) fn encode(message: &impl Serialize) -> Result<Vec<u8>, MessageError> {
    let bytes = serde_json::to_vec(message)?;
    if bytes.len() > MESSAGE_BYTES_MAX {
        return Err(MessageError::TooLong { bytes: bytes.len() });
    }
    Ok(bytes)
}

pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, MessageError> {
    Ok(serde_json::from_slice(bytes)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spawn(argument: &str) -> NodeInitRequest {
        NodeInitRequest::Spawn(ProgramSpawnRequest {
            id: 7,
            argv: vec!["echo".into(), argument.into()],
            env: BTreeMap::from([("LANG".into(), "C".into())]),
            cwd: Some("/tmp".into()),
            terminal: false,
            program: None,
        })
    }

    #[test]
    fn requests_come_back_as_they_were() {
        let requests = [
            NodeInitRequest::Continue,
            spawn("\u{1f300} \"quoted\"\n"),
            NodeInitRequest::Signal { id: None, signal: 9, token: Some(3) },
            NodeInitRequest::Watch { token: 1, what: ListeningEndpoint::Unix("/run/a b".into()) },
            NodeInitRequest::Unwatch { token: 1 },
            NodeInitRequest::EndEcho { token: 1 },
            NodeInitRequest::Diagnose,
            NodeInitRequest::Interference,
            NodeInitRequest::Probe {
                token: 5,
                what: ProgramProbe {
                    address: "10.1.0.80".parse().unwrap(),
                    port: 80,
                    what: ProgramProbeMethod::Http { path: "/".into(), host: "www".into() },
                },
                timeout_ns: 1,
            },
            NodeInitRequest::Supervise { library: Some("/run/x.so".into()) },
            NodeInitRequest::Limit(ResourceAmounts {
                cpu_millis: Some(250),
                memory: Some(1 << 40),
                ..ResourceAmounts::default()
            }),
            NodeInitRequest::LimitProgram(ProgramLimits {
                open_files: Some(9),
                ..ProgramLimits::default()
            }),
            NodeInitRequest::Echo {
                token: u64::MAX,
                address: "fd00::1".parse().unwrap(),
                count: 3,
                interval_ns: 10_000_000,
            },
        ];
        for request in requests {
            let bytes = encode(&request).unwrap();
            assert_eq!(decode::<NodeInitRequest>(&bytes).unwrap(), request);
        }
    }

    #[test]
    fn replies_come_back_as_they_were() {
        let failure =
            NodeSetupFailure { stage: NodeSetupStage::Mounts, message: "no".into(), hint: None };
        let replies = [
            NodeInitReply::Ready { notes: vec!["no /sys".into()] },
            NodeInitReply::Failed(failure),
            NodeInitReply::Exited { id: 1, status: ExitStatus::Signal(9) },
            NodeInitReply::Signalled { token: 3, at_ns: 9 },
            NodeInitReply::Interference(NetworkInterference {
                disciplines: vec!["netem at eth0".into()],
                filters: vec!["ip table t, chain c: drop (not counted)".into()],
                ports: Vec::new(),
            }),
            NodeInitReply::Probed { token: 5, failure: Some("refused".into()) },
            NodeInitReply::EchoDone {
                token: 2,
                began_ns: 7,
                echoes: vec![(0, Some(1)), (9, None)],
                error: None,
            },
        ];
        for reply in replies {
            let bytes = encode(&reply).unwrap();
            assert_eq!(decode::<NodeInitReply>(&bytes).unwrap(), reply);
        }
    }

    #[test]
    fn a_message_over_the_limit_is_refused() {
        let long = spawn(&"x".repeat(MESSAGE_BYTES_MAX));
        assert!(matches!(encode(&long), Err(MessageError::TooLong { bytes: 200_101 })));
    }

    #[test]
    fn a_shell_counts_signals_from_128() {
        assert_eq!(ExitStatus::Code(3).shell_code(), 3);
        assert_eq!(ExitStatus::Signal(15).shell_code(), 143);
        assert_eq!(ExitStatus::Signal(i32::MAX).shell_code(), i32::MAX);
    }
}
