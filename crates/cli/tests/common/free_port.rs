//! Ports at which programs of a test can listen.

use std::net::{TcpListener, UdpSocket};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// A port of loopback at which nothing listens, by TCP or UDP. The kernel gives none of these to
/// sockets without a port (`net.ipv4.ip_local_port_range` begins at 32768): none can take it before the
/// test's program does.
pub(crate) fn free_port() -> u16 {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = process::id().wrapping_add(TAKEN.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(FIRST + number % SLOTS * SLOT_PORTS).unwrap();
        let at = ("127.0.0.1", port);
        if UdpSocket::bind(at).is_ok() && TcpListener::bind(at).is_ok() {
            return port;
        }
    }
}

const FIRST: u32 = 20_000;
const SLOTS: u32 = 120;
/// An agent has the ports behind its own for packets of runs.
const SLOT_PORTS: u32 = 101;
