//! Calls that fail with `EAGAIN`, and that are tried again.

use windtunnel_notification::tcp_info::state::CLOSED;
use windtunnel_notification::watcher::CallAnswer;
use windtunnel_sys::socket;

use super::super::edges;
use super::super::retries::{Retry, RetryAction, RetryTiming, StreamDirection};
use super::super::sockets::CallAttribution;
use super::super::waits::{BandwidthClaim, EAGAIN};
use super::CallInspector;

impl CallInspector {
    /// Whether a call on a stream failed and is tried again: the claim of that is there. None is kept for
    /// one that may block now, nor where the connection has ended.
    pub(super) fn try_again(
        &mut self,
        used: CallAttribution,
        state: u8,
        now_ns: u64,
    ) -> Option<CallAnswer> {
        let of = StreamDirection { cookie: used.cookie, direction: used.direction };
        match self.retries.ask(of, now_ns) {
            RetryTiming::First => None,
            RetryTiming::Early if used.may_block || state == CLOSED => {
                self.give_up(of, now_ns);
                None
            }
            RetryTiming::Early => Some(CallAnswer::Fail(EAGAIN)),
            RetryTiming::InTime(retry) => {
                let waited_ns = now_ns.saturating_sub(retry.since_ns);
                self.region.count_wait(used.direction, waited_ns);
                self.let_go(&BandwidthClaim { used, ..retry.claim }, now_ns);
                Some(CallAnswer::Continue)
            }
        }
    }

    /// What a call claimed that is not tried again is given back.
    pub(super) fn give_up(&mut self, of: StreamDirection, now_ns: u64) {
        if let Some(retry) = self.retries.take(of) {
            self.give_back(&retry.claim, now_ns);
        }
    }

    /// Whether a call that would wait fails instead: one that must not block, where its program can be
    /// notified when it is time.
    pub(super) fn put_off(
        &mut self,
        claim: &BandwidthClaim,
        pid: i32,
        descriptor: i32,
        now_ns: u64,
    ) -> bool {
        let CallAttribution { cookie, direction, is_tcp, may_block, .. } = claim.used;
        let waits_long = claim.at_ns.saturating_sub(now_ns) > SHORT_NS;
        let is_put_off = is_tcp
            && !may_block
            && waits_long
            && self.edges.are_watched(pid, descriptor, cookie, direction, now_ns);
        if is_put_off {
            self.retries.add(Retry::new(*claim, pid, descriptor, now_ns));
        }
        is_put_off
    }

    /// Programs are notified for which calls it is time.
    pub(in crate::limit::supervision) fn announce(&mut self, now_ns: u64) {
        while let Some(due) = self.retries.take_due(now_ns) {
            match due {
                RetryAction::Announce(Retry { claim, pid, descriptor, .. }) => {
                    let CallAttribution { cookie, direction, .. } = claim.used;
                    let copy = self.copy(pid, descriptor).ok().flatten();
                    let copy = copy.filter(|it| socket::cookie(it).ok() == Some(cookie));
                    // Of one that is closed meanwhile the claim is given back a second later.
                    let _ = copy.map(|copy| edges::make(copy, direction));
                }
                RetryAction::GiveUp(retry) => self.give_back(&retry.claim, now_ns),
            }
        }
    }
}

/// A call that must not block waits for so long.
const SHORT_NS: u64 = 1_000_000;
