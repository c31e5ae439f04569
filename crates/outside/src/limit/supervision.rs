//! The programs of a limit that the preload library cannot enter: static ones, and those of Go.
//!
//! Such a program runs under the filter by which recording sees its calls
//! ([`windtunnel_sys::seccomp`]). The thread of [`windtunnel_notification`] gets each call before the
//! kernel does it, and lets it go on, unchanged, once its bytes may move. It never sleeps for one
//! call: what waits is kept by its time, and other calls go on meanwhile.
//!
//! As a call comes before its result is known, the bytes that it can move are claimed: all that a
//! call sends that may block, no more than the socket has room for of one that must not, and what
//! there is to receive. How far a stream of TCP is shows exactly at the next call on it, and the
//! difference is charged or given back then. What is no TCP has no such position: a datagram is
//! taken to be sent, and a call that would wait for one is let go when it has come.
//!
//! | module | what it knows |
//! | --- | --- |
//! | `judge` | whether a call may go on that names where it sends to |
//! | `transfer` | what a call would move, and through which descriptor |
//! | `look` | whether a call goes on, and when; what becomes of those that are tried again |
//! | `sockets` | how far streams are, and what they were let do |
//! | `waits` | calls that wait: for the limit, or for a message |
//! | `edges` | which sockets programs watch by edges |
//! | `retries` | calls that failed with `EAGAIN` and are to be tried again |
//! | `watcher` | what the thread asks |

mod edges;
mod judge;
mod look;
mod retries;
mod sockets;
mod transfer;
mod waits;
mod watcher;

pub(super) use judge::DestinationPolicy;
pub use judge::RefusedDestinations;
pub(super) use watcher::CallLimiter;
