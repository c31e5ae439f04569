//! Where records come from, and how they reach files.
//!
//! **Promises:** a source never waits for the disk; no event is lost without being counted; files
//! can be read after a `kill -9`.
//!
//! **Refuses:** to judge or to render what was recorded.
//!
//! | module | what it knows |
//! | --- | --- |
//! | [`connections`] | that state, as a source for the thread |
//! | [`diagnosis`] | the state of TCP connections, from the kernel, without rights |
//! | [`drain`] | the thread that carries records from their sources to files |
//! | [`kernel`] | what the kernel's network stack does, where CAP_BPF is there |
//! | [`listeners`] | which sockets would take what comes to services |
//! | [`owners`] | which sockets are of the processes that are recorded |
//! | [`preload`] | the library that records the calls of programs into which it is loaded |
//! | [`notification`] | the calls of programs that a preload library cannot enter |
//! | [`shelf`] | records of a thread of this process, until they are taken |
//! | [`overhead`] | what a record costs on this machine |
//! | [`feed`] | rings in shared memory, as sources for that thread |

pub mod connections;
pub mod diagnosis;
pub mod drain;
pub mod feed;
mod flow;
pub mod kernel;
pub mod listeners;
pub mod notification;
pub mod overhead;
pub mod owners;
pub mod preload;
pub mod shelf;
