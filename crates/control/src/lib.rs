//! How a live run is controlled: versioned requests and replies over a Unix socket in the run
//! folder.
//!
//! Promises: one JSON object a line in both directions; field names are those of the run's files; a
//! message that cannot be read gets an answer that says why. Refuses: starting or stopping anything
//! itself; a connection from another user than the run's (or root).
//!
//! | module | what |
//! | --- | --- |
//! | [`message`] | [`ControlRequest`], [`ControlReply`] and their version |
//! | [`ask`] | which answer each request has |
//! | [`socket`] | where the socket is, also in folders with long names |
//! | [`server`] | connections as the host loop sees them: non-blocking |
//! | [`registry`] | which runs of this user are live, in whatever folder |
//! | [`reservations`] | what live runs of this user have reserved of the machine |
//! | [`part`] | between an agent and the part of a run on its machine |
//! | [`frame`] | messages on a stream that is not a Unix socket |
//! | [`valid`] | the rules for each message, which what reads messages applies |
//! | [`version`] | which windtunnel a process is |
//! | [`client`] | connections as a command sees them: blocking |
//!
//! ```
//! use windtunnel_control::{ControlReply, ControlRequest, VERSION};
//! let line = serde_json::to_string(&ControlRequest::Ps).unwrap();
//! assert_eq!(line, r#"{"request":"ps"}"#);
//! assert_eq!(VERSION, 3);
//! # let _ = ControlReply::Done;
//! ```

mod admission;
pub mod ask;
pub mod client;
pub mod frame;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
pub mod message;
pub mod nats;
pub mod part;
pub mod registry;
pub mod reservations;
pub mod server;
pub mod services;
pub mod socket;
pub mod valid;
pub mod version;

pub use ask::{CommandProgress, ControlRequestHandler, RequestAnswer, TypedRequest};
pub use client::{ControlClient, ControlClientError};
pub use message::{
    CaptureResult, ControlGreeting, ControlReply, ControlRequest, EventInjectionResult, LaneChoice,
    LaneProperties, LaneStatus, LinkList, NodeEgressStatus, NodeStatus, ProgramStatus, RecordOrder,
    RecordStatus, RecordedLayer, ReservationStatus, RunStatus, Snapshot, VERSION,
};
pub use nats::{NatMapping, NatStatus};
pub use server::{ConnectionInput, ControlConnection, ControlListener};
pub use services::{ReplicaStatusMessage, ServiceFlow, ServiceList, ServiceStatus, TableRow};
pub use version::SoftwareVersion;
