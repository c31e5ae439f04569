//! The thread: which listener has a call, whose it is, and what it is answered.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use windtunnel_sys::poll::{EpollSet, EventFd, Timer};
use windtunnel_sys::seccomp::{HANDOVER_BYTES, SeccompListener, SeccompListenerHandover};
use windtunnel_sys::{clock, unix};

use crate::held::{HeldCall, HeldCallQueue};
use crate::watcher::{CallAnswer, CallWatcher, WaitingCall};

#[derive(Debug)]
pub(crate) struct NotificationLoop<W> {
    watcher: W,
    set: EpollSet,
    timer: Timer,
    /// For when the timer is armed.
    armed_ns: Option<u64>,
    /// By their tokens in the set.
    sources: BTreeMap<u64, NotificationSource>,
    /// Those that wait for a descriptor have its token as their number.
    held: HeldCallQueue,
    token_next: u64,
    living: Arc<AtomicU64>,
}

/// What something may come from.
#[derive(Debug)]
enum NotificationSource {
    /// Where listeners are handed over.
    Door { number: usize, socket: OwnedFd },
    /// Where the calls of the processes under one filter are shown.
    Listener { door: usize, listener: SeccompListener },
}

impl<W: CallWatcher> NotificationLoop<W> {
    pub(crate) fn new(watcher: W) -> io::Result<NotificationLoop<W>> {
        let (set, timer) = (EpollSet::open()?, Timer::open()?);
        set.add(&timer, TIMER)?;
        let (sources, held, living) = (BTreeMap::new(), HeldCallQueue::default(), Arc::default());
        let (armed_ns, token_next) = (None, TIMER + 1);
        Ok(NotificationLoop { watcher, set, timer, armed_ns, sources, held, token_next, living })
    }

    /// Ends when this is raised, too.
    pub(crate) fn end_by(&mut self, stop: &EventFd) -> io::Result<()> {
        self.set.add(stop, STOP)
    }

    pub(crate) fn open_door(&mut self, number: usize, socket: OwnedFd) -> io::Result<()> {
        let token = self.token();
        self.set.add(&socket, token)?;
        self.sources.insert(token, NotificationSource::Door { number, socket });
        Ok(())
    }

    pub(crate) fn add_listener(
        &mut self,
        door: usize,
        listener: SeccompListener,
    ) -> io::Result<()> {
        let token = self.token();
        self.set.add(&listener, token)?;
        self.sources.insert(token, NotificationSource::Listener { door, listener });
        self.living.fetch_add(1, Ordering::Release);
        self.watcher.listener_added(token);
        Ok(())
    }

