//! All nodes of a run: bringing them up, and taking them down at once.

mod devices;
mod error;
pub(crate) mod files;
pub(crate) mod own_root;
pub(crate) mod recording;
mod spawn;
mod steering;
pub(crate) mod tables;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use windtunnel_model::Plan;
use windtunnel_model::id::{NodeId, PortId};
use windtunnel_routing::Routes;
use windtunnel_sys::poll::{self, PollFd, PollFlags};
use windtunnel_sys::process::{self, Pid, Signal};
use windtunnel_sys::unix;

use crate::channel::{ChannelError, SeqpacketSocket};
use crate::message::{NodeInitReply, NodeInitRequest};
use crate::namespaces::Namespaces;
use crate::net_config::edit::RouteEdit;

pub use error::CreateError;
pub use own_root::{OwnRoot, OwnVolume};
pub use recording::ProgramRecordingSetup;

/// How nodes are made.
#[derive(Debug, Clone)]
pub struct NodeSetOptions {
    /// The run folder, absolute; the nodes' own `hosts`, `hostname` and `resolv.conf` go there.
    pub run_dir: PathBuf,
    /// Whether the nodes' kernels may hand over packets of up to 64 KiB that are yet to be cut
    /// into segments. Without, each packet fits the MTU; checksums may be unfinished all the
    /// same.
    pub offload: bool,
    /// The nice value of programs (setpriority(2)). It should be above that of the thread that
    /// carries the packets, so that busy programs do not make packets late.
    pub nice: i32,
    /// How long a node may take to answer during set-up.
    pub patience: Duration,
    /// Files and folders that no program of a node may see, such as keys: they are there, and
    /// empty.
    pub hidden: Vec<PathBuf>,
    /// What private nodes see beside the run folder, though it may be in a home or a temporary
    /// folder.
    pub kept: Vec<PathBuf>,
    /// Whether the state of the nodes' TCP connections will be looked at
    /// ([`NodeSet::diagnosis`]): it is then made cheap.
    pub diagnosed: bool,
    /// Which nodes are made, by their position in the plan; `None`: all. The others are on other
    /// machines.
    pub here: Option<Vec<bool>>,
    /// By what programs leave records and declarations; `None`: they do not.
    pub recorded: Option<ProgramRecordingSetup>,
    /// The files of nodes that have a file system of their own.
    pub roots: BTreeMap<NodeId, OwnRoot>,
}

/// The nodes of a run that are on this machine. Dropping it ends every process in them.
#[derive(Debug)]
pub struct NodeSet {
    nodes: Vec<RunningNode>,
    /// By position in the plan: the position among `nodes`.
    places: Vec<Option<usize>>,
    /// Device indices in the fabric by port.
    fabric: Vec<u32>,
    notes: Vec<String>,
}

/// A node that runs. Messages may be sent and received from any thread.
#[derive(Debug)]
pub struct RunningNode {
    id: NodeId,
    name: String,
    pid: Pid,
    pidfd: OwnedFd,
    channel: SeqpacketSocket,
    region: Option<OwnedFd>,
    senders: Option<OwnedFd>,
}

impl NodeSetOptions {
    /// The usual options.
    #[must_use]
    pub fn new(run_dir: PathBuf) -> Self {
        NodeSetOptions {
            run_dir,
            offload: true,
            nice: 0,
            patience: Duration::from_secs(60),
            hidden: Vec::new(),
            kept: Vec::new(),
            diagnosed: false,
            here: None,
            recorded: None,
            roots: BTreeMap::new(),
        }
    }

    /// Whether a node is made here.
    pub(crate) fn is_here(&self, node: NodeId) -> bool {
        self.here.as_ref().is_none_or(|here| here.get(node.index()).copied().unwrap_or(false))
    }
}

/// Makes the nodes of a plan that are on this machine, complete with devices, addresses, routes and
/// names, without programs. `progress` is called with how many nodes are done, and of how many.
///
/// The process must have one thread only, and that thread must outlive the node_set: the nodes die
/// with it.
///
/// # Errors
/// What failed at which node; nothing is left then. [`CreateError::hint`] says what can be done.
pub fn create(
    plan: &Plan,
    routes: &Routes,
    namespaces: &Namespaces,
    options: &NodeSetOptions,
    mut progress: impl FnMut(usize, usize),
) -> Result<NodeSet, CreateError> {
    spawn::create(plan, routes, namespaces, options, &mut progress)
}

