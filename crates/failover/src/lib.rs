//! The room `failover`: TCP connections that survive their server's death (HydraNet-FT).
//!
//! A redirector sees every packet of a connection. It gives each packet of the client to all
//! replicas, which so are in the same state, and the client the output of one, the *primary*.
//!
//! **Promises:** while one replica lives, the client's connection goes on, without a reset and
//! without a lost or repeated byte; client and servers are not modified. The client is acknowledged
//! only what all live replicas have, and is given only bytes that all live replicas have sent. A
//! replica that sends other bytes, or does nothing, is expelled, and that is an event.
//! The same calls in the same order give the same packets.
//!
//! **Refuses:** clocks, threads, entropy; to keep a copy of what either side has sent (both keep
//! that themselves until it is acknowledged); connections that it has not seen begin; signed
//! segments ([`ReplicationRefusal`]).
//!
//! | module | content |
//! | --- | --- |
//! | `connections` | [`ConnectionReplicator`], the contract; the table and its timers |
//! | `connection` | one connection: handshake, both directions, time; its parts are below it |
//! | `replica`, `health` | one replica's side of it; whether it keeps up |
//! | `output` | what a replica has sent and the client has not got yet |
//! | `stamps` | one timestamp clock for the client in front of several |
//! | `segment`, `options`, `draft` | packets that come, and that leave |
//! | `icmp` | errors about packets to the client, translated like these |
//! | `context`, `refusal` | what each step is given; why a packet is not taken |
//! | `offset`, `ranges` | sequence numbers that do not wrap, and sets of them |
//! | `config`, `event`, `counters` | settings; outputs |
//! | `fuzz` | the entry for fuzzers, with the feature `fuzz` |
//!
//! The protocol, with its invariants and limits, is in `docs/internals/fail-over.md`.
//!
//! ```
//! use windtunnel_failover::{ReplicationConfig, ConnectionReplicator, TransmitDestination, ReplicaId};
//! use windtunnel_model::Time;
//! use windtunnel_wire::{build, tcp, vnet};
//!
//! let mut connections = ConnectionReplicator::new(ReplicationConfig::default());
//! let (client, service) = ("10.0.0.7:40000".parse()?, "10.1.0.80:80".parse()?);
//! let syn = build::tcp(client, service, 1, tcp::SYN, b"");
//! let order = [ReplicaId(1), ReplicaId(2)];
//! connections.handle_client(Time::ZERO, &vnet::VirtioNetHeader::default(), &syn, &order)?;
//! // Both replicas are sent the SYN.
//! let sent: Vec<_> = std::iter::from_fn(|| connections.poll_transmit()).collect();
//! let to: Vec<_> = sent.iter().map(|transmit| transmit.to).collect();
//! assert_eq!(to, order.map(TransmitDestination::Replica));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(not(test), no_std)]

extern crate alloc;

mod config;
mod connection;
mod connections;
mod context;
mod counters;
mod draft;
mod event;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
mod health;
mod icmp;
mod offset;
mod options;
mod output;
mod ranges;
mod refusal;
mod replica;
mod segment;
mod sink;
mod stamps;

pub use config::{
    FailureDetectorConfig, LINGER, LastReplicaLossPolicy, OPENING_MAX, REPLICAS_MAX, RESET_LINGER,
    ReplicationConfig, ReplicationLimits, WAITING_MAX,
};
pub use connections::{ConnectionReplicator, ConnectionSnapshot};
pub use counters::{ReplicationCounters, ReplicationRefusalCounters};
pub use event::{
    ConnectionTermination, RedirectorNumber, ReplicaExpulsionCause, ReplicaId,
    ReplicatedConnectionKey, ReplicationEvent, ReplicationEventKind, TransmitDestination,
    TransmitRequest,
};
#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::fuzz_one;
pub use output::GAPS_MAX;
pub use refusal::ReplicationRefusal;
