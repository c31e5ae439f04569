//! The thread: which listener has a call, and which call may go on.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use windtunnel_budget::pacing::Escape;
use windtunnel_limit::attach::ledger::SeccompCallLedgerWriter;
use windtunnel_sys::poll::{EpollSet, EventFd, Timer};
use windtunnel_sys::seccomp::running::refusal_of;
use windtunnel_sys::seccomp::{HANDOVER_BYTES, Handover, Notification, SeccompListener};
use windtunnel_sys::{clock, unix};

use super::CallLimiterSettings;
use super::judge::{DestinationPolicy, RefusedDestinations};
use super::look::{CallDecision, CallInspection, CallInspector, ENDING, has_signal};
use super::waits::{BandwidthClaim, CallWaitReason, SuspendedCall, SuspendedCallQueue};

#[derive(Debug)]
pub(super) struct CallLimiterLoop {
    set: EpollSet,
    timer: Timer,
    looker: CallInspector,
    /// What judges where programs send to, if that is limited.
    judge: Option<DestinationPolicy>,
    /// Whether bytes are limited.
    moves: bool,
    /// What the keeper of programs that ran already has to know, and its listeners by their order.
    notes: Option<(SeccompCallLedgerWriter, BTreeMap<u64, usize>)>,
    living: Arc<AtomicUsize>,
    waits: SuspendedCallQueue,
    /// Of the rates that claims were made at.
    generation: u32,
    /// Where listeners are handed over.
    doors: BTreeMap<u64, OwnedFd>,
    listeners: BTreeMap<u64, SeccompListener>,
    /// Numbers of calls that wait for a message, by the token of the copy of their socket.
    messages: BTreeMap<u64, u64>,
    token_next: u64,
}

impl CallLimiterLoop {
    pub(super) fn new(
        set: EpollSet,
        timer: Timer,
        stop: &EventFd,
        looker: CallInspector,
        terms: CallLimiterSettings,
        doors: Vec<OwnedFd>,
        living: Arc<AtomicUsize>,
    ) -> io::Result<CallLimiterLoop> {
        set.add(stop, STOP)?;
        set.add(&timer, TIMER)?;
        let generation = looker.region.generation.load(Ordering::Acquire);
        let (listeners, messages) = (BTreeMap::new(), BTreeMap::new());
        let (token_next, tokens) = (TIMER + 1 + doors.len() as u64, TIMER + 1..);
        let doors: BTreeMap<u64, OwnedFd> = tokens.zip(doors).collect();
        doors.iter().try_for_each(|(token, door)| set.add(door, *token))?;
        let CallLimiterSettings { judge, moves, ledger } = terms;
        let notes = ledger.map(|ledger| (ledger.notes(), BTreeMap::new()));
        Ok(CallLimiterLoop {
            set,
            timer,
            looker,
            judge,
            moves,
            notes,
            living,
            waits: SuspendedCallQueue::default(),
            generation,
            doors,
            listeners,
            messages,
            token_next,
        })
    }

    /// Until it is stopped. Returns what was refused.
    pub(super) fn run(mut self) -> RefusedDestinations {
        loop {
            let now_ns = clock::monotonic_ns();
            let next_ns = [self.waits.next_ns(now_ns), self.looker.retries.next_ns(now_ns)];
            let armed = match next_ns.into_iter().flatten().min() {
                Some(at_ns) => self.timer.arm_at(at_ns),
                None => self.timer.disarm(),
            };
            // What a timer cannot do the next call does.
            let _ = armed;
            let mut ready = Vec::new();
            // A signal's handler is no reason to stop.
            let _ = self.set.wait(|token, is_closed| ready.push((token, is_closed)));
            for (token, is_closed) in ready {
                match token {
                    STOP => return self.judge.map(DestinationPolicy::refused).unwrap_or_default(),
                    TIMER => drop(self.timer.clear()),
                    _ if self.doors.contains_key(&token) => self.take_listener(token, is_closed),
                    _ if self.listeners.contains_key(&token) => self.serve(token, is_closed),
                    _ => self.message_came(token),
                }
            }
            self.release();
        }
    }

    fn token(&mut self) -> u64 {
        self.token_next += 1;
        self.token_next
    }

