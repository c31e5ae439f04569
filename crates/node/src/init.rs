//! A node's first process. It is forked from the host process and never runs another program
//! itself: it configures its own namespaces, then starts, signals and reaps the node's programs.
//!
//! Stages, each named in failures:
//!
//! 1. *process*: die with the host process; signals as something to read; where programs are to be
//!    root, make the user namespace in which they are, and keep other processes from reading this
//!    one;
//! 2. *mounts*: a private tree of mounts with the node's own /proc and devices in /sys, without
//!    what is hidden from all nodes, and with folders of its own where the node is private; where
//!    it has a file system of its own, in that; where it is recorded, with the files for that;
//! 3. *names*: host name, /etc/hosts, /etc/hostname, /etc/resolv.conf, no name caches; then the
//!    mounts are locked: from now on nothing that runs in the node can take one away;
//! 4. *settings*: the defaults of the network namespace, before any device exists; then `Prepared`,
//!    and wait for `Continue`;
//! 5. *devices*: lo and the links up, addresses, routes, rules;
//! 6. *sysctl*: the settings that the file asks for; then `Ready`;
//! 7. serve requests until the host process is gone.

mod echo;
mod gateway;
pub(crate) mod hidden;
mod inner;
mod interference;
mod mounts;
mod names;
mod network;
mod observe;
mod own;
mod private;
mod probe;
mod program_limits;
mod programs;
mod receive;
pub(crate) mod record;
mod resumption;
mod root;
mod serve;
mod settings;
pub(crate) mod setup;
mod sysctl;
mod watch;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{self, AssertUnwindSafe};

use windtunnel_sys::process::{self, Signal};
use windtunnel_sys::{signal, terminal};

use crate::channel::{ChannelError, SeqpacketSocket};
use crate::message::{NodeInitReply, NodeInitRequest, NodeSetupFailure, NodeSetupStage};
use crate::net_config::NetConfig;

pub(crate) use inner::PROGRAMS_OWN;
pub(crate) use settings::apply as apply_settings;

use inner::InnerNamespaces;
use programs::NodeProgramTable;
use setup::InitSetup;

/// Why an init ends before its time.
enum NodeInitTermination {
    Failed(NodeSetupFailure),
    /// The host process is gone, or something that cannot be reported.
    Channel(ChannelError),
}

/// The life of an init. It must not return into the host process's code, not even by a panic: the
/// values there hold descriptors that are closed here.
pub(crate) fn live(setup: &InitSetup<'_>, channel: &SeqpacketSocket) -> ! {
    let lived = panic::catch_unwind(AssertUnwindSafe(|| {
        let outcome = set_up(setup, channel).and_then(|(signals, programs, v6)| {
            serve::serve(programs, channel, signals, v6).map_err(NodeInitTermination::Channel)
        });
        match outcome {
            Ok(()) | Err(NodeInitTermination::Channel(ChannelError::Gone)) => 0,
            Err(NodeInitTermination::Channel(_)) => 1,
            Err(NodeInitTermination::Failed(failure)) => {
                // If the host process is gone, the report has no reader.
                let _ = channel.send(&NodeInitReply::Failed(failure), &[]);
                1
            }
        }
    }));
    process::exit_now(lived.unwrap_or(101))
}

