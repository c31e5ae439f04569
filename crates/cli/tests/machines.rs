//! Runs over several machines: network namespaces joined by a bridge, each with clocks of its own
//! and an agent of an ordinary user, and the built `windtunnel` drives real programs over them.
//!
//! As root, machines are made by root and agents run as uid 65534; else all is in one user
//! namespace of the user who runs the tests. What is missing on this machine is said (`missing: …`)
//! and passed over; `WINDTUNNEL_REQUIRE_NAMESPACES=1` makes a failure of that. Runs have a bound of
//! 5 ms. One that this machine was too busy for is repeated or, where the test takes part in it,
//! let pass with the reason printed; every other doubt is a failure.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

#[path = "machines/clocks.rs"]
mod clocks;
#[path = "machines/ending.rs"]
mod ending;
#[path = "machines/fitness.rs"]
mod fitness;
#[path = "machines/images.rs"]
mod images;
#[path = "machines/ipv6.rs"]
mod ipv6;
#[path = "machines/keys.rs"]
mod keys;
#[path = "machines/late.rs"]
mod late;
#[path = "machines/limits.rs"]
mod limits;
#[path = "machines/live.rs"]
mod live;
#[path = "machines/loss.rs"]
mod loss;
#[path = "machines/names.rs"]
mod names;
#[path = "common/page.rs"]
mod page;
#[path = "machines/pages.rs"]
mod pages;
#[path = "machines/records.rs"]
mod records;
#[path = "machines/services.rs"]
mod services;
#[path = "machines/sharing.rs"]
mod sharing;
#[path = "machines/support.rs"]
mod support;
#[path = "machines/underlay.rs"]
mod underlay;
#[path = "machines/whole.rs"]
mod whole;