impl NodeSet {
    /// The nodes, in the order of the plan.
    #[must_use]
    pub fn nodes(&self) -> &[RunningNode] {
        &self.nodes
    }

    /// Takes from each node the file that its programs leave records in.
    pub fn take_regions(&mut self) -> Vec<(NodeId, OwnedFd)> {
        let nodes = self.nodes.iter_mut();
        nodes.filter_map(|node| Some((node.id, node.region.take()?))).collect()
    }

    /// Takes from each node the file in which its programs declare what they send.
    pub fn take_senders(&mut self) -> Vec<(NodeId, OwnedFd)> {
        let nodes = self.nodes.iter_mut();
        nodes.filter_map(|node| Some((node.id, node.senders.take()?))).collect()
    }

    /// One node; `None` if it is on another machine.
    #[must_use]
    pub fn node(&self, id: NodeId) -> Option<&RunningNode> {
        self.nodes.get((*self.places.get(id.index())?)?)
    }

    /// The index of each port's device in the fabric, which is the network namespace of the
    /// process: a packet socket sees the packets of the port's node there, and sends to it.
    /// Ports of nodes on other machines have an index that no device has.
    #[must_use]
    pub fn fabric(&self) -> &[u32] {
        &self.fabric
    }

    /// The port of a device in the fabric.
    #[must_use]
    pub fn port(&self, device: u32) -> Option<PortId> {
        let position = usize::try_from(device.checked_sub(FABRIC_INDEX_FIRST)?).ok()?;
        (position < self.fabric.len()).then(|| PortId::from_index(position))
    }

    /// Brings the kernels of nodes with several interfaces from one set of routes to another.
    /// Returns the nodes with changes, and for each whether it took the request; what a node
    /// then cannot do, it reports ([`NodeInitReply::RoutesFailed`]).
    pub fn change_routes(
        &self,
        plan: &Plan,
        before: &Routes,
        after: &Routes,
    ) -> Vec<(NodeId, Result<(), ChannelError>)> {
        let change = |node: &RunningNode| {
            let edit = RouteEdit::of(plan, before, after, node.id);
            if edit.is_empty() {
                return None;
            }
            let mut parts = edit.parts().into_iter();
            Some((
                node.id,
                parts.try_for_each(|part| node.send(&NodeInitRequest::Routes(part), &[])),
            ))
        };
        self.nodes.iter().filter_map(change).collect()
    }

    /// Brings a node's kernel from the services of one plan to those of another, between which
    /// nothing else differs: it gets the addresses that it is to answer for. What it then cannot
    /// do, it reports ([`NodeInitReply::RoutesFailed`]).
    ///
    /// # Errors
    /// As [`RunningNode::send`].
    pub fn change_services(
        &self,
        before: &Plan,
        after: &Plan,
        routes: &Routes,
        node: NodeId,
    ) -> Result<(), ChannelError> {
        let Some(there) = self.node(node) else { return Ok(()) };
        let edit = RouteEdit::of_services(before, after, routes, node);
        let mut parts = edit.parts().into_iter();
        parts.try_for_each(|part| there.send(&NodeInitRequest::Routes(part), &[]))
    }

    /// A socket for each node that asks the kernel about the node's sockets
    /// ([`windtunnel_sys::sock_diag`]), or why there is none. Waits up to `patience` for each
    /// node; only the thread that receives the nodes' reports need not wait meanwhile.
    #[must_use]
    pub fn diagnosis(&self, patience: Duration) -> Vec<(NodeId, io::Result<OwnedFd>)> {
        self.diagnosis_of(|_| true, patience)
    }