    /// Filters under which programs live.
    pub(crate) fn living(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.living)
    }

    /// Until it is ended, or nothing can come any more.
    pub(crate) fn run(mut self) -> W {
        let mut ready = Vec::new();
        while !self.sources.is_empty() {
            self.arm();
            // A signal's handler is no reason to stop.
            let _ = self.set.wait(|token, is_closed| ready.push((token, is_closed)));
            for (token, is_closed) in ready.drain(..) {
                match token {
                    STOP => return self.watcher,
                    TIMER => {
                        self.armed_ns = None;
                        drop(self.timer.clear());
                    }
                    _ => self.serve(token, is_closed),
                }
            }
            self.do_due();
        }
        self.watcher
    }

    fn arm(&mut self) {
        let next_ns = self.next_ns();
        if self.armed_ns == next_ns {
            return;
        }
        let armed = match next_ns {
            Some(at_ns) => self.timer.arm_at(at_ns),
            None => self.timer.disarm(),
        };
        // What a timer cannot do the next call does.
        self.armed_ns = armed.ok().and(next_ns);
    }

    /// When something is due that no descriptor says.
    fn next_ns(&self) -> Option<u64> {
        [self.held.next_ns(), self.watcher.next_ns()].into_iter().flatten().min()
    }

    fn token(&mut self) -> u64 {
        self.token_next += 1;
        self.token_next
    }

    fn serve(&mut self, token: u64, is_closed: bool) {
        match self.sources.get(&token) {
            Some(NotificationSource::Door { .. }) => self.take_message(token, is_closed),
            Some(NotificationSource::Listener { .. }) => self.take_call(token, is_closed),
            None => {
                if let Some(held) = self.held.take(token) {
                    self.look_again(held, clock::monotonic_ns(), true);
                }
            }
        }
    }

    /// A process hands over its listener, or says why it has none; or another door is opened.
    fn take_message(&mut self, token: u64, is_closed: bool) {
        let Some(NotificationSource::Door { number, socket }) = self.sources.get(&token) else {
            return;
        };
        let number = *number;
        let mut message = [0; HANDOVER_BYTES];
        let received = match unix::receive(socket, &mut message) {
            Ok(received) if received.bytes > 0 => received,
            _ if is_closed => return drop(self.sources.remove(&token)),
            _ => return,
        };
        let descriptor = received.descriptors.into_iter().next();
        let message = &message[..received.bytes];
        if message == ANOTHER_DOOR {
            let opened = descriptor.map_or(Ok(()), |socket| self.open_door(number, socket));
            return opened.unwrap_or_else(|error| {
                let program = "programs started by others".to_owned();
                self.watcher.program_missed(number, program, error.to_string());
            });
        }
        // Whatever else a program sends is not understood.
        let Some(handover) = SeccompListenerHandover::read(message) else { return };
        let added = match descriptor {
            Some(descriptor) => self.add_listener(number, SeccompListener::new(descriptor)),
            None => Err(io::Error::from_raw_os_error(handover.errno)),
        };
        if let Err(error) = added {
            let why = format!("no filter: {error}");
            self.watcher.program_missed(number, handover.program, why);
        }
    }

    /// A call waits, or all processes of a filter have ended.
    fn take_call(&mut self, token: u64, is_closed: bool) {
        let Some(NotificationSource::Listener { door, listener }) = self.sources.get(&token) else {
            return;
        };
        let door = *door;
        let shown = match listener.receive() {
            Ok(Some(shown)) => shown,
            // Where all have ended the kernel may say that the call has gone, for ever.
            Ok(None) if !is_closed => return,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return,
            Ok(None) | Err(_) => {
                return self.end(token, door);
            }
        };
        let since_ns = clock::monotonic_ns();
        let call = WaitingCall { listener: token, door, shown, since_ns };
        let looked = self.ask(|watcher| watcher.look(&call));
        self.answer(call, looked);
    }

    /// All processes under a filter have ended.
    fn end(&mut self, token: u64, door: usize) {
        self.sources.remove(&token);
        let now_ns = clock::monotonic_ns();
        let gone = self.held.take_of(token);
        gone.into_iter().for_each(|held| self.look_again(held, now_ns, false));
        self.watcher.listener_ended(token, door);
        self.living.fetch_sub(1, Ordering::Release);
    }

    /// Looks at a call again that was held, if it still waits.
    fn look_again(&mut self, held: HeldCall, now_ns: u64, is_readable: bool) {
        let HeldCall { call, readable, .. } = held;
        if let Some(copy) = readable {
            // In the set it would stay when it is closed: the program has the descriptor open still.
            let _ = self.set.remove(&copy);
        }
        if !self.is_waiting(&call) {
            return self.watcher.answered(&call);
        }
        let looked = self.ask(|watcher| watcher.look_again(&call, now_ns, is_readable));
        self.answer(call, looked);
    }

    fn ask(
        &mut self,
        question: impl FnOnce(&mut W) -> io::Result<CallAnswer>,
    ) -> thread::Result<io::Result<CallAnswer>> {
        let watcher = &mut self.watcher;
        panic::catch_unwind(AssertUnwindSafe(|| question(watcher)))
    }

    fn answer(&mut self, call: WaitingCall, looked: thread::Result<io::Result<CallAnswer>>) {
        let answer = looked.unwrap_or_else(|_| Err(io::Error::other("looking at a call panicked")));
        let answer = answer.unwrap_or_else(|error| {
            // Of one that has been killed meanwhile nothing is left to look at.
            if self.is_waiting(&call) {
                self.watcher.cannot_look(&call, error.to_string());
            }
            CallAnswer::Continue
        });
        let errno = match answer {
            CallAnswer::Continue => None,
            CallAnswer::Fail(errno) => Some(errno),
            CallAnswer::Hold { until_ns, readable } => {
                match self.hold(HeldCall { call, until_ns, readable }) {
                    Ok(()) => return,
                    Err(_) => None,
                }
            }
        };
        if let Some(NotificationSource::Listener { listener, .. }) =
            self.sources.get(&call.listener)
        {
            let id = call.shown.id;
            // An error says that the listener is no listener.
            let _ = errno.map_or_else(|| listener.resume(id), |errno| listener.fail(id, errno));
        }
        self.watcher.answered(&call);
    }

    fn hold(&mut self, held: HeldCall) -> io::Result<()> {
        let token = self.token();
        if let Some(copy) = &held.readable {
            self.set.add(copy, token)?;
        }
        self.held.add(token, held);
        Ok(())
    }

    fn is_waiting(&self, call: &WaitingCall) -> bool {
        matches!(
            self.sources.get(&call.listener),
            Some(NotificationSource::Listener { listener, .. }) if listener.is_waiting(call.shown.id)
        )
    }

    /// Calls whose time has come are looked at again.
    fn do_due(&mut self) {
        if self.next_ns().is_none() {
            return;
        }
        let now_ns = clock::monotonic_ns();
        let looks_at_all = self.watcher.do_due(now_ns);
        let due = self.held.take_due(if looks_at_all { u64::MAX } else { now_ns });
        due.into_iter().for_each(|held| self.look_again(held, now_ns, false));
    }
}

const STOP: u64 = 0;
const TIMER: u64 = 1;
/// The message with which a door hands over another one.
const ANOTHER_DOOR: &[u8] = b"inside";

#[cfg(test)]
mod tests;
