//! Datagrams: a lost one must not stop the others.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use windtunnel_evidence::workload::{Action, Connection};

use super::client::{address, failed, number_of, own_port};
use super::steps::{Played, largest, pause};
use super::{Play, Thread, spawn};
use crate::exit::Exit;
use crate::failure::Failure;

/// Plays the client's side. An answer that does not come is waited for, then left out.
pub(super) fn play_client(
    connection: &Connection,
    mut done: impl FnMut(usize),
) -> io::Result<Played> {
    let address = address(connection)?;
    let socket = bound(own_port(connection.connection), address.is_ipv6())?;
    socket.connect(address)?;
    socket.set_read_timeout(Some(ANSWER_PATIENCE))?;
    done(0);
    let steps = &connection.client_steps;
    let mut buffer = vec![0; largest(steps).max(1)];
    let mut played = Played::default();
    let mut before = Instant::now();
    for (number, step) in (1..).zip(steps) {
        pause(before, step.think_ns);
        match step.action {
            Action::Write(bytes) => {
                socket.send(&buffer[..bytes as usize])?;
                played.written += u64::from(bytes);
            }
            Action::Read(_) => match socket.recv(&mut buffer) {
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
    play: &Arc<Play>,
    port: u16,
    numbers: Vec<u32>,
) -> Result<Thread, Failure> {
    let socket = bound(port, true).or_else(|_| bound(port, false)).map_err(|error| {
        Failure::new(Exit::Machine, format!("cannot bind port {port}: {error}"))
    })?;
    let play = Arc::clone(play);
    spawn(move || serve(&play, &Arc::new(socket), &numbers))
}

fn serve(
    play: &Arc<Play>,
    socket: &Arc<UdpSocket>,
    numbers: &[u32],
) -> Result<Vec<Played>, Failure> {
    let machine = |error| Failure::caused(Exit::Machine, error);
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
        let done = thread.join().map_err(|_| Failure::new(Exit::Internal, "a thread panicked"))?;
        played.extend(done?);
    }
    Ok(played)
}

type Datagram = (SocketAddr, usize);

fn distribute(
    socket: &UdpSocket,
    inboxes: &BTreeMap<u32, Sender<Datagram>>,
    threads: &[Thread],
) -> io::Result<()> {
    let mut buffer = vec![0; 65_536];
    let mut latest = Instant::now();
    while !threads.iter().all(Thread::is_finished) && latest.elapsed() < SILENCE {
        match socket.recv_from(&mut buffer) {
            Ok((bytes, peer)) => {
                latest = Instant::now();
                let inbox = number_of(peer.port()).and_then(|number| inboxes.get(&number));
                // A connection whose steps are done takes no more.
                if let Some(inbox) = inbox {
                    let _ = inbox.send((peer, bytes));
                }
            }
            Err(error) if is_patience_over(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn answer(
    connection: &Connection,
    socket: &UdpSocket,
    inbox: &Receiver<Datagram>,
) -> io::Result<Played> {
    let steps = &connection.server_steps;
    let buffer = vec![0; largest(steps)];
    let (mut played, mut peer) = (Played::default(), None);
    let mut before = Instant::now();
    for step in steps {
        match (step.action, peer) {
            (Action::Read(_), _) => {
                let Ok((from, bytes)) = inbox.recv() else { break };
                peer = Some(from);
                played.read += bytes as u64;
            }
            (Action::Write(bytes), Some(peer)) => {
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
