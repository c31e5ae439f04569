//! The room `mesh`: agreement between machines without a leader.
//!
//! **Promises:** given messages and time, it knows which agents are alive and notices within a
//! second which is lost; that all members of a run have the same plan; which flows each of them
//! has; and how the clocks stand. Any agent may end at any time and the rest goes on: no agent is
//! special. After any loss, delay, duplication or reordering, once no changes are made, all
//! agree. Every message is bounded by the MTU, and nothing is sent for each packet of a flow. The
//! same calls in the same order give the same bytes.
//!
//! **Refuses:** sockets, clocks, threads, entropy; to authenticate (the carrier of the datagrams
//! does that); to panic on bytes of any kind.
//!
//! | module | content |
//! | --- | --- |
//! | `mesh` | [`Mesh`], the contract; messages to and from the parts below |
//! | `roster` | the agents that are alive, and those that were |
//! | `swim` | membership, by foca |
//! | `run` | members of a run, their parts, members lost to it |
//! | `flow` | flows that this agent announces, and those that others announce; who has received what |
//! | `clock` | [`AgentClockEstimate`]: offset, skew and round trip, with bounds |
//! | `wire` | the bytes of messages |
//! | `config`, `event`, `counters` | settings; outputs |
//!
//! The protocol, with its figures, is in `docs/internals/mesh.md`.
//!
//! ```
//! use windtunnel_mesh::{AgentId, Mesh, MeshConfiguration, MeshEvent};
//! use windtunnel_model::{Span, Time};
//!
//! let address = |last| ([10, 0, 0, last], 9000).into();
//! let mut agents = [1, 2].map(|n| {
//!     let config = MeshConfiguration::new(AgentId(n.into()), 1, address(n));
//!     Mesh::new(config, 42, Time::ZERO)
//! });
//! agents[0].join(Time::ZERO, address(2));
//! // A network that takes 100 µs for each datagram, until both know each other.
//! let mut now = Time::ZERO;
//! while agents.iter().any(|agent| agent.agents().count() == 0) {
//!     now += Span::from_micros(100);
//!     let sent: Vec<_> = agents
//!         .iter_mut()
//!         .map(|agent| std::iter::from_fn(|| agent.poll_transmit()).collect::<Vec<_>>())
//!         .collect();
//!     for (from, datagrams) in sent.into_iter().enumerate() {
//!         for datagram in datagrams {
//!             agents[1 - from].handle_datagram(now, address([1, 2][from]), &datagram.payload);
//!         }
//!     }
//!     agents.iter_mut().for_each(|agent| agent.handle_timeout(now));
//! }
//! let Some(MeshEvent::AgentUp(other)) = agents[0].poll_event() else { panic!("no event") };
//! assert_eq!(other.agent, AgentId(2));
//! assert!(now < Time::ZERO + Span::from_millis(1));
//! ```

#![cfg_attr(not(test), no_std)]

extern crate alloc;

mod clock;
pub mod config;
mod counters;
mod event;
mod flow;
mod fuzz;
mod id;
mod mesh;
mod rng;
mod roster;
mod run;
mod swim;
mod timers;
mod wire;

pub use clock::{AgentClockEstimate, ClockOffsetConstraint, WallClockReading};
pub use config::MeshConfiguration;
pub use counters::{DatagramTotals, MeshTrafficCounters};
pub use event::{AgentDepartureReason, LossCause, MeshEvent, OutgoingDatagram, RunViewMismatch};
pub use flow::FlowAudience;
pub use fuzz::fuzz_one;
pub use id::{AgentId, Identity, PlanHash, RunId};
pub use mesh::{MemberView, Mesh};
pub use run::{RunCommandError, RunPeerState};
