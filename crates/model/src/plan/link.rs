//! Links and their ends.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::id::NetworkVertex;
use crate::profile::LinkProfile;

/// A link: two directions with properties of their own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Unique name: as given, else `a--b` (`a--b-2` for a second one between the same ends). It
    /// names the link's random streams, so it does not depend on the other links.
    pub name: String,
    /// The first and the second vertex named in `between`.
    pub ends: [LinkEnd; 2],
    /// Properties up (first to second) and down.
    pub profiles: [LinkProfile; 2],
}

/// One end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkEnd {
    /// The node, router or LAN.
    pub vertex: NetworkVertex,
    /// Position among that vertex's interfaces; a LAN's attachments.
    pub interface: u32,
}
