//! Nodes and their interfaces.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use super::internet::{InternetAccess, PortPublication};
use super::program::{Program, ProgramUser};
use super::root::NodeFilesystem;
use crate::demand::Demand;
use crate::id::{LinkDirection, LinkId, PortId, ReservationId};
use crate::profile::QueueLimit;
use crate::quantity::Packets;

/// A node: one set of namespaces with interfaces and programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Node {
    /// Unique name, valid as a host name.
    pub name: String,
    /// The name in the file: differs from `name` where `count` made several (`client` for
    /// `client-2`).
    pub group: String,
    /// Other names by which nodes find its addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Whether its kernel forwards packets between its interfaces, so that routes may pass through
    /// it.
    pub forward: bool,
    /// The user that its programs run as.
    pub user: ProgramUser,
    /// Whether its programs have temporary folders and homes of their own, all empty at the
    /// beginning.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub private: bool,
    /// Whether its programs may write in its part of the run folder.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub results: bool,
    /// A file system of its own; `None`: that of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<NodeFilesystem>,
    /// `net.*` settings of its network namespace.
    pub sysctl: BTreeMap<String, String>,
    /// The name or a label of the machine that it must be on, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<String>,
    /// What it has of its machine.
    #[serde(default, skip_serializing_if = "Demand::is_unknown")]
    pub demand: Demand,
    /// The reservation that it is part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<ReservationId>,
    /// How much may wait that has come to it and was not delivered yet, in packets or bytes;
    /// `None`: [`Node::RECEIVE_QUEUE`] if its processor time is limited or reserved, else nothing waits, and
    /// the packet loop delivers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_queue: Option<QueueLimit>,
    /// Whether it stands for the machine's outside, and what is to be known of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub internet: Option<InternetAccess>,
    /// Ports of the machine that lead to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub publish: Vec<PortPublication>,
    /// In the order of the links in the file: `eth0`, `eth1` …
    pub interfaces: Vec<NodeInterface>,
    /// Its programs in the file's order.
    pub programs: Vec<Program>,
}

impl Node {
    /// Whether its programs are root of the node.
    #[must_use]
    pub fn programs_are_root(&self) -> bool {
        let image_says = || self.root.as_ref().is_some_and(NodeFilesystem::is_for_root);
        match self.user {
            ProgramUser::Root => true,
            ProgramUser::Invoker => false,
            ProgramUser::Image => image_says(),
        }
    }

    /// The most further names that it may have.
    pub const ALIASES_MAX: usize = 100;

    /// What may wait at a node whose processor time is limited, and whose file says nothing.
    pub const RECEIVE_QUEUE: QueueLimit = QueueLimit::Packets(Packets(1000));

    /// Processors in thousandths that are reserved for it: as it says, or what its programs say
    /// together.
    #[must_use]
    pub fn reserved_cpu_millis(&self) -> u64 {
        let of = |demand: &Demand| demand.cpu_reserved_millis.map(u64::from);
        let programs = self.programs.iter().filter_map(|program| of(&program.demand));
        of(&self.demand).unwrap_or_else(|| programs.sum())
    }

    /// Bytes of memory that are reserved for it, in the same way.
    #[must_use]
    pub fn reserved_memory(&self) -> u64 {
        let of = |demand: &Demand| demand.memory_reserved.map(|memory| memory.0);
        let programs = self.programs.iter().filter_map(|program| of(&program.demand));
        of(&self.demand).unwrap_or_else(|| programs.fold(0, u64::saturating_add))
    }

    /// How much may wait; `None`: the packet loop delivers.
    #[must_use]
    pub fn effective_receive_queue(&self) -> Option<QueueLimit> {
        let limited = self.demand.cpu_millis.is_some() || self.demand.is_weighted();
        self.receive_queue.or_else(|| limited.then_some(Node::RECEIVE_QUEUE))
    }
}

/// One end of a link at a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeInterface {
    /// Where its packets enter and leave the engine.
    pub port: PortId,
    /// `eth0`, `eth1` …
    pub name: String,
    /// The link it is on.
    pub link: LinkId,
    /// The direction in which its packets leave.
    pub outward: LinkDirection,
    /// IPv4 address, unless IPv4 is off.
    pub v4: Option<Ipv4Addr>,
    /// IPv6 address, unless IPv6 is off.
    pub v6: Option<Ipv6Addr>,
    /// The device's MTU: the larger of the link's two directions.
    pub mtu: u32,
}

impl NodeInterface {
    /// Its Ethernet address: locally administered, unique in the plan, the same in every run.
    #[must_use]
    pub fn mac(&self) -> [u8; 6] {
        let [_, b, c, d] = self.port.0.to_be_bytes();
        [0x02, 0x77, 0x74, b, c, d]
    }

    /// The addresses that it has.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> + use<> {
        self.v4.map(IpAddr::V4).into_iter().chain(self.v6.map(IpAddr::V6))
    }
}
