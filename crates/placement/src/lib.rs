//! The room `placement`: which node of a plan runs on which machine.
//!
//! **Promises:** every node is on one machine; pins hold; no machine gets more processors, memory
//! or nodes than it has free, and no uplink more than its nodes can send. A plan that does not fit
//! is [`PlacementRefusal`] with numbers. The same plan, machines and round-trip times give the same
//! placement everywhere.
//!
//! **Refuses:** clocks, randomness and floats; to promise the best placement (that is NP-hard): a
//! plan refused for uplinks or round-trip times may still fit with pins set by the user.
//!
//! | module | content |
//! | --- | --- |
//! | `host` | [`PlacementHost`], [`ReservedCapacity`], [`Rtts`]: the machines |
//! | `outcome` | [`NodePlacement`], [`PlacedRunLoad`], [`UplinkTrafficBound`], [`PlacementWarning`] |
//! | `refused` | [`PlacementRefusal`], [`PlacementRefusalReason`]: why a plan does not fit, with numbers |
//! | `net` | the plan's lanes as the file has them at any time of the run |
//! | `closeness` | which nodes are nearer to each other than machines are |
//! | `flow`, `uplink` | the most that the nodes of a machine can send to others: a maximum flow |
//! | `problem`, `search` | cost function and search: starts, then Fiduccia–Mattheyses moves |
//!
//! ```
//! use windtunnel_placement::{PlacementHost, Rtts, place};
//!
//! let text = b"nodes: {a: {}, b: {pin: m2}, c: {}, d: {}}\nrouters: [r, s]\nlinks:
//! - {between: [a, r], rate: 1gbit}\n- {between: [c, r], rate: 1gbit}\n- {between: [r, s], rate: 10mbit}
//! - {between: [b, s], rate: 1gbit}\n- {between: [d, s], rate: 1gbit}\n";
//! let source =
//!     windtunnel_scenario::ScenarioSource { name: "net.yaml", text, default_name: "net", base_dir: "/" };
//! let plan = windtunnel_scenario::load(&source).unwrap().plan;
//! let hosts = [PlacementHost::new("m1"), PlacementHost::new("m2")];
//! let placed = place(&plan, &hosts, &Rtts::default()).unwrap();
//! // Only the slow link is between machines.
//! assert_eq!(placed.hosts, [0, 1, 0, 1]);
//! ```

#![cfg_attr(not(test), no_std)]

extern crate alloc;

mod closeness;
mod flow;
mod host;
mod net;
mod outcome;
mod place;
mod problem;
mod refused;
mod search;
mod uplink;

pub use host::{PlacementHost, ReservedCapacity, Rtts};
pub use outcome::{NodePlacement, PlacedRunLoad, PlacementWarning, UplinkTrafficBound};
pub use place::{BYTES_PER_NODE, place};
pub use refused::{PlacementRefusal, PlacementRefusalReason, UplinkDirection};
pub use uplink::TUNNEL_BYTES;
