//! Settings of a tunnel, and errors of opening it.

use std::fmt;
use std::io;
use std::net::SocketAddr;

/// Settings of a tunnel.
#[derive(Debug, Clone)]
pub struct TunnelSettings {
    /// The run, in every datagram.
    pub run: u64,
    /// Member number of this machine.
    pub own: u16,
    /// Addresses of the machines by member number; `None` for this one, and for numbers that
    /// no member has. A peer's datagrams must come from exactly its address, so on a machine with
    /// several the socket is bound to the one that peers know.
    pub peers: Vec<Option<SocketAddr>>,
    /// Whether datagrams are sealed.
    pub security: Security,
}

/// Whether datagrams are sealed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Security {
    /// Authenticated and encrypted under a key of this run that all members share.
    ///
    /// A key is for one run, and for one opening by each member: the replay window is lost when a
    /// tunnel is closed.
    Sealed([u8; 32]),
    /// In the clear, for a trusted network: forged source addresses suffice to inject frames.
    Plain,
}

impl fmt::Debug for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Security::Sealed(_) => "Sealed(..)",
            Security::Plain => "Plain",
        })
    }
}

/// Why a tunnel cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The socket cannot be used.
    #[error("cannot prepare the UDP socket of the tunnel: {0}")]
    Socket(#[source] io::Error),
    /// A socket for IPv4 does not reach IPv6.
    #[error(
        "member {member} has the IPv6 address {address}, but the tunnel's socket is bound to the IPv4 address {local}"
    )]
    OtherFamily {
        /// Number of the peer.
        member: u16,
        /// Its address.
        address: SocketAddr,
        /// The socket's.
        local: SocketAddr,
    },
    /// Members have 16-bit numbers.
    #[error("a run has at most 65536 members, not {0}")]
    TooMany(usize),
    /// Two members with one address cannot be distinguished.
    #[error("members {0} and {1} have the same address, {2}")]
    SameAddress(u16, u16, SocketAddr),
    /// The system has no entropy to give.
    #[error("cannot open the tunnel: the system gives no random numbers")]
    NoEntropy,
}
