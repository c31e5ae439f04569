//! The client's side of a connection.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};
use windtunnel_evidence::workload::{ConnectionStart, WorkloadConnection, WorkloadProtocol};

use super::steps::{self, ReplayByteCounts};
use super::{WorkloadReplay, datagrams};
use crate::exit::ExitCategory;
use crate::failure::VerbFailure;

/// The own port of connection `n` is this and `n`: by it the server knows which one it is.
const FIRST_PORT: u16 = 20_000;

/// As many as there are ports for.
pub(super) const CONNECTIONS_MAX: usize = (u16::MAX - FIRST_PORT) as usize;

/// The connection that has this own port of its client.
pub(super) fn number_of(port: u16) -> Option<u32> {
    port.checked_sub(FIRST_PORT).map(u32::from)
}

/// The own port of a connection's client.
pub(super) fn own_port(number: u32) -> u16 {
    FIRST_PORT.saturating_add(u16::try_from(number).unwrap_or(u16::MAX))
}

/// Plays connection `number`.
pub(super) fn play(
    play: &WorkloadReplay,
    number: u32,
) -> Result<Vec<ReplayByteCounts>, VerbFailure> {
    let connection = &play.connections[number as usize - 1];
    match connection.start {
        ConnectionStart::AtNs(at) => steps::pause(play.begin, at),
        ConnectionStart::After { connection, steps, think_ns } => {
            play.progress.wait(connection, steps);
            steps::pause(Instant::now(), think_ns);
        }
    }
    let done = |steps| play.progress.set(number, steps);
    let played = match connection.protocol {
        WorkloadProtocol::Tcp => open(connection).and_then(|stream| {
            done(0);
            steps::play(stream, &connection.client_steps, done)
        }),
        WorkloadProtocol::Udp => datagrams::play_client(connection, done),
    };
    // Those that begin after it do so also if it has failed.
    done(usize::MAX);
    played.map(|played| vec![played]).map_err(|error| failed(connection, &error))
}

/// Why a connection could not be played.
pub(super) fn failed(connection: &WorkloadConnection, error: &io::Error) -> VerbFailure {
    let WorkloadConnection { connection: number, client, server, port, .. } = connection;
    let text = format!("connection {number} ({client} to {server}:{port}): {error}");
    VerbFailure::new(ExitCategory::Check, text)
}

/// The address of the server's node.
pub(super) fn address(connection: &WorkloadConnection) -> io::Result<SocketAddr> {
    let mut addresses = (connection.server.as_str(), connection.port).to_socket_addrs()?;
    addresses
        .next()
        .ok_or_else(|| io::Error::other(format!("{} has no address", connection.server)))
}

fn open(connection: &WorkloadConnection) -> io::Result<TcpStream> {
    let address = address(connection)?;
    let begin = Instant::now();
    loop {
        match open_once(connection.connection, address) {
            // The server's node may begin later.
            Err(error)
                if error.kind() == io::ErrorKind::ConnectionRefused
                    && begin.elapsed() < SERVER_PATIENCE =>
            {
                thread::sleep(AGAIN);
            }
            other => return other,
        }
    }
}

fn open_once(number: u32, address: SocketAddr) -> io::Result<TcpStream> {
    let own: SocketAddr = match address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, own_port(number)).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, own_port(number)).into(),
    };
    // By functions of the C library, which the recorder of calls sees.
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&own.into())?;
    socket.connect(&address.into())?;
    Ok(socket.into())
}

const SERVER_PATIENCE: Duration = Duration::from_secs(10);
const AGAIN: Duration = Duration::from_millis(10);
