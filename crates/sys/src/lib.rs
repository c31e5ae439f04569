//! The Linux room: thin safe calls into the kernel, and the only place with `unsafe`.
//!
//! It promises: one family of calls a module; descriptors go in borrowed and come out owned, and
//! are always close-on-exec; errors keep their errno. Times are nanoseconds.
//!
//! It refuses: policy, retries (not even on `EINTR`), logging, and knowing what a node is.
//!
//! | module | what it calls |
//! |---|---|
//! | [`below`] | files below an open folder, through no link |
//! | [`bpf_array`] | arrays that this process shares with BPF programs |
//! | [`packet`] | a packet socket over all interfaces, with a mapped ring |
//! | [`frame_queue`] | frames from one process to another through shared memory |
//! | [`netdev`] | names and indices of network devices |
//! | [`ping`] | ICMP echo without privilege |
//! | [`namespace`] | unshare, fork into, join namespaces; user and group maps |
//! | [`capability`] | what the process may do; giving it up |
//! | [`mount`] | propagation, binds, proc, sysfs, tmpfs |
//! | [`process`] | attributes, signals, waiting, starting programs |
//! | [`signal`] | signals as something to read |
//! | [`poll`] | waiting for descriptors, events, timers |
//! | [`clock`] | clocks and sleeping |
//! | [`descriptor`] | closing descriptors in bulk |
//! | [`region`] | rings of records in memory that processes share |
//! | [`unix`] | local sockets that carry descriptors |
//! | [`terminal`] | pseudoterminals, sizes, raw mode |
//! | [`seccomp`] | calls of a program, shown to a supervisor before they are done |
//! | [`sock_diag`] | asking the kernel about the sockets of a network namespace |
//! | [`x_tables`] | tables of `iptables-legacy` |
//! | [`socket`] | what a socket is, and how far it is |
//! | [`socket_error`] | what became of datagrams that were sent |
//! | [`executable`] | what kind of file a program is |
//! | [`ptrace`] | threads of other processes, stopped and looked into |
//! | [`limits`] | limits of the process, load of the machine |
//! | [`marks`] | marks of processes, shared with those that a process forks |
//! | [`shared_words`] | numbers, shared in the same way |
//!
//! # Example
//!
//! ```
//! use windtunnel_sys::{clock, poll};
//!
//! # fn main() -> std::io::Result<()> {
//! let timer = poll::Timer::open()?;
//! let at_ns = clock::monotonic_ns() + 1_000_000;
//! timer.arm_at(at_ns)?;
//! let ready = poll::wait(&mut [poll::PollFd::new(&timer, poll::PollFlags::IN)], None)?;
//! assert_eq!(ready, 1);
//! assert!(clock::monotonic_ns() >= at_ns);
//! # Ok(())
//! # }
//! ```

mod ffi;

pub mod below;
pub mod bpf_array;
pub mod capability;
pub mod clock;
pub mod descriptor;
pub mod executable;
pub mod frame_queue;
pub mod interfaces;
pub mod limited;
pub mod limits;
pub mod marks;
pub mod mount;
pub mod namespace;
pub mod netdev;
pub mod packet;
pub mod ping;
pub mod poll;
pub mod process;
pub mod ptrace;
pub mod region;
pub mod schedule;
pub mod seccomp;
pub mod shared_words;
pub mod signal;
pub mod sock_diag;
pub mod socket;
pub mod socket_error;
pub mod terminal;
pub mod unix;
pub mod x_tables;
