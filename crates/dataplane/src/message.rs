//! Messages between the packet loop and the main loop.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use windtunnel_engine::{FailOverNews, RecordSettings, ServiceRow};
use windtunnel_model::flow::FlowChange;
use windtunnel_model::plan::EventAction;
use windtunnel_model::{NodeId, RouterId, ServiceId, Span, Time};
use windtunnel_routing::Routes;

use super::remote::PeerSilencePeriod;
use super::schedule::ChangeOrigin;
use super::services::RedirectionsNow;
use super::tap::CaptureTap;
use crate::receive_queue::ReceiveQueue;

/// From the packet loop to the main loop.
#[derive(Debug, Clone)]
pub enum PacketLoopEvent {
    /// A scheduled or ordered change took effect.
    Applied {
        cause: ChangeOrigin,
        /// When it was to happen.
        intended: Time,
        /// When it did, in the time of the engine: packets before were treated as before.
        at: Time,
    },
    /// The loop has fallen behind, so far.
    Overloaded {
        at: Time,
        /// How late it was with its oldest work.
        behind: Span,
    },
    /// The loop has caught up.
    CaughtUp {
        at: Time,
        /// How long it was behind.
        lasted: Span,
    },
    /// The engine uses other routes.
    Routes {
        /// The new ones.
        routes: Arc<Routes>,
        at: Time,
        /// Whether it found them by itself, after lanes changed.
        by_itself: bool,
    },
    /// A router redirects new flows elsewhere than before.
    Redirected { at: Time, row: ServiceRow, router: RouterId, replica: NodeId },
    /// A connection of a service with `fail-over: transparent` lost a replica, or went on.
    FailOver { at: Time, news: FailOverNews },
    /// Nothing has been received yet from some other machines.
    Unreached { members: Vec<u16> },
    /// Something has been received from every other machine.
    Reached,
    /// Flows here began, changed or ended.
    Flows { changes: Vec<FlowChange> },
    /// Another machine has become silent, or answers again.
    Silence(PeerSilencePeriod),
    /// Datagrams that the socket to other machines has refused since the last of these.
    Refused { datagrams: u64 },
    /// Nothing goes to other machines any more.
    Closed {
        /// Datagrams with packets that went to each, by its number.
        sent: Vec<(u16, u64)>,
    },
    /// The loop cannot go on.
    Failed(String),
}

/// What a change that is ordered while the run lives does.
#[derive(Debug)]
pub enum PacketLoopCommand {
    /// Start the run's clock: forget what happened before, start random streams and schedule from zero.
    Begin(Time),
    Change {
        id: u64,
        /// When; `None`: now.
        at: Option<Time>,
        action: Box<EventAction>,
    },
    /// Say when all earlier orders for now have been done.
    Confirm { done: Sender<()> },
    /// Say what redirectors have done, and what `one` service is doing.
    Services { one: Option<ServiceId>, done: Sender<RedirectionsNow> },
    /// Flows of another machine began, changed or ended.
    Flows { member: u16, changes: Vec<FlowChange> },
    /// How other machines' clocks stand.
    Clocks {
        /// Their numbers, and the nanoseconds by which they are ahead of this machine's.
        ahead_ns: Vec<(u16, i64)>,
    },
    /// Captures frames from now on, and says when it does.
    Capture { tap: Box<CaptureTap>, done: Sender<()> },
    /// Hands packets of a node over to its queue from now on.
    Receive(Box<ReceiveQueue>),
    /// Ends a capture, by its number.
    EndCapture(u64),
    /// Another machine is lost.
    Forget { member: u16 },
    /// Record these packets from now on, instead of what was recorded before (`None`: none), and
    /// say when no others are left any more.
    Record { settings: Option<Box<RecordSettings>>, done: Sender<()> },
    /// The run is over: what is late or lost from now on is not its own.
    End,
    /// Send nothing more to other machines.
    Close,
    /// Stop and hand in the results.
    Finish {
        /// What is still to come of other machines: how many datagrams with packets each has sent
        /// to this one.
        await_datagrams: Vec<(u16, u64)>,
    },
}