    /// A process hands over its listener, or says why it has none.
    fn take_listener(&mut self, token: u64, is_closed: bool) {
        let Some(door) = self.doors.get(&token) else { return };
        let mut message = [0; HANDOVER_BYTES];
        let received = match unix::receive(door, &mut message) {
            Ok(received) if received.bytes > 0 => received,
            _ if is_closed => return drop(self.doors.remove(&token)),
            _ => return,
        };
        // Whatever else a program sends is not understood.
        if Handover::read(&message[..received.bytes]).is_none() {
            return;
        }
        let listener = received.descriptors.into_iter().next().map(SeccompListener::new);
        let token = self.token();
        match listener {
            Some(listener) if self.set.add(&listener, token).is_ok() => {
                self.listeners.insert(token, listener);
                self.living.store(self.listeners.len(), Ordering::Release);
                if let Some((_, numbers)) = &mut self.notes {
                    let next = numbers.len();
                    numbers.insert(token, next);
                }
            }
            _ => self.looker.region.count_escape(Escape::NoFilter),
        }
    }

    /// A call waits, or all processes of a filter have ended.
    fn serve(&mut self, token: u64, is_closed: bool) {
        let Some(listener) = self.listeners.get(&token) else { return };
        match listener.receive() {
            Ok(Some(shown)) => {
                self.note(token, shown.id, SeccompCallLedgerWriter::take);
                self.show(token, shown);
            }
            // Where all have ended the kernel may say that the call has gone, for ever.
            Ok(None) if !is_closed => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(None) | Err(_) => {
                self.listeners.remove(&token);
                self.living.store(self.listeners.len(), Ordering::Release);
                self.looker.end(token);
            }
        }
    }

    /// A call was taken, or is answered: the keeper has to know.
    fn note(&mut self, listener: u64, id: u64, what: fn(&mut SeccompCallLedgerWriter, usize, u64)) {
        if let Some((notes, numbers)) = &mut self.notes
            && let Some(number) = numbers.get(&listener)
        {
            what(notes, *number, id);
        }
    }

    /// A call has come.
    fn show(&mut self, listener: u64, shown: Notification) {
        // The filter of a program that ran already leaves that to this thread.
        if let Some(errno) = refusal_of(&shown, self.judge.is_some()) {
            return self.fail(listener, shown, errno);
        }
        let judge = self.judge.as_mut();
        if judge.is_some_and(|judge| !judge.allows(&shown)) {
            self.fail(listener, shown, EACCES);
        } else if self.moves {
            self.look(listener, shown, None, false);
        } else {
            self.resume(listener, shown);
        }
    }

    /// Looks at a call that has come, or that has waited for a message (until `late_ns`).
    fn look(&mut self, listener: u64, shown: Notification, late_ns: Option<u64>, is_ready: bool) {
        let now_ns = clock::monotonic_ns();
        let look = CallInspection { listener, shown: &shown, now_ns, is_ready };
        let looker = &mut self.looker;
        let looked = panic::catch_unwind(AssertUnwindSafe(|| looker.look(look)));
        let paced = looker.take_paced();
        if let Some((notes, _)) = &mut self.notes {
            paced.into_iter().for_each(|(cookie, rate)| notes.pace(cookie, rate));
        }
        match looked {
            Ok(Ok(CallDecision::Go)) => self.resume(listener, shown),
            Ok(Ok(CallDecision::Wait(why, most_ns))) => {
                let late_ns = match why {
                    CallWaitReason::Message(_) => late_ns.or(most_ns),
                    CallWaitReason::Limit(_) => most_ns,
                };
                let waiting = SuspendedCall { listener, shown, since_ns: now_ns, late_ns, why };
                self.wait(waiting, now_ns);
            }
            Ok(Ok(CallDecision::Again)) => self.fail(listener, shown, EAGAIN),
            Ok(Err(_)) | Err(_) => {
                // Of one that has been killed meanwhile nothing is left to hold.
                if self.is_waiting(listener, shown) {
                    self.looker.cannot_look(shown.thread, now_ns);
                }
                self.resume(listener, shown);
            }
        }
    }

    fn wait(&mut self, waiting: SuspendedCall, now_ns: u64) {
        let token = self.token();
        if let CallWaitReason::Message(copy) = &waiting.why
            && self.set.add(copy, token).is_err()
        {
            return self.resume(waiting.listener, waiting.shown);
        }
        let is_message = matches!(waiting.why, CallWaitReason::Message(_));
        let number = self.waits.add(waiting, now_ns);
        if is_message {
            self.messages.insert(token, number);
        }
    }