fn set_up(
    setup: &InitSetup<'_>,
    channel: &SeqpacketSocket,
) -> Result<(signal::SignalReader, NodeProgramTable, bool), NodeInitTermination> {
    let mut notes = Vec::new();
    let net_config = NetConfig::of(setup.plan, setup.routes, setup.id);
    let signals = become_init(setup).map_err(|error| process_failure(&error))?;
    let inner = setup.inside.as_ref().map(InnerNamespaces::make).transpose();
    let inner = inner.map_err(|error| process_failure(&error))?;
    // Not earlier: the files below /proc of a process that is not dumpable are root's.
    process::set_dumpable(false).map_err(|error| process_failure(&error))?;
    mounts::mount(&setup.files, &mut notes)?;
    if let Some(own) = setup.own {
        root::build(own, &setup.files, &mut notes)?;
    }
    // After volumes are there: they may show what is hidden by other names.
    hidden::hide(setup.hidden, hidden::MaskedPathCover::empty(), &mut notes)?;
    match setup.own {
        Some(own) => root::enter(own)?,
        None if setup.node().private => private::cover(setup.kept)?,
        None => {}
    }
    let left = record::mount(setup, &mut notes)?;
    names::set_host_name(&setup.node().name)?;
    if setup.own.is_none() {
        names::cover_files(&setup.files, &mut notes)?;
        mounts::protect(setup.run_dir, setup.node(), &mut notes);
    }
    let user_namespace = lock_mounts(inner).map_err(|error| process_failure(&error))?;
    settings::apply(setup.node().forward, net_config.v6, &mut notes)?;
    settings::keep_limits(setup.tables, &mut notes)?;
    let (left, files) = left.unzip();
    let files = files.unwrap_or_default();
    let files: Vec<BorrowedFd<'_>> = files.iter().map(OwnedFd::as_fd).collect();
    channel.send(&NodeInitReply::Prepared, &files)?;
    match channel.receive::<NodeInitRequest>(None)? {
        Some((NodeInitRequest::Continue, _)) => {}
        // Only the host process sends here, and it sent something else: it is not sane.
        _ => return Err(NodeInitTermination::Channel(ChannelError::Gone)),
    }
    network::configure(&net_config, &mut notes)?;
    sysctl::apply(&setup.node().sysctl)?;
    channel.send(&NodeInitReply::Ready { notes }, &[])?;
    Ok((signals, NodeProgramTable::new(setup, user_namespace, left), net_config.v6))
}

fn become_init(setup: &InitSetup<'_>) -> io::Result<signal::SignalReader> {
    // Programs are not to read from, or be stopped by, the terminal that windtunnel runs in.
    terminal::give_up_controlling()?;
    if setup.plan.nodes.len() <= SESSIONS_MAX {
        process::begin_session()?;
    }
    process::set_parent_death_signal(Some(Signal::KILL))?;
    // The name is for users who look at the machine's processes.
    process::set_name(&format!("wt:{}", setup.node().name))?;
    for number in HOST_HANDLES {
        signal::reset(number)?;
    }
    signal::unblock_all()?;
    signal::SignalReader::open(&[Signal::CHILD])
}

/// Linux shares processors between sessions first, and between a session's processes then (autogroups,
/// sched(7)): in a session with its programs, the packet loop of an ordinary user waits for their
/// session's turn. In one of its own, it comes as soon as it wakes. Where there are more nodes than
/// this, so many sessions would leave too little to that of the packet loop.
const SESSIONS_MAX: usize = 16;

/// The programs' user namespace, if they have one of their own.
fn lock_mounts(inner: Option<InnerNamespaces>) -> io::Result<Option<OwnedFd>> {
    inner.map(InnerNamespaces::lock_mounts).transpose()
}

fn process_failure(error: &io::Error) -> NodeInitTermination {
    NodeInitTermination::Failed(NodeSetupFailure {
        stage: NodeSetupStage::Process,
        message: format!("cannot become the node's first process: {error}"),
        hint: crate::hint::too_many(error),
    })
}

impl From<NodeSetupFailure> for NodeInitTermination {
    fn from(failure: NodeSetupFailure) -> Self {
        NodeInitTermination::Failed(failure)
    }
}

impl From<ChannelError> for NodeInitTermination {
    fn from(error: ChannelError) -> Self {
        NodeInitTermination::Channel(error)
    }
}

impl From<io::Error> for NodeInitTermination {
    fn from(error: io::Error) -> Self {
        NodeInitTermination::Channel(ChannelError::Io(error))
    }
}

/// Signals that the host process may have handlers for, which must not run here. At their default,
/// PID 1 ignores them.
const HOST_HANDLES: [Signal; 9] = [
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::TERM,
    Signal::USR1,
    Signal::USR2,
    Signal::PIPE,
    Signal::WINCH,
    Signal::CHILD,
];
