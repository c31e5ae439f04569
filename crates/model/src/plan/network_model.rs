//! How the network is emulated.

use serde::{Deserialize, Serialize};

/// How the network between the nodes is emulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkModel {
    /// Packet by packet through the queue of every link.
    #[default]
    Hops,
    /// At the source of each path: its delay and loss as they are, and a share of its links'
    /// bandwidth that is divided between flows (`SplayNet`: Schiavoni, Rivière, Felber;
    /// Middleware 2013, section 3.3).
    Paths(BandwidthSharing),
}

impl NetworkModel {
    pub(super) fn is_hops(&self) -> bool {
        *self == NetworkModel::Hops
    }
}

/// How flows divide the bandwidth of a link that they share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum BandwidthSharing {
    /// In inverse proportion to their round-trip times, as long-lived TCP connections do.
    #[default]
    RttAware,
    /// Equally.
    Equal,
}
