//! The room `engine`: the emulated network.
//!
//! **Promises:** given packets and times, it says which packets leave where and when, exactly: to
//! the nanosecond, hop by hop through real queues, each random decision a function of the seed and
//! the packet's number on its link direction alone. The same calls in the same order give the same
//! bytes. A super-packet (GSO) travels as one object with the timing and the fate of its segments.
//!
//! **Refuses:** clocks, entropy, descriptors, threads, logs; to keep more packet bytes than it was
//! allowed; to lose a packet without counting a reason.
//!
//! Where trains of several flows meet, the order in which their segments interleave is kept to 100
//! µs only (the longest that a train is ever spread); within a flow it is exact.
//!
//! | module | what it knows |
//! | --- | --- |
//! | `engine` | [`Engine`], the contract |
//! | `engine::core` | what all models share: routers, services, middleboxes, changes, ICMP messages |
//! | `engine::model` | what a network model decides: hops or paths |
//! | `underlay` | all lanes, LANs and interfaces of routers: packets to the next hop, and out |
//! | `chain` | one lane: its elements in order, and the packets inside |
//! | `element` | cut, MTU, loss, duplicate, corrupt, queue, rate, delay, jitter, reorder |
//! | `network`, `router` | addresses, next hops, what a router does with a packet |
//! | `services` | redirectors: tables, replicas, which flow goes to which |
//! | `middlebox` | NATs and firewalls at routers |
//! | `tunnel`, `reassembly` | packets on their way to a replica |
//! | `lan`, `neighbours` | the segments of LANs; the addresses that routers know there |
//! | `paths` | the model of paths: queues at the sources, shares of links |
//! | `audience` | which members are notified of which flow |
//! | `part` | that model over several machines: which nodes are here |
//! | `records` | what is recorded of packets |
//! | `packet`, `buffer` | trains and their times; memory |
//! | `housekeeping` | what never enters a lane, or has numbers of its own there |
//! | `time_queue`, `timer` | waiting |
//! | `counters`, `event` | what there is to report |
//!
//! ```
//! use windtunnel_engine::{Engine, EngineLimits};
//! use windtunnel_model::plan::{NodeInterface, Link, LinkEnd, Node, Plan};
//! use windtunnel_model::{LinkDirection, LinkId, LinkProfile, NodeId, PortId, Span, Time, NetworkVertex};
//! use windtunnel_wire::vnet;
//!
//! let node = |id: u32, outward| Node {
//!     name: format!("n{id}"),
//!     group: format!("n{id}"),
//!     interfaces: vec![NodeInterface {
//!         port: PortId(id),
//!         name: "eth0".to_owned(),
//!         link: LinkId(0),
//!         outward,
//!         v4: None,
//!         v6: None,
//!         mtu: 1500,
//!     }],
//!     ..Node::default()
//! };
//! let end = |id| LinkEnd { vertex: NetworkVertex::Node(NodeId(id)), interface: 0 };
//! let profile = LinkProfile { latency: Span::from_millis(10), ..LinkProfile::default() };
//! let plan = Plan {
//!     name: "pair".to_owned(),
//!     seed: 1,
//!     nodes: vec![node(0, LinkDirection::Up), node(1, LinkDirection::Down)],
//!     links: vec![Link {
//!         name: "n0--n1".to_owned(),
//!         ends: [end(0), end(1)],
//!         profiles: [profile.clone(), profile],
//!     }],
//!     ..Plan::default()
//! };
//! let mut engine = Engine::new(&plan, EngineLimits { packet_memory: 1 << 20 });
//! let sent = Time::from_nanos(5);
//! assert!(engine.handle_packet(sent, PortId(0), vnet::VirtioNetHeader::default(), &mut [0; 60]).is_none());
//! let due = engine.poll_timeout().expect("a packet is in flight");
//! engine.handle_timeout(due);
//! let departure = engine.poll_output().expect("it has arrived");
//! assert_eq!(departure.intended, sent + Span::from_millis(10));
//! assert_eq!((departure.port, departure.frame.len()), (PortId(1), 60));
//! engine.recycle(departure.frame);
//! ```

#![cfg_attr(not(test), no_std)]

extern crate alloc;

mod audience;
mod buffer;
mod chain;
mod counters;
mod departure;
mod element;
mod engine;
mod event;
mod housekeeping;
mod lan;
mod limits;
mod middlebox;
mod neighbours;
mod network;
mod packet;
mod part;
mod paths;
mod reassembly;
mod records;
mod router;
mod services;
mod time_queue;
mod timer;
mod tunnel;
mod underlay;

pub use audience::{FlowAudienceTable, FlowSubscribers};
pub use buffer::PacketBuf;
pub use counters::{
    ClassCounters, DropCounters, LaneClassCounters, LaneCounters, RouterCounters,
    TrafficOwnershipCounts, TrafficVolume,
};
pub use departure::{FrameDeparture, ImmediateDeparture};
pub use engine::{AnnouncedFlowCounts, Engine, ServiceOverview};
pub use event::{LostReports, NetworkEvent, NetworkEventKind};
pub use limits::EngineLimits;
pub use packet::{FrameOrigin, SenderClass};
pub use part::NetworkPart;
pub use records::{DROP_REASON_NAMES, PacketRecorder, RecordCounts, RecordSettings};
pub use services::{
    ExpelledCounts, FailOverCounters, FailOverNews, FailOverWhat, PinCounts, PinnedFlow,
    ReplicaCounters, ReplicaFault, ServiceCounters, ServiceReplicaStatus, ServiceRow,
};
pub use windtunnel_nat::{EndedMapping, MappingState, NatCounters, NetworkAddressTranslator};
