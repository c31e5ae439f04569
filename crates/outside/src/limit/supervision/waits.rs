//! Calls that wait: for the limit, or for a message.

use std::io;
use std::os::fd::OwnedFd;

use windtunnel_budget::pacing::{PacingRegion, rescaled};
use windtunnel_notification::watcher::{CallAnswer, WaitingCall};
use windtunnel_sys::clock;

use super::look::{CallInspection, CallInspector, ENDING, has_signal};
use super::sockets::CallAttribution;

/// A call that waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct SuspendedCall {
    pub(super) since_ns: u64,
    /// When the call fails with `EAGAIN` (`SO_SNDTIMEO`, `SO_RCVTIMEO`).
    pub(super) late_ns: Option<u64>,
    /// What it waits for; `None`: for a message.
    pub(super) claim: Option<BandwidthClaim>,
}

/// Bytes that are claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BandwidthClaim {
    pub(super) used: CallAttribution,
    pub(super) bytes: u64,
    /// The rate at the time of the claim, in bits a second.
    pub(super) rate_bps: u64,
    /// When they may move.
    pub(super) at_ns: u64,
}

impl BandwidthClaim {
    /// The same at the rate that there is now.
    pub(super) fn at_rate_of(mut self, region: &PacingRegion, now_ns: u64) -> BandwidthClaim {
        let rate_bps = region.rate_bps(self.used.direction);
        self.at_ns = match rate_bps {
            0 => now_ns,
            _ => rescaled(self.at_ns, now_ns, self.rate_bps, rate_bps),
        };
        self.rate_bps = rate_bps;
        self
    }
}

impl SuspendedCall {
    /// When it is to be looked at next.
    fn due_ns(&self, now_ns: u64) -> u64 {
        let due_ns = now_ns + SIGNALS_NS;
        let due_ns = self.claim.map_or(due_ns, |claim| claim.at_ns.min(due_ns));
        self.late_ns.map_or(due_ns, |late_ns| late_ns.min(due_ns))
    }

    fn is_late(&self, now_ns: u64) -> bool {
        self.late_ns.is_some_and(|late_ns| late_ns <= now_ns)
    }
}

impl CallInspector {
    /// Has a call wait; for a message: until this copy of its socket is readable.
    pub(super) fn hold(
        &mut self,
        call: &WaitingCall,
        suspended: SuspendedCall,
        readable: Option<OwnedFd>,
        now_ns: u64,
    ) -> CallAnswer {
        self.held.insert(key(call), suspended);
        CallAnswer::Hold { until_ns: suspended.due_ns(now_ns), readable }
    }

    /// Looks at a call that has waited.
    pub(super) fn look_again(
        &mut self,
        call: &WaitingCall,
        now_ns: u64,
        is_ready: bool,
    ) -> io::Result<CallAnswer> {
        let Some(held) = self.held.remove(&key(call)) else {
            return self.look(CallInspection::first(call));
        };
        match held.claim {
            Some(claim) => {
                let claim = claim.at_rate_of(&self.region, now_ns);
                Ok(self.end_wait(call, held, claim, now_ns))
            }
            None if !is_ready && held.is_late(now_ns) => Ok(CallAnswer::Fail(EAGAIN)),
            None => {
                let late_ns = held.late_ns;
                self.look(CallInspection { call, now_ns, is_ready, late_ns })
            }
        }
    }

    /// A call has waited for the limit: it goes on, or ends by a timeout or a signal, or waits on.
    fn end_wait(
        &mut self,
        call: &WaitingCall,
        held: SuspendedCall,
        claim: BandwidthClaim,
        now_ns: u64,
    ) -> CallAnswer {
        let (is_due, is_late) = (claim.at_ns <= now_ns, held.is_late(now_ns));
        // Only a thread that goes on runs the handler of a signal.
        let is_ended = !is_due && has_signal(call.shown.thread, ENDING);
        if !is_due && !is_late && !is_ended {
            return self.hold(call, SuspendedCall { claim: Some(claim), ..held }, None, now_ns);
        }
        let waited_ns = now_ns.saturating_sub(held.since_ns);
        self.region.count_wait(claim.used.direction, waited_ns);
        if is_due {
            self.let_go(&claim, now_ns);
            return CallAnswer::Continue;
        }
        self.give_back(&claim, now_ns);
        CallAnswer::Fail(if is_late { EAGAIN } else { EINTR })
    }

    /// A call is over: one that has gone with its thread moves nothing.
    pub(super) fn forget_held(&mut self, call: &WaitingCall) {
        if let Some(SuspendedCall { since_ns, claim: Some(claim), .. }) =
            self.held.remove(&key(call))
        {
            let now_ns = clock::monotonic_ns();
            let waited_ns = now_ns.saturating_sub(since_ns);
            self.region.count_wait(claim.used.direction, waited_ns);
            self.give_back(&claim, now_ns);
        }
    }

