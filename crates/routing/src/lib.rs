//! Routes over a plan: shortest paths, equal-cost paths, fixed routes, recomputation.
//!
//! **Promises:** the same plan gives the same routes on every machine: ties are broken by cost,
//! then hops, then the order of the links in the file. Routes are a value: a change makes new ones,
//! which share the unchanged parts with the old, and trees that are computed later still belong to
//! the moment of the change.
//!
//! **Refuses:** packets, time, link state other than the caller passes in.
//!
//! A *target* is where an address lives: an interface of a node, or a router. Routes to an
//! interface end on its own link where that is possible, as they would with one subnet a link; so a
//! node with two access links is reached over the one of the address used.
//!
//! Only routers, LANs and nodes that forward carry packets of others; they are the *core*. One
//! tree over the core per *attachment* (the vertex at the far end of the target's link) is
//! computed, when it is first needed, so a thousand leaves behind one router cost one tree.
//!
//! | module | content |
//! | --- | --- |
//! | `routes` | [`Routes`]: next hops, paths, changes |
//! | `tree` | shortest-path trees (Dijkstra) |
//! | `fixed` | routes that the file or a request fixes |
//! | `graph` | the plan as vertices and lanes |
//! | `summary` | [`PathSummary`]: the sums over a path |
//!
//! ```
//! use windtunnel_model::plan::{Link, LinkEnd, Plan, Router, RouterInterface};
//! use windtunnel_model::{LinkDirection, Lane, LinkId, LinkProfile, RouterId, NetworkVertex};
//! use windtunnel_routing::{Routes, RouteDestination};
//!
//! let interface = |outward| RouterInterface { link: LinkId(0), outward, v4: None, v6: None };
//! let router = |name: &str, outward| Router {
//!     name: name.to_owned(),
//!     interfaces: vec![interface(outward)],
//! };
//! let end = |id| LinkEnd { vertex: NetworkVertex::Router(RouterId(id)), interface: 0 };
//! let plan = Plan {
//!     name: "pair".to_owned(),
//!     seed: 1,
//!     routers: vec![router("a", LinkDirection::Up), router("b", LinkDirection::Down)],
//!     links: vec![Link {
//!         name: "a--b".to_owned(),
//!         ends: [end(0), end(1)],
//!         profiles: [LinkProfile::default(), LinkProfile::default()],
//!     }],
//!     ..Plan::default()
//! };
//! let routes = Routes::compute(&plan);
//! let next = routes.next_hop(NetworkVertex::Router(RouterId(0)), RouteDestination::Router(RouterId(1)));
//! assert_eq!(next, Some(Lane { link: LinkId(0), direction: LinkDirection::Up }));
//! ```

#![cfg_attr(not(test), no_std)]

extern crate alloc;

mod fixed;
mod graph;
mod routes;
mod summary;
mod tree;

pub use routes::{RouteDestination, Routes};
pub use summary::PathSummary;