    /// A socket has become readable.
    fn message_came(&mut self, token: u64) {
        let waiting = self.messages.remove(&token).and_then(|number| self.waits.take(number));
        if let Some(SuspendedCall { listener, shown, why, .. }) = waiting {
            self.leave(why);
            self.look(listener, shown, None, true);
        }
    }

    /// What is due goes on.
    fn release(&mut self) {
        let now_ns = clock::monotonic_ns();
        let generation = self.looker.region.generation.load(Ordering::Acquire);
        if std::mem::replace(&mut self.generation, generation) != generation {
            self.waits.follow(&self.looker.region, now_ns);
            self.looker.retries.follow(&self.looker.region, now_ns);
        }
        while let Some((number, waiting)) = self.waits.take_due(now_ns) {
            let is_late = waiting.late_ns.is_some_and(|late_ns| late_ns <= now_ns);
            match waiting.why {
                CallWaitReason::Message(_) => {
                    self.messages.retain(|_, of| *of != number);
                    self.look_again(waiting, is_late);
                }
                CallWaitReason::Limit(claim) => self.end_wait(waiting, claim, now_ns),
            }
        }
        self.looker.announce(now_ns);
    }

    /// A call has waited for the limit: it goes on, or ends by a timeout or a signal, or waits on.
    fn end_wait(&mut self, waiting: SuspendedCall, claim: BandwidthClaim, now_ns: u64) {
        let SuspendedCall { listener, shown, since_ns, late_ns, .. } = waiting;
        let is_due = claim.at_ns <= now_ns;
        let is_late = late_ns.is_some_and(|late_ns| late_ns <= now_ns);
        let is_there = self.is_waiting(listener, shown);
        // Only a thread that goes on runs the handler of a signal.
        let is_ended = !is_due && has_signal(shown.thread, ENDING);
        if is_there && !is_due && !is_late && !is_ended {
            self.waits.add(waiting, now_ns);
            return;
        }
        let waited_ns = now_ns.saturating_sub(since_ns);
        self.looker.region.count_wait(claim.used.direction, waited_ns);
        if is_due && is_there {
            self.looker.let_go(&claim, now_ns);
            return self.resume(listener, shown);
        }
        self.looker.give_back(&claim, now_ns);
        self.fail(listener, shown, if is_late { EAGAIN } else { EINTR });
    }

    /// A call waits for a message for a while.
    fn look_again(&mut self, waiting: SuspendedCall, is_late: bool) {
        let SuspendedCall { listener, shown, late_ns, why, .. } = waiting;
        // The descriptor may have come to be another one.
        self.leave(why);
        if is_late {
            self.fail(listener, shown, EAGAIN);
        } else if self.is_waiting(listener, shown) {
            self.look(listener, shown, late_ns, false);
        }
    }

    /// The copy of a socket leaves the set, in which it would stay when it is closed: the program has
    /// the socket open still.
    fn leave(&self, why: CallWaitReason) {
        if let CallWaitReason::Message(copy) = why {
            // It is there.
            let _ = self.set.remove(&copy);
        }
    }

    fn is_waiting(&self, listener: u64, shown: Notification) -> bool {
        self.listeners.get(&listener).is_some_and(|listener| listener.is_waiting(shown.id))
    }

    fn resume(&mut self, listener: u64, shown: Notification) {
        if let Some(listener) = self.listeners.get(&listener) {
            // An error says that the listener is no listener.
            let _ = listener.resume(shown.id);
        }
        self.note(listener, shown.id, SeccompCallLedgerWriter::answer);
    }

    /// A call ends without having moved anything.
    fn fail(&mut self, listener: u64, shown: Notification, errno: i32) {
        if let Some(listener) = self.listeners.get(&listener) {
            // As in `resume`.
            let _ = listener.fail(shown.id, errno);
        }
        self.note(listener, shown.id, SeccompCallLedgerWriter::answer);
    }
}

const STOP: u64 = 0;
const TIMER: u64 = 1;
/// "Try again", of errno(3).
const EAGAIN: i32 = 11;
/// "Permission denied".
const EACCES: i32 = 13;
/// "Interrupted system call".
const EINTR: i32 = 4;
