//! What is asked about calls, and what it may answer.

use std::io;
use std::os::fd::OwnedFd;

use windtunnel_sys::seccomp::Notification;

/// A call that waits for its answer.
#[derive(Debug, Clone, Copy)]
pub struct WaitingCall {
    /// The number of the listener at which it was shown; no other gets the same.
    pub listener: u64,
    /// The number of the door by which that came.
    pub door: usize,
    pub shown: Notification,
    /// When it was shown.
    pub since_ns: u64,
}

/// What becomes of a call.
#[derive(Debug)]
pub enum CallAnswer {
    /// It goes on, as if it had never been shown.
    Continue,
    /// It fails with an errno, without having done anything.
    Fail(i32),
    /// It waits, and is looked at again: at a time, or before if this copy of a descriptor becomes
    /// readable, which is closed then.
    Hold { until_ns: u64, readable: Option<OwnedFd> },
}

/// What is asked about the calls of programs. All of it happens in the thread that answers them: one
/// that takes long delays all programs.
pub trait CallWatcher: Send + 'static {
    /// A program, and all that it starts, is under a filter from now on.
    fn listener_added(&mut self, _listener: u64) {}

    /// Calls of a program that was to come by a door will not be shown.
    fn program_missed(&mut self, _door: usize, _program: String, _why: String) {}

    /// All processes under a filter have ended.
    fn listener_ended(&mut self, _listener: u64, _door: usize) {}

    /// Looks at a call that has come.
    ///
    /// # Errors
    /// If it cannot be looked at: it goes on.
    fn look(&mut self, call: &WaitingCall) -> io::Result<CallAnswer>;

    /// Looks at a call that was held: its time has come, or its descriptor `is_readable`, or all that
    /// are held are looked at.
    ///
    /// # Errors
    /// As of [`CallWatcher::look`].
    fn look_again(
        &mut self,
        call: &WaitingCall,
        _now_ns: u64,
        _is_readable: bool,
    ) -> io::Result<CallAnswer> {
        self.look(call)
    }

    /// A call that still waits could not be looked at.
    fn cannot_look(&mut self, _call: &WaitingCall, _why: String) {}

    /// A call has been answered; or it was held, and has gone with its thread.
    fn answered(&mut self, _call: &WaitingCall) {}

    /// When [`CallWatcher::do_due`] is to be called at the latest, if at all.
    fn next_ns(&self) -> Option<u64> {
        None
    }

    /// Does what is due beside calls. Whether all calls that are held are to be looked at now.
    fn do_due(&mut self, _now_ns: u64) -> bool {
        false
    }
}
