//! What is asked whether a call may go on: about where it sends to, and about its bytes.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::Ordering;

use windtunnel_budget::pacing::Escape;
use windtunnel_limit::SeccompCallLedger;
use windtunnel_limit::attach::ledger::SeccompCallLedgerWriter;
use windtunnel_notification::watcher::{CallAnswer, CallWatcher, WaitingCall};
use windtunnel_sys::clock;
use windtunnel_sys::limited::MappedPacingRegion;
use windtunnel_sys::seccomp::running::refusal_of;

use super::judge::{DestinationPolicy, RefusedDestinations};
use super::look::{CallInspection, CallInspector};

/// The watcher of a limit.
#[derive(Debug)]
pub(crate) struct CallLimiter {
    looker: CallInspector,
    /// What judges where programs send to, if that is limited.
    judge: Option<DestinationPolicy>,
    /// Whether bytes are limited.
    moves: bool,
    /// What the keeper of programs that ran already has to know, and its listeners by their order.
    notes: Option<(SeccompCallLedgerWriter, BTreeMap<u64, usize>)>,
    /// Of the rates that claims were made at.
    generation: u32,
    /// When the rates were looked at.
    looked_ns: u64,
}

impl CallLimiter {
    /// Calls are held to the rates of the region if bytes are limited (`moves`), and to what the judge
    /// allows. In the ledger a keeper finds what is not answered, of programs that ran already.
    pub(crate) fn new(
        region: MappedPacingRegion,
        moves: bool,
        judge: Option<DestinationPolicy>,
        ledger: Option<SeccompCallLedger>,
    ) -> CallLimiter {
        let generation = region.generation.load(Ordering::Acquire);
        let notes = ledger.map(|ledger| (ledger.notes(), BTreeMap::new()));
        let looker = CallInspector::new(region);
        CallLimiter { looker, judge, moves, notes, generation, looked_ns: 0 }
    }

    /// What was refused.
    pub(crate) fn refused(self) -> RefusedDestinations {
        self.judge.map(DestinationPolicy::refused).unwrap_or_default()
    }

    /// A call was taken, or is answered: the keeper has to know.
    fn note(&mut self, call: &WaitingCall, what: fn(&mut SeccompCallLedgerWriter, usize, u64)) {
        if let Some((notes, numbers)) = &mut self.notes
            && let Some(number) = numbers.get(&call.listener)
        {
            what(notes, *number, call.shown.id);
        }
    }

    /// So it has to know streams that the kernel paces since a call was looked at.
    fn note_paced(&mut self) {
        let paced = self.looker.take_paced();
        if let Some((notes, _)) = &mut self.notes {
            paced.into_iter().for_each(|(cookie, rate)| notes.pace(cookie, rate));
        }
    }
}

impl CallWatcher for CallLimiter {
    fn listener_added(&mut self, listener: u64) {
        if let Some((_, numbers)) = &mut self.notes {
            let next = numbers.len();
            numbers.insert(listener, next);
        }
    }

    fn program_missed(&mut self, _door: usize, _program: String, _why: String) {
        self.looker.region.count_escape(Escape::NoFilter);
    }

    fn listener_ended(&mut self, listener: u64, _door: usize) {
        self.looker.end(listener);
    }

    fn look(&mut self, call: &WaitingCall) -> io::Result<CallAnswer> {
        self.note(call, SeccompCallLedgerWriter::take);
        // The filter of a program that ran already leaves that to this thread.
        if let Some(errno) = refusal_of(&call.shown, self.judge.is_some()) {
            return Ok(CallAnswer::Fail(errno));
        }
        let judge = self.judge.as_mut();
        if judge.is_some_and(|judge| !judge.allows(&call.shown)) {
            return Ok(CallAnswer::Fail(EACCES));
        }
        if !self.moves {
            return Ok(CallAnswer::Continue);
        }
        let looked = self.looker.look(CallInspection::first(call));
        self.note_paced();
        looked
    }

    fn look_again(
        &mut self,
        call: &WaitingCall,
        now_ns: u64,
        is_readable: bool,
    ) -> io::Result<CallAnswer> {
        let looked = self.looker.look_again(call, now_ns, is_readable);
        self.note_paced();
        looked
    }

    fn cannot_look(&mut self, call: &WaitingCall, _why: String) {
        self.looker.cannot_look(call.shown.thread, clock::monotonic_ns());
    }

    fn answered(&mut self, call: &WaitingCall) {
        self.looker.forget_held(call);
        self.note(call, SeccompCallLedgerWriter::answer);
    }

    fn next_ns(&self) -> Option<u64> {
        self.looker.next_ns(self.looked_ns)
    }

    /// Other rates move the times of all that waits for them.
    fn do_due(&mut self, now_ns: u64) -> bool {
        self.looked_ns = now_ns;
        let generation = self.looker.region.generation.load(Ordering::Acquire);
        let is_changed = std::mem::replace(&mut self.generation, generation) != generation;
        if is_changed {
            self.looker.retries.follow(&self.looker.region, now_ns);
        }
        self.looker.announce(now_ns);
        is_changed
    }
}

/// "Permission denied", of errno(3).
const EACCES: i32 = 13;
