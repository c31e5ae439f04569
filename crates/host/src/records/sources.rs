//! Sources of records beside the packet loop and the library: the kernel's stack, static programs,
//! the state of connections.

use std::io;
use std::os::fd::OwnedFd;

use windtunnel_model::{NodeId, Plan, Span};
use windtunnel_record::diagnosis::TcpDiagnosis;
use windtunnel_record::drain;
use windtunnel_record::kernel::Kernel;
use windtunnel_record::notification::CallRecorder;
use windtunnel_sys::sock_diag;

use super::span;

/// Has the kernel's stack seen in all nodes.
pub(super) fn see_nodes(
    mut kernel: Kernel,
    sockets: &[(NodeId, io::Result<OwnedFd>)],
    feeds: &mut Vec<Box<dyn drain::RecordFeed>>,
    unseen: &mut Vec<String>,
) -> Result<Kernel, String> {
    for (node, socket) in sockets {
        let why = |error: &dyn std::fmt::Display| format!("a node's network is not known: {error}");
        let socket = socket.as_ref().map_err(|error| why(error))?;
        let namespace = sock_diag::namespace(socket).map_err(|error| why(&error))?;
        let feed = kernel.add_namespace(namespace, node.0).map_err(|error| error.reason)?;
        // Its programs run at once; a call is short as long as nothing is recorded.
        kernel.set_recording(node.0, false);
        feeds.push(Box::new(feed));
    }
    let missing = kernel.missing().iter();
    unseen.extend(missing.map(|(point, why)| format!("the kernel's {point}: {why}")));
    Ok(kernel)
}

/// Starts the thread that lets calls of static programs go on; its sources.
#[expect(clippy::type_complexity, reason = "private, and destructured at its only call")]
pub(super) fn supervise(
    plan: &Plan,
    sockets: Vec<(NodeId, Result<OwnedFd, String>)>,
    unseen: &mut Vec<String>,
) -> io::Result<(Option<CallRecorder>, Vec<Box<dyn drain::RecordFeed>>)> {
    let mut nodes = Vec::new();
    for (node, socket) in sockets {
        match socket {
            Ok(socket) => nodes.push((node, socket)),
            Err(why) => {
                let node = &plan.nodes[node.index()].name;
                unseen.push(format!("node {node}: no calls of static programs are seen: {why}"));
            }
        }
    }
    if nodes.is_empty() {
        return Ok((None, Vec::new()));
    }
    let (supervision, feeds) = CallRecorder::start(nodes, SHOWN_MAX)?;
    supervision.set_recording(false);
    Ok((Some(supervision), feeds))
}

/// What looks at the state of connections in all nodes, or why nothing can.
pub(super) fn diagnosis_of(
    sockets: Vec<(NodeId, io::Result<OwnedFd>)>,
    interval: Span,
) -> Result<TcpDiagnosis, String> {
    if sockets.is_empty() {
        return Err(WITHOUT_SOCKETS.to_owned());
    }
    let open = |(node, socket): (NodeId, io::Result<OwnedFd>)| {
        let why = |error| format!("the kernel cannot be asked about sockets: {error}");
        socket.map(|socket| (node, socket)).map_err(why)
    };
    let sockets: Result<Vec<_>, String> = sockets.into_iter().map(open).collect();
    Ok(TcpDiagnosis::new(sockets?, span(interval)))
}

/// Calls of the static programs of a node that wait for the thread of records.
const SHOWN_MAX: usize = 1 << 14;
const WITHOUT_SOCKETS: &str = "the nodes were made without it; write `record: standby`, so that it \
                               can begin at any time";
