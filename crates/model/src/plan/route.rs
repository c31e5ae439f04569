//! Routes that the file fixes.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::id::NetworkVertex;

/// A route that the file fixes instead of the shortest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FixedRoute {
    /// Vertices from a node to a node, each pair of neighbours joined by a link.
    pub path: Vec<NetworkVertex>,
}
