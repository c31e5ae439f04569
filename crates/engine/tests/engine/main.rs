//! The engine from outside: packets in, packets and times out, in virtual time.

#![expect(clippy::unwrap_used, reason = "a test that cannot build its world has failed")]

mod changes;
mod codel;
mod fq_codel;
mod jitter;
mod lans;
mod late;
mod mtu;
mod parts;
mod pi2;
mod pie;
mod properties;
mod queue;
mod random;
mod rate;
mod records;
mod red;
mod remote;
mod routers;
mod routes;
mod services;
mod support;
mod traces;
mod trains;
mod wf2q;
