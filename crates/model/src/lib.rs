//! The nouns that every room of Windtunnel shares.
//!
//! Promises: values only, the same on every machine; integers in all state; text with a unit in
//! every file, so that what is printed parses back to the same value.
//! Refuses: clocks, files, entropy, floating point in stored state.
//!
//! | module | nouns |
//! | --- | --- |
//! | [`time`] | [`Time`], [`Span`] in nanoseconds |
//! | [`rate`] | [`Rate`] in bit/s, with exact serialisation times |
//! | [`quantity`] | the text forms (`10ms`, `1.5gbit`, `256KB`, `0.1%`, `100p`) and their errors |
//! | [`probability`] | [`Probability`] in parts per billion |
//! | [`id`] | [`NodeId`], [`LinkId`], [`Lane`] (one direction of a link) … |
//! | [`random`] | [`random::RandomStream`]: draws as a pure function of (seed, link, direction, element, index) |
//! | [`profile`] | [`LinkProfile`]: what one direction of a link does, and [`LinkPatch`], a change of it |
//! | [`trace`] | [`trace::LinkTrace`]: what a link does over time, recorded |
//! | [`expect`] | what must hold at the end of a run |
//! | [`flow`] | [`flow::FlowKey`], [`flow::FlowTerms`], [`flow::FlowChange`]: flows as machines announce them |
//! | [`realm`] | [`realm::AddressRealms`]: where an IPv4 address means the same, with NATs between |
//! | [`record`] | [`record::EventRecord`]: 32 bytes of evidence, and the memory in which sources leave them |
//! | [`demand`] | [`demand::Demand`]: limits of a node and of its programs, and what placement counts |
//! | [`resource`] | [`Resource`]: what can be limited, and [`ResourceAmounts`]: so much of each |
//! | [`held`] | [`HeldLimit`]: a limit, what holds it, and what came of it |
//! | [`placement`] | what a plan says about the machines that it runs on |
//! | [`plan`] | [`Plan`]: the resolved experiment |
//! | [`state`] | [`state::LaneState`], [`state::ReplicaState`]: what changes make of a network |
//! | [`name`] | what things may be called |
//! | [`word`] | [`word::StateWord`]: states in files and messages |
//! | [`valid`] | [`Plan::validate`]: whether a plan that another process sent is one |
//!
//! ```
//! use windtunnel_model::{Rate, Span};
//! let rate: Rate = "10mbit".parse()?;
//! // 1538 wire bytes (a full Ethernet frame with its gap) at 10 Mbit/s.
//! assert_eq!(rate.time_for(1538), Span::from_nanos(1_230_400));
//! assert_eq!("1.5ms".parse::<Span>()?.to_string(), "1.5ms");
//! # Ok::<(), windtunnel_model::QuantityError>(())
//! ```

#![cfg_attr(not(test), no_std)]

extern crate alloc;

pub mod demand;
mod discipline;
mod drop_reason;
pub mod expect;
pub mod flow;
pub mod held;
pub mod id;
pub mod lan;
mod message;
pub mod name;
pub mod placement;
pub mod plan;
pub mod probability;
pub mod profile;
pub mod quantity;
pub mod random;
pub mod rate;
pub mod realm;
pub mod record;
pub mod resource;
pub mod state;
pub mod time;
pub mod trace;
pub mod valid;
mod wf2q;
pub mod word;

pub use drop_reason::DropReason;
pub use held::{HeldLimit, LimitMechanism, ResourceUsage};
pub use id::{
    LanId, Lane, LinkDirection, LinkId, NetworkVertex, NodeId, PortId, ReservationId, RouterId,
    ServiceId,
};
pub use lan::{Lan, Subnet};
pub use message::PlanValidationError;
pub use plan::Plan;
pub use probability::Probability;
pub use profile::{LinkPatch, LinkProfile};
pub use quantity::{Bytes, Packets, QuantityError};
pub use rate::Rate;
pub use resource::{Resource, ResourceAmounts};
pub use time::{Span, Time};
pub use trace::{LinkTrace, TraceMode, TraceUse, Traces};
