//! The server's side of connections.

use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::sync::Arc;

use windtunnel_evidence::workload::{
    WorkloadAction, WorkloadConnection, WorkloadProtocol, WorkloadStep,
};

use super::steps::{self, ReplayByteCounts};
use super::{ReplayThread, WorkloadReplay, client, datagrams, served, spawn};
use crate::exit::ExitCategory;
use crate::failure::VerbFailure;

/// Listens on all ports that the node serves.
pub(super) fn start(
    play: &Arc<WorkloadReplay>,
    node: &str,
) -> Result<Vec<ReplayThread>, VerbFailure> {
    let mut threads = Vec::new();
    for (port, connections) in served(play, node, WorkloadProtocol::Tcp) {
        let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port))
            .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)));
        let listener = listener.map_err(|error| {
            VerbFailure::new(
                ExitCategory::Machine,
                format!("cannot listen on port {port}: {error}"),
            )
        })?;
        let (play, most) = (Arc::clone(play), connections.len());
        threads.push(spawn(move || accept(&play, &listener, most))?);
    }
    for (port, connections) in served(play, node, WorkloadProtocol::Udp) {
        let numbers = connections.iter().map(|it| it.connection).collect();
        threads.push(datagrams::start_server(play, port, numbers)?);
    }
    Ok(threads)
}

/// Accepts all connections of a port, and plays them.
fn accept(
    play: &Arc<WorkloadReplay>,
    listener: &TcpListener,
    most: usize,
) -> Result<Vec<ReplayByteCounts>, VerbFailure> {
    let mut threads = Vec::new();
    while threads.len() < most {
        let (stream, peer) =
            listener.accept().map_err(|error| VerbFailure::caused(ExitCategory::Machine, error))?;
        let number = client::number_of(peer.port());
        let known = number.and_then(|number| play.connections.get(number.checked_sub(1)? as usize));
        let Some(connection) = known else {
            // No client of the workload, such as a check that the port is open.
            continue;
        };
        let (play, number) = (Arc::clone(play), connection.connection);
        threads.push(spawn(move || serve(&play.connections[number as usize - 1], stream))?);
    }
    let mut played = Vec::new();
    for thread in threads {
        played.extend(thread.join()?);
    }
    Ok(played)
}

fn serve(
    connection: &WorkloadConnection,
    stream: TcpStream,
) -> Result<Vec<ReplayByteCounts>, VerbFailure> {
    let steps = &connection.server_steps;
    let mut rest = stream.try_clone().map_err(|error| client::failed(connection, &error))?;
    let is_closed = |step: &WorkloadStep| matches!(step.action, WorkloadAction::Close(_));
    let played = steps::play(stream, steps, |_| {}).and_then(|played| {
        // A program that did not close ended with its client.
        if !steps.last().is_some_and(is_closed) {
            steps::drain(&mut rest)?;
        }
        Ok(played)
    });
    played.map(|played| vec![played]).map_err(|error| client::failed(connection, &error))
}
