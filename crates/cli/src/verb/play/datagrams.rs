//! Datagrams: a lost one must not stop the others.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use windtunnel_evidence::workload::{WorkloadAction, WorkloadConnection};

use super::client::{address, failed, number_of, own_port};
use super::steps::{ReplayByteCounts, largest, pause};
use super::{ReplayThread, WorkloadReplay, spawn};
use crate::exit::ExitCategory;
use crate::failure::VerbFailure;

/// Plays the client's side. An answer that does not come is waited for, then left out.
pub(super) fn play_client(
    connection: &WorkloadConnection,
    mut done: impl FnMut(usize),
) -> io::Result<ReplayByteCounts> {
    let address = address(connection)?;
    let socket = bound(own_port(connection.connection), address.is_ipv6())?;
    socket.connect(address)?;
    socket.set_read_timeout(Some(ANSWER_PATIENCE))?;
    done(0);
    let steps = &connection.client_steps;
    let mut buffer = vec![0; largest(steps).max(1)];
    let mut played = ReplayByteCounts::default();
    let mut before = Instant::now();
    for (number, step) in (1..).zip(steps) {
        pause(before, step.think_ns);
        match step.action {
            WorkloadAction::Write(bytes) => {
                socket.send(&buffer[..bytes as usize])?;
                played.written += u64::from(bytes);
            }
            WorkloadAction::Read(_) => match socket.recv(&mut buffer) {
                Ok(bytes) => played.read += bytes as u64,
                Err(error) if is_patience_over(&error) => {}
                Err(error) => return Err(error),
            },
            _ => {}
        }
        before = Instant::now();
        done(number);
    }
    Ok(played)
}

/// Serves connections of a port until all their steps are done, or no datagram has come for long.
pub(super) fn start_server(
    play: &Arc<WorkloadReplay>,
    port: u16,
    numbers: Vec<u32>,
) -> Result<ReplayThread, VerbFailure> {
    let socket = bound(port, true).or_else(|_| bound(port, false)).map_err(|error| {
        VerbFailure::new(ExitCategory::Machine, format!("cannot bind port {port}: {error}"))
    })?;
    let play = Arc::clone(play);
    spawn(move || serve(&play, &Arc::new(socket), &numbers))
}

fn serve(
    play: &Arc<WorkloadReplay>,
    socket: &Arc<UdpSocket>,
    numbers: &[u32],
) -> Result<Vec<ReplayByteCounts>, VerbFailure> {
    let machine = |error| VerbFailure::caused(ExitCategory::Machine, error);
    let (mut inboxes, mut threads) = (BTreeMap::new(), Vec::new());
    for number in numbers {
        let (sender, receiver) = channel();
        inboxes.insert(*number, sender);
        let (play, socket, number) = (Arc::clone(play), Arc::clone(socket), *number);
        threads.push(spawn(move || {
            let connection = &play.connections[number as usize - 1];
            let played = answer(connection, &socket, &receiver);
            played.map(|played| vec![played]).map_err(|error| failed(connection, &error))
        })?);
    }
    socket.set_read_timeout(Some(LOOK)).map_err(machine)?;
    distribute(socket, &inboxes, &threads).map_err(machine)?;
    drop(inboxes);
    let mut played = Vec::new();
    for thread in threads {
        played.extend(thread.join()?);
    }
    Ok(played)
}

/// A datagram of a connection, without what it holds.
struct ReceivedDatagram {
    from: SocketAddr,
    bytes: usize,
}

fn distribute(
    socket: &UdpSocket,
    inboxes: &BTreeMap<u32, Sender<ReceivedDatagram>>,
    threads: &[ReplayThread],
) -> io::Result<()> {
    let mut buffer = vec![0; 65_536];
    let mut latest = Instant::now();
    while !threads.iter().all(ReplayThread::is_finished) && latest.elapsed() < SILENCE {
        match socket.recv_from(&mut buffer) {
            Ok((bytes, from)) => {
                latest = Instant::now();
                let inbox = number_of(from.port()).and_then(|number| inboxes.get(&number));
                // A connection whose steps are done takes no more.
                if let Some(inbox) = inbox {
                    let _ = inbox.send(ReceivedDatagram { from, bytes });
                }
            }
            Err(error) if is_patience_over(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn answer(
    connection: &WorkloadConnection,
    socket: &UdpSocket,
    inbox: &Receiver<ReceivedDatagram>,
) -> io::Result<ReplayByteCounts> {
    let steps = &connection.server_steps;
    let buffer = vec![0; largest(steps)];
    let (mut played, mut peer) = (ReplayByteCounts::default(), None);
    let mut before = Instant::now();
    for step in steps {
        match (step.action, peer) {
            (WorkloadAction::Read(_), _) => {
                let Ok(ReceivedDatagram { from, bytes }) = inbox.recv() else { break };
                peer = Some(from);
                played.read += bytes as u64;
            }
            (WorkloadAction::Write(bytes), Some(peer)) => {
                pause(before, step.think_ns);
                socket.send_to(&buffer[..bytes as usize], peer)?;
                played.written += u64::from(bytes);
            }
            _ => {}
        }
        before = Instant::now();
    }
    Ok(played)
}

fn bound(port: u16, v6: bool) -> io::Result<UdpSocket> {
    match v6 {
        true => UdpSocket::bind((Ipv6Addr::UNSPECIFIED, port)),
        false => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)),
    }
}

fn is_patience_over(error: &io::Error) -> bool {
    let kinds = [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut, io::ErrorKind::Interrupted];
    kinds.contains(&error.kind())
}

/// A client waits so long for an answer.
const ANSWER_PATIENCE: Duration = Duration::from_secs(1);
/// A server ends after such a silence, since datagrams that it waits for may have been lost.
const SILENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(100);
