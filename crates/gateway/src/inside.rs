//! What the node's init does for the gateway process: it opens sockets in the node's network
//! namespace and hands them out, as the process cannot get in.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::sockopt;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use serde::{Deserialize, Serialize};
use windtunnel_sys::{packet, socket};

use crate::message::{self, GatewaySocketRequest};

/// The devices of the node, by which the gateway process gets and sends frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatewayDevices {
    /// The index of its link.
    pub link: u32,
    /// The index of the device whose far end takes every packet for the node's own.
    pub near: u32,
    /// The Ethernet address of that far end.
    pub far_mac: [u8; 6],
}

/// Sends what was made (or why not) with packet sockets to the gateway process at the other end of
/// `socket`, and serves its requests on a thread until it is gone.
///
/// # Errors
/// What sendmsg(2) says, or that there is no thread.
pub fn begin(socket: OwnedFd, made: Result<GatewayDevices, String>) -> io::Result<()> {
    let opened = made.and_then(|devices| {
        let open = || packet::open_deaf().map_err(|error| format!("no packet socket: {error}"));
        Ok((devices, open()?, open()?))
    });
    let (devices, ring, outlet) = match opened {
        Ok(opened) => opened,
        Err(why) => return message::send(&socket, &Err::<GatewayDevices, String>(why), &[]),
    };
    message::send(
        &socket,
        &Ok::<GatewayDevices, String>(devices),
        &[ring.as_fd(), outlet.as_fd()],
    )?;
    let thread = std::thread::Builder::new().name("gateway".into());
    thread.spawn(move || while serve(&socket).is_ok_and(|more| more) {})?;
    Ok(())
}

/// Answers a request; `false` when the gateway process is gone.
fn serve(socket: &OwnedFd) -> io::Result<bool> {
    let Some((ask, _)) = message::receive::<GatewaySocketRequest>(socket)? else {
        return Ok(false);
    };
    match make(ask) {
        Ok(made) => message::send(socket, &Ok::<(), i32>(()), &[made.as_fd()])?,
        Err(error) => {
            let errno = error.raw_os_error().unwrap_or(0);
            message::send(socket, &Err::<(), i32>(errno), &[])?;
        }
    }
    Ok(true)
}

fn make(ask: GatewaySocketRequest) -> io::Result<OwnedFd> {
    match ask {
        GatewaySocketRequest::Listen { v6, port } => listen(v6, port),
        GatewaySocketRequest::Connect(to) => {
            let made = open(to.is_ipv6(), SocketType::STREAM)?;
            sockopt::set_tcp_nodelay(&made, true)?;
            match rustix::net::connect(&made, &to) {
                Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(made),
                Err(errno) => Err(errno.into()),
            }
        }
        GatewaySocketRequest::Datagrams(at) => {
            let made = open(at.is_ipv6(), SocketType::DGRAM)?;
            rustix::net::bind(&made, &at)?;
            Ok(made)
        }
    }
}

/// Its connections have the addresses that clients asked for, which no device has
/// (`IP_TRANSPARENT`).
fn listen(v6: bool, port: u16) -> io::Result<OwnedFd> {
    let made = open(v6, SocketType::STREAM)?;
    let any = match v6 {
        false => SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port),
        true => SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port),
    };
    socket::set_transparent(&made, v6)?;
    sockopt::set_socket_reuseaddr(&made, true)?;
    sockopt::set_tcp_nodelay(&made, true)?;
    rustix::net::bind(&made, &any)?;
    rustix::net::listen(&made, BACKLOG)?;
    Ok(made)
}

fn open(v6: bool, kind: SocketType) -> io::Result<OwnedFd> {
    let family = if v6 { AddressFamily::INET6 } else { AddressFamily::INET };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let made = socket_with(family, kind, flags, None)?;
    if v6 {
        sockopt::set_ipv6_v6only(&made, true)?;
    }
    Ok(made)
}

/// As `net.core.somaxconn` is by itself.
const BACKLOG: i32 = 4096;
