//! The life of virtual nodes: namespaces, devices, addresses, routes, names, programs, exits and
//! clean-up.
//!
//! Promises: a node's programs see a machine of their own on the network (devices, addresses,
//! names, ports, processes) and the real file system, or one of
//! their own; a set-up that fails says at which node, at
//! what and what to do; nothing outlives the process that called [`create`], however it ends.
//! Refuses: reading or writing data packets; deciding when programs start or what their exit means.
//!
//! | module | nouns |
//! | --- | --- |
//! | `namespaces` | [`enter`], [`Namespaces`]: leaving the machine's network |
//! | `node_set` | [`create`], [`NodeSet`], [`RunningNode`]: all nodes of a run |
//! | `message` | [`NodeInitRequest`], [`NodeInitReply`]: what can be asked of a node, and what it reports |
//! | `hosts` | [`hosts_file`]: the names that programs find |
//! | `doctor` | [`diagnose`], [`PrerequisiteCheck`]: what this machine allows |
//! | `init` (private) | a node's first process: finishes the set-up, then runs programs |
//! | `net_config` (private) | what has to be configured in a node |
//! | `netlink` (private) | devices, addresses, routes, packet filters |
//! | `filter` (private) | what chains of packet filters do |
//!
//! A process that has left for good, so this is not run here:
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let plan: windtunnel_model::Plan = unreachable!();
//! use windtunnel_node::{NodeSetOptions, NodeInitRequest, ProgramSpawnRequest, create, enter};
//!
//! let routes = windtunnel_routing::Routes::compute(&plan);
//! let namespaces = enter()?;
//! let options = NodeSetOptions::new("/tmp/run".into());
//! let node_set = create(&plan, &routes, &namespaces, &options, |_, _| ())?;
//! let node = &node_set.nodes()[0];
//! let argv = vec!["ping".into(), "-c1".into(), "web".into()];
//! let env = Default::default();
//! let spawn = ProgramSpawnRequest { id: 1, argv, env, cwd: None, terminal: false, program: None };
//! let (input, output) = (std::io::stdin(), std::io::stdout());
//! use std::os::fd::AsFd;
//! node.send(&NodeInitRequest::Spawn(spawn), &[input.as_fd(), output.as_fd(), output.as_fd()])?;
//! # Ok(())
//! # }
//! ```

mod channel;
mod doctor;
mod filter;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
mod hint;
mod hosts;
mod init;
mod message;
mod namespaces;
mod net_config;
mod netlink;
mod node_set;
#[cfg(test)]
mod testing;

pub use channel::ChannelError;
pub use doctor::{PrerequisiteCheck, diagnose};
#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::fuzz_one;
pub use hosts::hosts_file;
pub use init::hidden::{MaskedPathCover, hide};
pub use message::{
    ECHO_PATIENCE_NS, ExitStatus, ListeningEndpoint, MESSAGE_BYTES_MAX, MessageError,
    NetworkInterference, NodeInitReply, NodeInitRequest, NodeSetupFailure, NodeSetupStage,
    ProgramLimits, ProgramProbe, ProgramProbeMethod, ProgramSpawnRequest,
};
pub use namespaces::{EnterError, Namespaces, enter, enter_for, enter_for_files};
pub use netlink::NetlinkError;

pub use net_config::FIRST_DEVICE;
pub use net_config::edit::RouteEdit;

pub use node_set::{
    CreateError, NodeSet, NodeSetOptions, ProgramRecordingSetup, RunningNode, create, sent_to,
};
pub use node_set::{OwnRoot, OwnVolume};
