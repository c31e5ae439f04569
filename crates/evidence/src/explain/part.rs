//! What a nanosecond of a request's time was spent on.

use crate::history::EndpointRole;

/// Where time went. The sides are those of the flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LatencyComponent {
    /// The program was between its calls.
    Thinking(EndpointRole),
    /// The side's calls are not recorded: its program, its kernel, or a window.
    Unrecorded(EndpointRole),
    /// The side's stack: from a call to the wire, or from the wire to the waking of a call.
    Kernel(EndpointRole),
    /// Written and not sent, for none of the reasons that follow (small segments that wait for an
    /// acknowledgement, corked or paced sending, a full send buffer).
    SendBuffer(EndpointRole),
    /// As much was in flight as the congestion window allows.
    Congestion(EndpointRole),
    /// As much was in flight as the receiver's window allows.
    Window(EndpointRole),
    /// Waiting for an acknowledgement; the state of TCP, which would say for what, is not recorded.
    Acknowledgement(EndpointRole),
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
    Unread(EndpointRole),
    /// Between the sides, where packets are not recorded.
    Network,
}

impl LatencyComponent {
    /// The name in tables and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            LatencyComponent::Thinking(EndpointRole::Client) => "client_thinking",
            LatencyComponent::Thinking(EndpointRole::Server) => "server_thinking",
            LatencyComponent::Unrecorded(_) => "not_recorded",
            LatencyComponent::Kernel(_) => "kernel",
            LatencyComponent::SendBuffer(_) => "send_buffer",
            LatencyComponent::Congestion(_) => "cwnd",
            LatencyComponent::Window(_) => "receive_window",
            LatencyComponent::Acknowledgement(_) => "acknowledgement",
            LatencyComponent::Queue(_) => "queue",
            LatencyComponent::Transmission(_) => "transmission",
            LatencyComponent::Propagation(_) => "propagation",
            LatencyComponent::Recovery(_) => "recovery",
            LatencyComponent::Unread(_) => "unread",
            LatencyComponent::Network => "network",
        }
    }

    /// What it means, in one line.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            LatencyComponent::Thinking(_) => "the program was between its calls",
            LatencyComponent::Unrecorded(_) => {
                "program, kernel or a window: calls are not recorded"
            }
            LatencyComponent::Kernel(_) => "between a call and the wire",
            LatencyComponent::SendBuffer(_) => "written, not yet sent",
            LatencyComponent::Congestion(_) => "held by the congestion window",
            LatencyComponent::Window(_) => "held by the receiver's window",
            LatencyComponent::Acknowledgement(_) => {
                "held until an acknowledgement: TCP's state is not recorded"
            }
            LatencyComponent::Queue(_) => "in the queue of the link",
            LatencyComponent::Transmission(_) => "being sent at the link's rate",
            LatencyComponent::Propagation(_) => "the link's latency",
            LatencyComponent::Recovery(_) => "a packet was lost, and sent again",
            LatencyComponent::Unread(_) => "arrived, and not read yet by the program",
            LatencyComponent::Network => "between the programs: packets are not recorded",
        }
    }

    /// The side that it is of.
    #[must_use]
    pub const fn side(self) -> Option<EndpointRole> {
        match self {
            LatencyComponent::Thinking(side)
            | LatencyComponent::Unrecorded(side)
            | LatencyComponent::Kernel(side)
            | LatencyComponent::SendBuffer(side)
            | LatencyComponent::Congestion(side)
            | LatencyComponent::Window(side)
            | LatencyComponent::Acknowledgement(side)
            | LatencyComponent::Unread(side) => Some(side),
            _ => None,
        }
    }

    /// The lane that it is of.
    #[must_use]
    pub const fn lane(self) -> Option<u32> {
        match self {
            LatencyComponent::Queue(lane)
            | LatencyComponent::Transmission(lane)
            | LatencyComponent::Propagation(lane) => Some(lane),
            LatencyComponent::Recovery(lane) => lane,
            _ => None,
        }
    }
}
