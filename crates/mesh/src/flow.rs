//! Announcements of flows, and their receivers.

use alloc::sync::Arc;
use alloc::vec::Vec;

use windtunnel_model::flow::{FlowChange, FlowKey};

use crate::id::mix;

pub(crate) mod delivery;
pub(crate) mod meetings;
pub(crate) mod own;
pub(crate) mod peer;
pub(crate) mod queue;
pub(crate) mod reception;

/// The members of a run to which a flow is announced: those where a share can depend on it.
///
/// Cheap to clone. Made once for each pair of nodes, from the plan, by [`crate::Mesh::audience`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowAudience {
    /// Positions in the run's sorted list of members, in order.
    members: Arc<[u32]>,
    /// Those of them that receive it at once; the others within [`crate::config::MeshIntervals::later`].
    at_once: Arc<[u32]>,
}

impl FlowAudience {
    /// All of them receive it at once.
    pub(crate) fn new(members: Vec<u32>) -> Self {
        let members: Arc<[u32]> = sorted(members).into();
        FlowAudience { at_once: Arc::clone(&members), members }
    }

    /// Those that receive it at once, and others that do later.
    pub(crate) fn with_later(at_once: Vec<u32>, later: &[u32]) -> Self {
        let members = sorted([&at_once[..], later].concat());
        FlowAudience { members: members.into(), at_once: sorted(at_once).into() }
    }

    pub(crate) fn at_once(&self) -> impl Iterator<Item = u32> + '_ {
        self.at_once.iter().copied()
    }

    /// How many members receive the flow.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether no member receives the flow.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub(crate) fn contains(&self, member: u32) -> bool {
        self.members.binary_search(&member).is_ok()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.members.iter().copied()
    }

    /// Those of this audience that are not in `other`.
    pub(crate) fn without(&self, other: &FlowAudience) -> FlowAudience {
        FlowAudience::new(self.iter().filter(|member| !other.contains(*member)).collect())
    }
}

fn sorted(mut members: Vec<u32>) -> Vec<u32> {
    members.sort_unstable();
    members.dedup();
    members
}

/// One entry of a table as announced: a flow's state since a version of its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FlowTableEntry {
    pub(crate) version: u64,
    pub(crate) change: FlowChange,
}

/// A set in one number, and how many they are: equal sets are equal here, and different ones are
/// not, but for one time in 2⁶⁴.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Fingerprint {
    pub(crate) count: u64,
    pub(crate) sum: u64,
}

impl Fingerprint {
    /// Adds an item's digest.
    pub(crate) fn add(&mut self, digest: u64) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(digest);
    }

    /// Removes the digest of an item that was added.
    pub(crate) fn remove(&mut self, digest: u64) {
        self.count -= 1;
        self.sum = self.sum.wrapping_sub(digest);
    }
}

/// The digest of a flow at a version of its sender.
pub(crate) fn digest(key: &FlowKey, version: u64) -> u64 {
    let ends = u64::from(key.source.0) << 32 | u64::from(key.destination.0);
    mix(mix(mix(ends) ^ u64::from(key.number)) ^ version)
}
