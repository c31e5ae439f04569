//! The room `wire`: views over packet bytes.
//!
//! It reads and changes Ethernet frames as a packet socket with `PACKET_VNET_HDR` shows them: up to
//! 64 KiB long, perhaps standing for a train of segments (GSO), perhaps with a partial checksum.
//!
//! **Promises:** it never allocates, never panics on any bytes, keeps no state and has no
//! dependency. Every length is checked once, when a view is made.
//!
//! **Refuses:** to repair what it is given. A frame whose lengths contradict each other is
//! [`packet::PacketParseError`]; what cannot be done with a frame is answered with `false` or `None` and
//! leaves the frame as it was. VLAN tags, jumbograms and tunnelled GSO are not looked into.
//!
//! | module | what it knows |
//! | --- | --- |
//! | [`vnet`] | the virtio-net header before each frame |
//! | [`ethernet`], [`ipv4`], [`ipv6`], [`tcp`], [`udp`], [`icmp`] | the fields of each header |
//! | [`arp`] | address resolution (ARP); [`icmp::NeighbourMessage`] for IPv6 |
//! | [`packet`], [`flow`] | what a router asks of a frame; its five-tuple and hash |
//! | [`hop`], [`ecn`] | TTL and congestion marks, changed in place |
//! | [`checksum`] | sums, updates, pseudo-headers, whole frames |
//! | [`digest`] | a number by which a datagram is known again |
//! | [`segment`] | trains: how many packets, how long, cutting them |
//! | [`fragment`] | IPv4 fragmentation |
//! | [`ipip`] | a packet in another IP header |
//! | [`mss`], [`reset`] | what is changed and said of TCP connections on their way |
//! | [`translate`] | other addresses and ports, also in what ICMP errors quote |
//! | [`corrupt`] | a bit error that the receiver notices |
//! | [`tunnel`] | datagrams that carry frames between the machines of a run |
//!
//! ```
//! use windtunnel_wire::{hop, packet::ParsedPacket};
//!
//! let mut frame = [
//!     2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00, // Ethernet, IPv4
//!     0x45, 0, 0, 20, 0, 0, 0, 0, 64, 59, 0x66, 0xac, 10, 0, 0, 1, 10, 0, 0, 2,
//! ];
//! let info = ParsedPacket::parse(&frame)?.info;
//! assert_eq!((info.ttl, info.ip_len), (64, 20));
//! assert_eq!(hop::decrement_ttl(&mut frame), Ok(63));
//! # Ok::<(), windtunnel_wire::packet::PacketParseError>(())
//! ```

#![cfg_attr(not(any(test, feature = "build")), no_std)]

pub mod arp;
#[cfg(any(test, feature = "build"))]
pub mod build;
mod bytes;
pub mod checksum;
pub mod corrupt;
pub mod digest;
pub mod ecn;
pub mod ethernet;
pub mod flow;
pub mod fragment;
#[cfg(any(test, feature = "build"))]
mod fuzz;
pub mod hop;
pub mod icmp;
pub mod ipip;
pub mod ipv4;
pub mod ipv6;
pub mod mss;
pub mod packet;
mod parse_error;
pub mod reset;
pub mod segment;
pub mod tcp;
#[cfg(test)]
mod tests;
pub mod translate;
pub mod tunnel;
pub mod udp;
pub mod vnet;

#[cfg(any(test, feature = "build"))]
pub use fuzz::fuzz_one;
