//! What changed in the network, told to whoever writes the log.

use std::collections::VecDeque;

use windtunnel_model::{Lane, LinkProfile, Span, Time};

/// Something that happened to the network (never to a single packet).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub at: Time,
    /// What.
    pub kind: EventKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// A lane has new properties.
    LanePatched {
        /// The lane.
        lane: Lane,
        /// All of its properties as they are now.
        profile: Box<LinkProfile>,
    },
    /// A lane was taken down or up.
    LaneState {
        /// The lane.
        lane: Lane,
        /// Up.
        up: bool,
    },
    /// The network was parted.
    Partitioned {
        /// How many lanes that cuts; what is cut inside of LANs is not among them.
        lanes: u32,
    },
    /// The partition ended.
    Healed,
    /// Routes were fixed or set free; [`Engine::routes`](crate::Engine::routes) are the new ones.
    RoutesFixed,
    /// The shortest routes were computed again.
    Rerouted {
        /// Whether the engine did so by itself, because the plan asks for it after a lane changed.
        by_itself: bool,
    },
    /// Packets are dropped for want of memory; told once until an eighth of it is free again.
    MemoryExhausted {
        /// The first lane that dropped one.
        lane: Lane,
    },
}

/// A queue that holds so many and no more.
#[derive(Debug)]
pub(crate) struct Bounded<T> {
    queue: VecDeque<T>,
    most: usize,
    lost: u64,
}

impl<T> Bounded<T> {
    pub(crate) fn new(most: usize) -> Self {
        Bounded { queue: VecDeque::new(), most, lost: 0 }
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

/// A packet was taken off a lane that ends at a router, so late.
pub(crate) type Handoff = (Lane, Span);