    /// The same for the nodes that are `wanted`.
    #[must_use]
    pub fn diagnosis_of(
        &self,
        wanted: impl Fn(NodeId) -> bool,
        patience: Duration,
    ) -> Vec<(NodeId, io::Result<OwnedFd>)> {
        let nodes = self.nodes.iter().filter(|node| wanted(node.id));
        let asked: Vec<_> = nodes.map(|node| (node.id, node.ask_diagnosis())).collect();
        let answered = asked.into_iter();
        let answered =
            answered.map(|(id, asked)| (id, asked.and_then(|end| sent_to(&end, patience))));
        answered.collect()
    }

    /// What is not as it should be, without being fatal: a sentence each.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Ends every process of every node, and returns when all are gone. Devices vanish with the
    /// last process of their namespace.
    pub fn close(self) {}

    /// All first, then wait: the kernel takes the namespaces down in one batch.
    fn end(&mut self) {
        for node in &self.nodes {
            // A node that is gone already needs no signal.
            let _ = process::pidfd_send_signal(&node.pidfd, Signal::KILL);
        }
        for node in &self.nodes {
            while let Err(error) = process::wait_pidfd(&node.pidfd, false) {
                if error.kind() != io::ErrorKind::Interrupted {
                    break;
                }
            }
        }
    }
}

impl Drop for NodeSet {
    fn drop(&mut self) {
        self.end();
    }
}

impl RunningNode {
    /// Its position in the plan.
    #[must_use]
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its init, as the machine numbers it. A process that enters its namespaces (nsenter(1)) is
    /// inside the node.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().cast_unsigned()
    }

    /// Sends a request, with descriptors where it takes some.
    ///
    /// # Errors
    /// [`ChannelError::Gone`] when the node's init has ended, [`ChannelError::Stuck`] when it has
    /// not taken messages for five seconds.
    pub fn send(
        &self,
        request: &NodeInitRequest,
        fds: &[BorrowedFd<'_>],
    ) -> Result<(), ChannelError> {
        self.channel.send(request, fds)
    }

    /// Has programs that start from now on, and that a preload library cannot enter, show their
    /// calls; the supervisor's end of the socket where that begins. `library` is the path of the
    /// preload library that programs get. As long as the run goes on, the supervisor must live:
    /// without it the calls that would be shown fail.
    ///
    /// # Errors
    /// As [`RunningNode::send`].
    pub fn supervise(&self, library: Option<String>) -> Result<OwnedFd, ChannelError> {
        let (own, theirs) = unix::seqpacket_pair()?;
        self.send(&NodeInitRequest::Supervise { library }, &[theirs.as_fd()])?;
        Ok(own)
    }

    fn ask_diagnosis(&self) -> io::Result<OwnedFd> {
        let (own, theirs) = unix::seqpacket_pair()?;
        self.send(&NodeInitRequest::Diagnose, &[theirs.as_fd()]).map_err(io::Error::other)?;
        Ok(own)
    }

    /// The next report, if one has come. Poll the node's descriptor to know when.
    ///
    /// # Errors
    /// [`ChannelError::Gone`] when the node's init has ended.
    pub fn recv(&self) -> Result<Option<NodeInitReply>, ChannelError> {
        Ok(self.channel.receive(Some(Duration::ZERO))?.map(|(reply, _)| reply))
    }
}

impl AsFd for RunningNode {
    /// For polling: readable when there is a report, or the node has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }
}

/// The socket that a node's init has sent to the other end of the one that went with
/// [`NodeInitRequest::Diagnose`].
///
/// # Errors
/// The node's failure to make one, or that nothing has come in time.
pub fn sent_to(end: &OwnedFd, patience: Duration) -> io::Result<OwnedFd> {
    if poll::wait(&mut [PollFd::new(end, PollFlags::IN)], Some(patience))? == 0 {
        return Err(io::ErrorKind::TimedOut.into());
    }
    let mut errno = [0; 4];
    let received = unix::receive(end, &mut errno)?;
    let failed = || match received.bytes {
        4 => io::Error::from_raw_os_error(i32::from_le_bytes(errno)),
        _ => io::ErrorKind::UnexpectedEof.into(),
    };
    received.descriptors.into_iter().next().ok_or_else(failed)
}

/// The index of port 0's device in the fabric, above what the kernel may have put there.
const FABRIC_INDEX_FIRST: u32 = 1000;
