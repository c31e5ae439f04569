//! Why a packet is not taken.

use core::fmt;

/// Why a packet was not taken. It is then to be treated as if its service had no transparent
/// fail-over: sent to the replica of the plain redirection, and back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplicationRefusal {
    /// It is not TCP.
    NotTcp,
    /// Its lengths contradict each other, or its checksum is wrong. The receiver will drop it.
    Malformed,
    /// It is a fragment.
    Fragment,
    /// It belongs to no connection here: it began elsewhere, or was refused.
    Unknown,
    /// Its segments are signed (TCP-MD5, TCP-AO), which translation would break.
    Signed,
    /// The table is full.
    TableFull,
    /// There are fewer than two replicas.
    TooFew,
}

impl fmt::Display for ReplicationRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotTcp => "packet is not tcp",
            Self::Malformed => "packet contradicts its lengths or checksum",
            Self::Fragment => "packet is a fragment",
            Self::Unknown => "packet belongs to no connection that is replicated",
            Self::Signed => "connection is signed (tcp-md5 or tcp-ao), which is not translated",
            Self::TableFull => "table of replicated connections is full",
            Self::TooFew => "service has fewer than two replicas",
        })
    }
}

impl core::error::Error for ReplicationRefusal {}
