//! The namespace tier: the built `windtunnel` drives real programs, and its output, exit codes and
//! run folders are checked.
//!
//! As root, tests of what depends on rights (identities, control groups, mounts, images, sockets of
//! the machine) run twice: as root and as an ordinary user (uid 65534). All others run as the
//! ordinary user; with `WINDTUNNEL_TEST_USERS=all` as both. Tests print requirements that this
//! machine lacks (`missing: …`) and are skipped; `WINDTUNNEL_REQUIRE_NAMESPACES=1` makes a failure
//! of that. Bounds are asserted, never exact times, and no test asks for speed.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

#[path = "programs/attempts.rs"]
mod attempts;
#[path = "programs/births.rs"]
mod births;
#[path = "programs/bounds.rs"]
mod bounds;
#[path = "programs/capture.rs"]
mod capture;
#[path = "programs/cgroup_v2.rs"]
mod cgroup_v2;
#[path = "programs/churn.rs"]
mod churn;
#[path = "programs/clients.rs"]
mod clients;
#[path = "programs/disk.rs"]
mod disk;
#[path = "programs/disk_limits.rs"]
mod disk_limits;
#[path = "programs/ending.rs"]
mod ending;
#[path = "programs/events.rs"]
mod events;
#[path = "programs/expect.rs"]
mod expect;
#[path = "programs/explain.rs"]
mod explain;
#[path = "programs/faithful.rs"]
mod faithful;
#[path = "programs/faults.rs"]
mod faults;
#[path = "common/free_port.rs"]
mod free_port;
#[path = "programs/image_limits.rs"]
mod image_limits;
#[path = "programs/images.rs"]
mod images;
#[path = "programs/init.rs"]
mod init;
#[path = "programs/interference.rs"]
mod interference;
#[path = "programs/internet.rs"]
mod internet;
#[path = "programs/lan.rs"]
mod lan;
#[path = "programs/lifecycle.rs"]
mod lifecycle;
#[path = "programs/limit.rs"]
mod limit;
#[path = "programs/link.rs"]
mod link;
#[path = "programs/live.rs"]
mod live;
#[path = "programs/model.rs"]
mod model;
#[path = "programs/musl.rs"]
mod musl;
#[path = "programs/nat.rs"]
mod nat;
#[path = "programs/node.rs"]
mod node;
#[path = "programs/node_limits.rs"]
mod node_limits;
#[path = "programs/outside.rs"]
mod outside;
#[path = "programs/overload.rs"]
mod overload;
#[path = "common/page.rs"]
mod page;
#[path = "programs/path.rs"]
mod path;
#[path = "programs/patience.rs"]
mod patience;
#[path = "programs/ping.rs"]
mod ping;
#[path = "programs/platforms.rs"]
mod platforms;
#[path = "programs/random.rs"]
mod random;
#[path = "programs/receive.rs"]
mod receive;
#[path = "programs/record.rs"]
mod record;
#[path = "programs/recorded.rs"]
mod recorded;
#[path = "programs/registries.rs"]
mod registries;
#[path = "programs/report.rs"]
mod report;
#[path = "programs/reservations.rs"]
mod reservations;
#[path = "programs/reserve_files.rs"]
mod reserve_files;
#[path = "programs/reserve_tree.rs"]
mod reserve_tree;
#[path = "programs/routes.rs"]
mod routes;
#[path = "programs/secrets.rs"]
mod secrets;
#[path = "programs/services.rs"]
mod services;
#[path = "programs/shares.rs"]
mod shares;
#[path = "programs/slow.rs"]
mod slow;
#[path = "programs/slurm.rs"]
mod slurm;
#[path = "programs/small_machines.rs"]
mod small_machines;
#[path = "programs/starting.rs"]
mod starting;
#[path = "programs/strangers.rs"]
mod strangers;
#[path = "programs/stun.rs"]
mod stun;
#[path = "programs/support.rs"]
mod support;
#[path = "programs/top.rs"]
mod top;
#[path = "programs/traces.rs"]
mod traces;
#[path = "programs/transfer.rs"]
mod transfer;
#[path = "programs/unpacked.rs"]
mod unpacked;
#[path = "programs/verdict.rs"]
mod verdict;
#[path = "programs/volumes.rs"]
mod volumes;
#[path = "programs/web.rs"]
mod web;
