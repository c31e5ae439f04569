//! What the engine did by itself, for the log.

use alloc::collections::VecDeque;

use serde::{Deserialize, Serialize};
use windtunnel_model::{NodeId, RouterId, Time};

use crate::services::FailOverNews;

/// Something that happened to the network (never to a single packet).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetworkEvent {
    /// When.
    pub at: Time,
    /// What.
    pub kind: NetworkEventKind,
}

/// What happened. Other changes take effect when they are applied, so the caller knows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NetworkEventKind {
    /// Routes were fixed or set free; [`Engine::routes`](crate::Engine::routes) are the new ones.
    RoutesFixed,
    /// The shortest routes were computed again.
    Rerouted {
        /// Whether the engine did so by itself, because the plan asks for it after a lane changed.
        by_itself: bool,
    },
    /// A router redirects new flows to another replica than before; noticed with the first of them.
    Redirected {
        /// Which row: a position in [`ServiceOverview::rows`](crate::ServiceOverview::rows).
        row: u16,
        /// The router.
        router: RouterId,
        /// The replica's node.
        replica: NodeId,
    },
    /// A connection of a service with `fail-over: transparent` lost a replica, or went on.
    FailOver(FailOverNews),
}

/// Reports for which there was no room until they were polled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostReports {
    /// Of [`Engine::poll_event`](crate::Engine::poll_event).
    pub events: u64,
    /// Of [`Engine::poll_handoff`](crate::Engine::poll_handoff).
    pub handoffs: u64,
}

impl LostReports {
    /// Those of another part of the network, too.
    pub fn add(&mut self, other: LostReports) {
        self.events = self.events.saturating_add(other.events);
        self.handoffs = self.handoffs.saturating_add(other.handoffs);
    }
}

/// A queue that holds so many and no more.
#[derive(Debug)]
pub(crate) struct BoundedQueue<T> {
    queue: VecDeque<T>,
    most: usize,
    lost: u64,
}

impl<T> BoundedQueue<T> {
    pub(crate) fn new(most: usize) -> Self {
        BoundedQueue { queue: VecDeque::new(), most, lost: 0 }
    }

    /// Adds one, or counts it where there is no room.
    pub(crate) fn push(&mut self, item: T) {
        if self.queue.len() < self.most {
            self.queue.push_back(item);
        } else {
            self.lost += 1;
        }
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        self.queue.pop_front()
    }

    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }
}

/// Unpolled events that are kept.
pub(crate) const EVENTS_MAX: usize = 4096;
/// Unpolled handoffs that are kept.
pub(crate) const HANDOFFS_MAX: usize = 65_536;
