//! `play`: what recorded programs did, done again in a node (`replay:` of the scenario).

mod client;
mod datagrams;
mod progress;
mod server;
mod steps;

use std::fs;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use windtunnel_evidence::workload::{WorkloadConnection, WorkloadProtocol, parse};
use windtunnel_sys::clock::set_timer_slack;

use crate::exit::ExitCategory;
use crate::failure::{Outcome, VerbFailure};
use crate::output;
use crate::render::quantity::{bytes, count};
use progress::ReplayProgress;
use steps::ReplayByteCounts;

/// Do again what the programs of a node did: the program behind `replay` of a scenario
#[derive(Debug, clap::Args)]
pub(crate) struct PlayArguments {
    /// The workload, as `windtunnel records workload` writes it
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Play the part of this node [default: the one that it runs in]
    #[arg(long, value_name = "NODE", env = "WINDTUNNEL_PLAY_AS")]
    node: Option<String>,
}

/// A workload and how far its clients are.
#[derive(Debug)]
struct WorkloadReplay {
    connections: Vec<WorkloadConnection>,
    progress: ReplayProgress,
    begin: Instant,
}

pub(crate) fn run(arguments: &PlayArguments) -> Outcome {
    let connections = read(&arguments.file)?;
    let node = match &arguments.node {
        Some(node) => node.clone(),
        None => own_name()?,
    };
    let is_of_node = |it: &WorkloadConnection| it.client == node || it.server == node;
    if !connections.iter().any(is_of_node) {
        let text = format!("{} has no connection of the node {node}", arguments.file.display());
        return Err(
            VerbFailure::new(ExitCategory::Usage, text).hint("nodes are found by their names")
        );
    }
    // Threads inherit it. Without it each pause would be up to 50 µs longer.
    set_timer_slack(NonZeroU64::MIN)
        .map_err(|error| VerbFailure::caused(ExitCategory::Machine, error))?;
    let progress = ReplayProgress::new(connections.len());
    let play = Arc::new(WorkloadReplay { connections, progress, begin: Instant::now() });
    let played = play_all(&play, &node)?;
    let sum: ReplayByteCounts = played.iter().sum();
    let text = format!(
        "{} played as {node}: {} written, {} read\n",
        count(played.len(), "connection"),
        bytes(sum.written),
        bytes(sum.read)
    );
    output::data(&text)?;
    Ok(ExitCategory::Fine.code())
}

fn read(file: &Path) -> Result<Vec<WorkloadConnection>, VerbFailure> {
    let unusable = |error: &dyn std::fmt::Display| {
        VerbFailure::new(ExitCategory::Usage, format!("cannot use {}: {error}", file.display()))
    };
    let text = fs::read_to_string(file).map_err(|error| unusable(&error))?;
    let connections = parse(&text).map_err(|error| unusable(&error))?;
    for (at, connection) in connections.iter().enumerate() {
        if connection.connection as usize != at + 1 || at + 1 > client::CONNECTIONS_MAX {
            let text = format!("connection {} is not number {}", connection.connection, at + 1);
            return Err(unusable(&text));
        }
    }
    Ok(connections)
}

fn own_name() -> Result<String, VerbFailure> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname");
    let name = name.map_err(|error| VerbFailure::caused(ExitCategory::Machine, error))?;
    Ok(name.trim().to_owned())
}

/// Plays all that is the node's; each connection has a thread.
fn play_all(play: &Arc<WorkloadReplay>, node: &str) -> Result<Vec<ReplayByteCounts>, VerbFailure> {
    let servers = server::start(play, node)?;
    let clients = play.connections.iter().filter(|it| it.client == node).map(|connection| {
        let (play, number) = (Arc::clone(play), connection.connection);
        spawn(move || client::play(&play, number))
    });
    let clients = clients.collect::<Result<Vec<_>, _>>()?;
    let mut played = Vec::new();
    for thread in clients.into_iter().chain(servers) {
        played.extend(thread.join()?);
    }
    Ok(played)
}

/// A thread that plays connections, or listens for them.
struct ReplayThread(thread::JoinHandle<Result<Vec<ReplayByteCounts>, VerbFailure>>);

impl ReplayThread {
    fn is_finished(&self) -> bool {
        self.0.is_finished()
    }

    /// Waits for what it has played.
    fn join(self) -> Result<Vec<ReplayByteCounts>, VerbFailure> {
        let panicked = |_| VerbFailure::new(ExitCategory::Internal, "a thread panicked");
        self.0.join().map_err(panicked)?
    }
}

fn spawn(
    work: impl FnOnce() -> Result<Vec<ReplayByteCounts>, VerbFailure> + Send + 'static,
) -> Result<ReplayThread, VerbFailure> {
    let builder = thread::Builder::new().stack_size(STACK_BYTES);
    let thread = builder.spawn(work);
    thread.map(ReplayThread).map_err(|error| VerbFailure::caused(ExitCategory::Machine, error))
}

/// Connections of this protocol that the node serves, by port.
fn served<'a>(
    play: &'a WorkloadReplay,
    node: &str,
    protocol: WorkloadProtocol,
) -> std::collections::BTreeMap<u16, Vec<&'a WorkloadConnection>> {
    let mut ports: std::collections::BTreeMap<u16, Vec<&WorkloadConnection>> =
        std::collections::BTreeMap::new();
    for it in &play.connections {
        if it.server == node && it.protocol == protocol {
            ports.entry(it.port).or_default().push(it);
        }
    }
    ports
}

/// A thread has one small buffer and a socket.
const STACK_BYTES: usize = 256 * 1024;
