//! How a limit is held.

use std::fmt;

/// How programs are held to a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mechanism {
    /// A control group of version 2.
    GroupV2,
    /// A control group of version 1.
    GroupV1,
    /// SIGSTOP and SIGCONT from the node's init.
    DutyCycle,
    /// The node's init looks often, and ends processes.
    Watch,
    /// A limit that the kernel keeps for the node's own user namespace, setrlimit(2).
    Namespace,
    /// A limit that the kernel keeps for each process, setrlimit(2).
    PerProcess,
    /// Nothing can.
    Nothing,
}

impl fmt::Display for Mechanism {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Mechanism::GroupV2 => "cgroup v2",
            Mechanism::GroupV1 => "cgroup v1",
            Mechanism::DutyCycle => "duty cycle",
            Mechanism::Watch => "watch",
            Mechanism::Namespace => "user namespace",
            Mechanism::PerProcess => "rlimit",
            Mechanism::Nothing => "none",
        })
    }
}
