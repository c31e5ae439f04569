//! What a nanosecond of a request's time was spent on.

use crate::history::Side;

/// Where time went. The sides are those of the flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// The program was between its calls.
    Thinking(Side),
    /// The side's calls are not recorded: its program, its kernel, or a window.
    Unrecorded(Side),
    /// The side's stack: from a call to the wire, or from the wire to the waking of a call.
    Kernel(Side),
    /// Written and not sent, for none of the reasons that follow (small segments that wait for an
    /// acknowledgement, corked or paced sending, a full send buffer).
    SendBuffer(Side),
    /// As much was in flight as the congestion window allows.
    Congestion(Side),
    /// As much was in flight as the receiver's window allows.
    Window(Side),
    /// Waiting for an acknowledgement; the state of TCP, which would say for what, is not recorded.
    Acknowledgement(Side),
    /// In the queue of the lane, or the lane's queue held earlier bytes of the flow and with them
    /// those that were to follow.
    Queue(u32),
    /// Being sent on the lane, these bytes or earlier ones of the flow.
    Transmission(u32),
    /// The delay of the lane.
    Propagation(u32),
    /// From a packet that was dropped to the copy that was sent in its place.
    Recovery(Option<u32>),
    /// Arrived, and not read yet.
    Unread(Side),
    /// Between the sides, where packets are not recorded.
    Network,
}

impl Part {
    /// The name in tables and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Part::Thinking(Side::Client) => "client_thinking",
            Part::Thinking(Side::Server) => "server_thinking",
            Part::Unrecorded(_) => "not_recorded",
            Part::Kernel(_) => "kernel",
            Part::SendBuffer(_) => "send_buffer",
            Part::Congestion(_) => "cwnd",
            Part::Window(_) => "receive_window",
            Part::Acknowledgement(_) => "acknowledgement",
            Part::Queue(_) => "queue",
            Part::Transmission(_) => "transmission",
            Part::Propagation(_) => "propagation",
            Part::Recovery(_) => "recovery",
            Part::Unread(_) => "unread",
            Part::Network => "network",
        }
    }

    /// What it means, in one line.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Part::Thinking(_) => "the program was between its calls",
            Part::Unrecorded(_) => "program, kernel or a window: calls are not recorded",
            Part::Kernel(_) => "between a call and the wire",
            Part::SendBuffer(_) => "written, not yet sent",
            Part::Congestion(_) => "held by the congestion window",
            Part::Window(_) => "held by the receiver's window",
            Part::Acknowledgement(_) => {
                "held until an acknowledgement: TCP's state is not recorded"
            }
            Part::Queue(_) => "in the queue of the link",
            Part::Transmission(_) => "being sent at the link's rate",
            Part::Propagation(_) => "the link's latency",
            Part::Recovery(_) => "a packet was lost, and sent again",
            Part::Unread(_) => "arrived, and not read yet by the program",
            Part::Network => "between the programs: packets are not recorded",
        }
    }

    /// The side that it is of.
    #[must_use]
    pub const fn side(self) -> Option<Side> {
        match self {
            Part::Thinking(side)
            | Part::Unrecorded(side)
            | Part::Kernel(side)
            | Part::SendBuffer(side)
            | Part::Congestion(side)
            | Part::Window(side)
            | Part::Acknowledgement(side)
            | Part::Unread(side) => Some(side),
            _ => None,
        }
    }

    /// The lane that it is of.
    #[must_use]
    pub const fn lane(self) -> Option<u32> {
        match self {
            Part::Queue(lane) | Part::Transmission(lane) | Part::Propagation(lane) => Some(lane),
            Part::Recovery(lane) => lane,
            _ => None,
        }
    }
}
