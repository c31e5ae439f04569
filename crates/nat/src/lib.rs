//! The room `nat`: network address translation of IPv4, and stateful firewalls, as state machines.
//!
//! **Promises:** given packets' endpoints and times, it says what becomes of them: the same calls
//! in the same order give the same answers, to the nanosecond, each random choice a function of the
//! seed and of how many were made before. Behaviour is that of RFC 4787 (UDP), RFC 5382 (TCP) and
//! RFC 5508 (ICMP); `tests/golden` goes through their requirements one by one.
//!
//! **Refuses:** bytes (`windtunnel-wire` reads and writes them), clocks, entropy; to give one
//! external endpoint to two internal ones; to keep more state than its bounds.
//!
//! *Theory of operation.* A *mapping* ties an internal endpoint to an external one, a *session* a
//! mapping to a remote endpoint. Nearly every packet is of a session that is known, which one
//! look-up finds in either direction; only what is not asks the mapping and the filter. Each session
//! has a time-out of its own, and a mapping lives as long as one of its sessions.
//!
//! | module | what it knows |
//! | --- | --- |
//! | `nat` | [`NetworkAddressTranslator`]: mappings, sessions, filters |
//! | `ports` | which external port a new mapping gets |
//! | `firewall` | [`StatefulFirewall`]: rules, and flows that have passed |
//! | `tcp` | how far a connection has got, and so its time-out |
//! | `table`, `hash`, `expiry` | entries by key, and when their time is over |
//! | `endpoint` | [`Ipv4Endpoint`], [`FlowEndpoints`] |
//!
//! ```
//! use core::net::Ipv4Addr;
//! use windtunnel_model::plan::{NatFilteringBehaviour, IpTransport, NatMappingBehaviour, NatBehaviour as Settings};
//! use windtunnel_model::random::RandomStream;
//! use windtunnel_model::Time;
//! use windtunnel_nat::{Ipv4Endpoint, FlowEndpoints, NetworkAddressTranslator, TranslationRefusal};
//!
//! let settings =
//!     Settings::new(NatMappingBehaviour::EndpointIndependent, NatFilteringBehaviour::AddressAndPortDependent);
//! let external = Ipv4Addr::new(198, 51, 100, 1);
//! let mut nat = NetworkAddressTranslator::new(&settings, &[external], RandomStream::named(1, &["nat", "home"]));
//! let endpoint = |a: [u8; 4], port| Ipv4Endpoint { address: a.into(), port };
//! let flow = FlowEndpoints {
//!     transport: IpTransport::Udp,
//!     local: endpoint([192, 168, 0, 2], 5000),
//!     remote: endpoint([203, 0, 113, 5], 3478),
//! };
//! let mapped = nat.outbound(Time::ZERO, &flow, external, 0)?;
//! assert_eq!(mapped.endpoint, Ipv4Endpoint { address: external, port: 5000 });
//! let answer = FlowEndpoints { local: endpoint([198, 51, 100, 1], 5000), ..flow };
//! assert_eq!(nat.inbound(Time::ZERO, &answer, 0)?.endpoint, flow.local);
//! let other = FlowEndpoints { remote: endpoint([203, 0, 113, 5], 3479), ..answer };
//! assert_eq!(nat.inbound(Time::ZERO, &other, 0), Err(TranslationRefusal::Filtered));
//! # Ok::<(), TranslationRefusal>(())
//! ```

#![cfg_attr(not(test), no_std)]

extern crate alloc;

mod endpoint;
mod expiry;
mod firewall;
mod hash;
mod nat;
mod ports;
mod table;
mod tcp;

pub use endpoint::{FlowEndpoints, Ipv4Endpoint};
pub use firewall::{FirewallPacket, PacketFiveTuple, StatefulFirewall};
pub use nat::{
    EndedMapping, MappingState, NatCounters, NatTranslation, NetworkAddressTranslator,
    TranslationRefusal,
};