    /// When something is due beside calls: the rates were looked at then.
    pub(super) fn next_ns(&self, looked_ns: u64) -> Option<u64> {
        let rates_ns = (!self.held.is_empty()).then_some(looked_ns + RATES_NS);
        [rates_ns, self.retries.next_ns(looked_ns)].into_iter().flatten().min()
    }
}

/// A call, by its listener and its number there.
fn key(call: &WaitingCall) -> (u64, u64) {
    (call.listener, call.shown.id)
}

/// From one look for signals that a program handles to the next, while its call waits.
const SIGNALS_NS: u64 = 100_000_000;
/// From one look at the rates to the next, while calls wait for them.
pub(super) const RATES_NS: u64 = 50_000_000;
/// "Try again", of errno(3).
pub(super) const EAGAIN: i32 = 11;
/// "Interrupted system call".
const EINTR: i32 = 4;

#[cfg(test)]
mod tests {
    use windtunnel_budget::pacing::{PacingBudgetScope, PacingController, TransferDirection};
    use windtunnel_sys::limited::MappedPacingRegion;
    use windtunnel_sys::seccomp::Notification;

    use super::*;

    /// A limit of its own.
    fn region(rates: [u64; 2]) -> MappedPacingRegion {
        let region = MappedPacingRegion::create_in(&tempfile::tempfile().unwrap()).unwrap();
        region.begin(0, 0, PacingBudgetScope::Tree, rates);
        region
    }

    fn waiting(at_ns: u64, late_ns: Option<u64>) -> SuspendedCall {
        let direction = TransferDirection::Send;
        let used = CallAttribution {
            cookie: 1,
            key: 0,
            direction,
            thread: 1,
            is_tcp: true,
            may_block: true,
        };
        let claim = Some(BandwidthClaim { used, bytes: 1, rate_bps: 8_000, at_ns });
        SuspendedCall { since_ns: 0, late_ns, claim }
    }

    /// A call of no thread.
    fn call(id: u64) -> WaitingCall {
        let shown = Notification { id, thread: 0, call: 0, arguments: [0; 6] };
        WaitingCall { listener: 1, door: 0, shown, since_ns: 0 }
    }

    fn until_ns(answer: CallAnswer) -> u64 {
        match answer {
            CallAnswer::Hold { until_ns, .. } => until_ns,
            other => panic!("it waits: {other:?}"),
        }
    }

    #[test]
    fn a_call_waits_for_its_time_and_signals_are_looked_for_meanwhile() {
        assert_eq!(waiting(30, None).due_ns(0), 30);
        assert_eq!(waiting(u64::MAX, None).due_ns(5), 5 + SIGNALS_NS);
    }

    #[test]
    fn a_timeout_of_the_socket_ends_a_wait_before_its_time() {
        let mut inspector = CallInspector::new(region([8_000, 0]));
        let held = inspector.hold(&call(1), waiting(1_000, Some(100)), None, 0);
        assert_eq!(until_ns(held), 100);
        let ended = inspector.look_again(&call(1), 100, false).unwrap();
        assert!(matches!(ended, CallAnswer::Fail(EAGAIN)), "{ended:?}");
        assert_eq!(inspector.next_ns(100), None);
    }

    #[test]
    fn another_rate_moves_the_times_of_those_that_wait() {
        let mut inspector = CallInspector::new(region([8_000, 0]));
        let held = inspector.hold(&call(1), waiting(1_000, None), None, 0);
        assert_eq!((until_ns(held), inspector.next_ns(0)), (1_000, Some(RATES_NS)));
        inspector.region.set_rate(0, TransferDirection::Send, 16_000);
        // That there is no such thread is as a signal: it is not asked where the time has come.
        let at_ns = waiting(1_000, None).claim.map(|it| it.at_rate_of(&inspector.region, 0).at_ns);
        assert_eq!(at_ns, Some(500));
        inspector.region.set_rate(0, TransferDirection::Send, 0);
        let ended = inspector.look_again(&call(1), 0, false).unwrap();
        assert!(matches!(ended, CallAnswer::Continue), "{ended:?}");
    }

    #[test]
    fn a_call_that_has_gone_moves_nothing() {
        let mut inspector = CallInspector::new(region([8_000, 0]));
        let budget =
            |it: &CallInspector| it.region.slot(0, 0).budget(TransferDirection::Send).free_at_ns();
        let _ = inspector.region.slot(0, 0).budget(TransferDirection::Send).claim(0, 8_000, 1);
        let before = budget(&inspector);
        inspector.hold(&call(1), waiting(1_000, None), None, 0);
        inspector.forget_held(&call(1));
        assert!(budget(&inspector) < before);
        assert_eq!(inspector.next_ns(0), None);
    }
}
