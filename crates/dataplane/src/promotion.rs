//! The packet loop and the main loop before all other work of the machine, where the user may have
//! that (root).
//!
//! The right (`CAP_SYS_NICE`) is lost with the move into a user namespace, and the packet loop's
//! thread begins after it. So a copy of this process for each of the two stays outside, gives the
//! thread its policy when it is there, and ends.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use windtunnel_sys::namespace::{self, NamespaceFlags, NamespaceFork};
use windtunnel_sys::process::{self, Pid, Signal};
use windtunnel_sys::schedule::{self, SchedulingPolicy};
use windtunnel_sys::{limits, unix};

/// What can give a thread of this process real-time priority.
#[derive(Debug)]
pub struct RealTimePromoter {
    outside: Pid,
    channel: OwnedFd,
}

impl RealTimePromoter {
    /// To be called before the process moves into a user namespace, with one thread. `None`: this
    /// user may not have it, or the machine does not give it.
    pub fn prepare(priority: Priority) -> Option<RealTimePromoter> {
        let thread = limits::current_thread();
        let policy = priority.policy();
        schedule::set_policy(Some(thread), policy).ok()?;
        schedule::set_policy(Some(thread), SchedulingPolicy::Normal).ok()?;
        let (channel, other_end) = unix::seqpacket_pair().ok()?;
        let parent = process::current();
        match namespace::fork_into(NamespaceFlags::NONE).ok()? {
            NamespaceFork::Child => {
                drop(channel);
                process::exit_now(i32::from(serve(parent, &other_end, policy).is_err()))
            }
            NamespaceFork::Parent { pid, .. } => Some(RealTimePromoter { outside: pid, channel }),
        }
    }

    /// Puts the calling thread before all other work.
    ///
    /// # Errors
    /// What the kernel says; `ESRCH` if the process outside is gone.
    pub fn promote(self) -> io::Result<()> {
        let thread = limits::current_thread().as_raw_nonzero().get();
        unix::send(&self.channel, &thread.to_ne_bytes(), &[])?;
        let mut answer = [0; 4];
        let received = unix::receive(&self.channel, &mut answer)?;
        drop(self.channel);
        // It ends by itself; another waiter may have been first.
        let _ = process::wait_pid(self.outside, false);
        match (received.bytes, i32::from_ne_bytes(answer)) {
            (4, 0) => Ok(()),
            (4, errno) => Err(io::Error::from_raw_os_error(errno)),
            _ => Err(io::Error::other("the process outside of the user namespace is gone")),
        }
    }
}

/// Which thread is served first where both have work.
#[derive(Debug, Clone, Copy)]
pub enum Priority {
    /// The main loop: it must not keep packets waiting.
    Events,
    Packets,
}

impl Priority {
    fn policy(self) -> SchedulingPolicy {
        SchedulingPolicy::RealTime(match self {
            Priority::Events => 1,
            Priority::Packets => 2,
        })
    }
}

/// The life of the process outside: one thread of the parent gets its policy.
fn serve(parent: Pid, channel: &OwnedFd, policy: SchedulingPolicy) -> io::Result<()> {
    process::set_parent_death_signal(Some(Signal::KILL))?;
    let mut number = [0; 4];
    if unix::receive(channel, &mut number)?.bytes != number.len() {
        return Ok(());
    }
    let thread = Pid::from_raw(i32::from_ne_bytes(number));
    let thread = thread.filter(|thread| is_of(parent, *thread));
    let done = match thread {
        Some(thread) => schedule::set_policy(Some(thread), policy),
        None => Err(io::Error::from(io::ErrorKind::InvalidInput)),
    };
    let errno = done.err().map_or(0, |error| error.raw_os_error().unwrap_or(-1));
    unix::send(channel, &errno.to_ne_bytes(), &[])?;
    Ok(())
}

fn is_of(process: Pid, thread: Pid) -> bool {
    let (process, thread) = (process.as_raw_nonzero(), thread.as_raw_nonzero());
    Path::new(&format!("/proc/{process}/task/{thread}")).exists()
}
