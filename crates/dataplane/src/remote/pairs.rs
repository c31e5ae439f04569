//! What went between this machine and each of the others, and when one of them answered nothing.

use serde::{Deserialize, Serialize};
use windtunnel_model::{Span, Time};
use windtunnel_tunnel::{PeerCounters, TunnelTraffic as Counted, UdpTunnel};

/// What went between this machine and another. The other's view of it is needed to count what was
/// lost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerTraffic {
    /// Number of the other machine.
    pub member: u16,
    pub sent: OneWay,
    pub received: OneWay,
    /// Datagrams of it that were overtaken by others and have not come.
    pub overtaken: u64,
    /// When probes to it went unanswered, after the beginning of the run.
    pub silences: Vec<(Span, Span)>,
}

/// Datagrams with packets that went one way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OneWay {
    pub datagrams: u64,
    pub packets: u64,
    pub bytes: u64,
    /// Datagrams before the run began, which are not among these.
    pub datagrams_before: u64,
}

/// A machine has become silent, or answers again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerSilencePeriod {
    pub member: u16,
    pub since: Time,
    /// When it answered again; `None`: it does not yet.
    pub until: Option<Time>,
}

/// Watches the ways to all other machines.
#[derive(Debug)]
pub(super) struct PeerPathMonitor {
    all: Vec<PeerSilenceMonitor>,
    next: Time,
    origin: Time,
}

#[derive(Debug)]
struct PeerSilenceMonitor {
    member: u16,
    before: PeerCounters,
    silent_since: Option<Time>,
    silences: Vec<(Time, Time)>,
    /// Whether nothing is expected of it any more.
    is_gone: bool,
}

impl PeerPathMonitor {
    pub(super) fn new(others: impl Iterator<Item = u16>) -> Self {
        let pair = |member| PeerSilenceMonitor {
            member,
            before: PeerCounters::default(),
            silent_since: None,
            silences: Vec::new(),
            is_gone: false,
        };
        PeerPathMonitor { all: others.map(pair).collect(), next: Time::ZERO, origin: Time::ZERO }
    }

    /// The run begins.
    pub(super) fn begin(&mut self, origin: Time, tunnel: &UdpTunnel) {
        self.origin = origin;
        for pair in &mut self.all {
            pair.before = tunnel.peer_counters(pair.member).unwrap_or_default();
            pair.silences.clear();
            pair.silent_since = None;
        }
    }

    /// Another machine is lost, or its part is over: its silence means nothing more.
    pub(super) fn forget(&mut self, now: Time, member: u16) {
        let pairs = self.all.iter_mut().filter(|pair| pair.member == member && !pair.is_gone);
        pairs.for_each(|pair| pair.leave(now));
    }

    /// The same of all.
    pub(super) fn forget_all(&mut self, now: Time) {
        self.all.iter_mut().filter(|pair| !pair.is_gone).for_each(|pair| pair.leave(now));
    }

    /// Members that have become silent or answer again. Looks ten times a second.
    pub(super) fn watch(
        &mut self,
        now: Time,
        silent_since: impl Fn(u16) -> Option<Time>,
    ) -> Vec<PeerSilencePeriod> {
        if now < self.next {
            return Vec::new();
        }
        self.next = now + INTERVAL;
        let pairs = self.all.iter_mut().filter(|pair| !pair.is_gone);
        pairs.filter_map(|pair| pair.watch(now, silent_since(pair.member))).collect()
    }

    /// Datagrams sent so far to each, by member.
    pub(super) fn sent(&self, tunnel: &UdpTunnel) -> Vec<(u16, u64)> {
        let sent =
            |pair: &PeerSilenceMonitor| Some(tunnel.peer_counters(pair.member)?.sent.datagrams);
        self.all.iter().filter_map(|pair| Some((pair.member, sent(pair)?))).collect()
    }

    /// What has been counted since the run began.
    pub(super) fn traffic(&self, tunnel: &UdpTunnel) -> Vec<PeerTraffic> {
        let of = |pair: &PeerSilenceMonitor| {
            pair.traffic(tunnel.peer_counters(pair.member)?, self.origin)
        };
        self.all.iter().filter_map(of).collect()
    }
}

impl PeerSilenceMonitor {
    fn watch(&mut self, now: Time, since: Option<Time>) -> Option<PeerSilencePeriod> {
        let member = self.member;
        match (self.silent_since, since) {
            (None, Some(since)) => {
                self.silent_since = Some(since);
                Some(PeerSilencePeriod { member, since, until: None })
            }
            (Some(since), None) => {
                self.end_silence(since, now);
                Some(PeerSilencePeriod { member, since, until: Some(now) })
            }
            _ => None,
        }
    }

    fn leave(&mut self, now: Time) {
        self.is_gone = true;
        if let Some(since) = self.silent_since {
            self.end_silence(since, now);
        }
    }

    fn end_silence(&mut self, since: Time, now: Time) {
        self.silent_since = None;
        if self.silences.len() < SILENCES_MAX {
            self.silences.push((since, now));
        } else if let Some(last) = self.silences.last_mut() {
            // So many that the rest counts as one.
            last.1 = now;
        }
    }

    fn traffic(&self, now: PeerCounters, origin: Time) -> Option<PeerTraffic> {
        let after = |time: Time| time.since(origin);
        let silences = self.silences.iter().map(|(from, to)| (after(*from), after(*to)));
        Some(PeerTraffic {
            member: self.member,
            sent: one_way(now.sent, self.before.sent),
            received: one_way(now.received, self.before.received),
            overtaken: now.lost.saturating_sub(self.before.lost),
            silences: silences.collect(),
        })
    }
}

fn one_way(now: Counted, before: Counted) -> OneWay {
    OneWay {
        datagrams: now.datagrams - before.datagrams,
        packets: now.frames - before.frames,
        bytes: now.bytes - before.bytes,
        datagrams_before: before.datagrams,
    }
}

const INTERVAL: Span = Span::from_millis(100);
const SILENCES_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn a_silence_is_reported_when_it_is_known_and_when_it_is_over() {
        let mut pairs = PeerPathMonitor::new([1, 2].into_iter());
        let silent = |of: u16| (of == 2).then_some(at(1000));
        assert_eq!(pairs.watch(at(1500), |_| None), []);
        let began = PeerSilencePeriod { member: 2, since: at(1000), until: None };
        assert_eq!(pairs.watch(at(3000), silent), [began]);
        assert_eq!(pairs.watch(at(3200), silent), []);
        let ended = PeerSilencePeriod { until: Some(at(4000)), ..began };
        assert_eq!(pairs.watch(at(4000), |_| None), [ended]);
        assert_eq!(pairs.all[1].silences, [(at(1000), at(4000))]);
        assert_eq!(pairs.all[0].silences, []);
    }

    #[test]
    fn a_member_that_left_is_not_silent_and_its_earlier_silence_is_kept() {
        let mut pairs = PeerPathMonitor::new([1, 2].into_iter());
        assert_eq!(pairs.watch(at(3000), |_| Some(at(500))).len(), 2);
        pairs.forget(at(5000), 1);
        assert_eq!(pairs.watch(at(6000), |_| None).len(), 1);
        pairs.forget_all(at(7000));
        assert_eq!(pairs.watch(at(9000), |_| Some(at(7000))), []);
        assert_eq!(pairs.all[0].silences, [(at(500), at(5000))]);
        assert_eq!(pairs.all[1].silences, [(at(500), at(6000))]);
    }
}
