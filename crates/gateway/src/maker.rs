//! The gateway process's end of the connection to its node's init, which makes sockets there.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use crate::message::{self, GatewaySocketRequest};

/// Makes sockets in the node's network namespace. A request takes some tens of microseconds.
#[derive(Debug)]
pub(crate) struct NodeSocketFactory(OwnedFd);

impl NodeSocketFactory {
    pub(crate) fn new(socket: OwnedFd) -> NodeSocketFactory {
        NodeSocketFactory(socket)
    }

    /// A socket that accepts connections to a port of any address of a family.
    pub(crate) fn listen(&self, v6: bool, port: u16) -> io::Result<OwnedFd> {
        self.ask(GatewaySocketRequest::Listen { v6, port })
    }

    /// A socket that connects to an address of the network.
    pub(crate) fn connect(&self, to: SocketAddr) -> io::Result<OwnedFd> {
        self.ask(GatewaySocketRequest::Connect(to))
    }

    /// A socket for datagrams to an address of the node.
    pub(crate) fn datagrams(&self, at: SocketAddr) -> io::Result<OwnedFd> {
        self.ask(GatewaySocketRequest::Datagrams(at))
    }

    fn ask(&self, ask: GatewaySocketRequest) -> io::Result<OwnedFd> {
        message::send(&self.0, &ask, &[])?;
        let gone = || io::Error::from_raw_os_error(rustix::io::Errno::PIPE.raw_os_error());
        let (answer, descriptors) =
            message::receive::<Result<(), i32>>(&self.0)?.ok_or_else(gone)?;
        answer.map_err(io::Error::from_raw_os_error)?;
        descriptors.into_iter().next().ok_or_else(gone)
    }
}
