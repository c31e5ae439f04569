//! The way to the machine's outside: who allows it, and the process that carries it.

use std::os::fd::AsFd;
use std::time::Duration;

use windtunnel_folder::RunOutputFolder;
use windtunnel_gateway::{Gateway, GatewayReport, GatewaySettings};
use windtunnel_model::plan::PortPublication;
use windtunnel_model::{Plan, Time};
use windtunnel_node::{NodeInitRequest, NodeSet};

use crate::error::{RunError, step};
use crate::options::RunOptions;

/// Starts the gateway process, if a node stands for the machine's outside and that is allowed. The
/// process must have one thread only, and must not have left the machine's network yet.
pub(crate) fn start(
    plan: &Plan,
    options: &RunOptions,
    folder: &RunOutputFolder,
) -> Result<Option<Gateway>, RunError> {
    if plan.internet().is_none() {
        return Ok(None);
    }
    check_permission(plan, options)?;
    let settings = GatewaySettings::of(plan, options.allow_internet, options.allow_host);
    // Without a link nothing leads to it.
    let Some(settings) = settings else { return Ok(None) };
    let log = folder.below().create(LOG).map_err(step("make internet.csv"))?;
    Ok(Some(Gateway::start(settings, log)?))
}

/// Has the gateway process, if there is one, get what it needs of its node.
pub(crate) fn connect(
    gateway: Option<&mut Gateway>,
    plan: &Plan,
    node_set: &NodeSet,
) -> Result<(), RunError> {
    let Some(gateway) = gateway else { return Ok(()) };
    let node = plan.internet().and_then(|id| node_set.node(id));
    let Some((node, socket)) = node.zip(gateway.take_inside()) else { return Ok(()) };
    let sent = node.send(&NodeInitRequest::Gateway, &[socket.as_fd()]);
    sent.map_err(|error| step("reach the node `internet`")(std::io::Error::other(error)))?;
    // The gateway process is to see when the init is gone.
    drop(socket);
    Ok(gateway.until_ready(PATIENCE)?)
}

/// The run's clock starts.
pub(crate) fn begin(gateway: Option<&Gateway>, origin: Time) {
    if let Some(gateway) = gateway {
        gateway.begin(origin.as_nanos());
    }
}

/// The run has ended, and programs are about to be stopped.
pub(crate) fn count_no_more(gateway: Option<&Gateway>) {
    if let Some(gateway) = gateway {
        gateway.count_no_more();
    }
}

/// Nodes are about to vanish.
pub(crate) fn end(gateway: Option<Gateway>) -> Option<Result<GatewayReport, String>> {
    gateway.map(|gateway| gateway.end(PATIENCE))
}

/// A file alone opens nothing.
fn check_permission(plan: &Plan, options: &RunOptions) -> Result<(), RunError> {
    let (internet, host) = (options.allow_internet, options.allow_host);
    if !internet && !host {
        return Err(RunError::NotAllowed {
            what: "the node `internet` leads out of this machine's emulated network".to_owned(),
            hint: "allow it with --allow-internet (what an ordinary program of this machine reaches), \
                   or with --allow-host (servers of this machine's loopback, as `host`)",
        });
    }
    let is_open = |publish: &PortPublication| !internet && !publish.is_loopback();
    match plan.published().find(|(_, publish)| is_open(publish)) {
        None => Ok(()),
        Some((id, publish)) => Err(RunError::NotAllowed {
            what: format!(
                "`publish: {publish}` of node {} lets other machines in",
                plan.nodes[id.index()].name
            ),
            hint: "allow it with --allow-internet, or leave the address out: then only programs of \
                   this machine get in",
        }),
    }
}

/// In the run folder: a line for each flow.
const LOG: &str = "internet.csv";
/// What takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(20);
