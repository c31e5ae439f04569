//! PIE against a transcription of RFC 8033, appendix A, in floating point, and against what it
//! promises.

use std::collections::VecDeque;

use windtunnel_model::profile::{PieParameters, QueueDiscipline, QueueLimit};
use windtunnel_model::random::RandomStream;
use windtunnel_model::{DropReason, LinkDirection, LinkProfile, Packets, Span};
use windtunnel_wire::{build, ecn, vnet};

use crate::support::{MS, Net, pair, rated};

/// 1000 bytes at 8 Mbit/s.
pub(crate) const SERVICE: u64 = MS;
const QDELAY_REF: f64 = 0.015;
const T_UPDATE: u64 = 15 * MS;

fn profile(pie: PieParameters) -> LinkProfile {
    LinkProfile {
        discipline: QueueDiscipline::Pie(pie),
        queue: Some(QueueLimit::Packets(Packets(1000))),
        ..rated(8_000_000)
    }
}

/// The RFC's variables; delays in seconds.
struct Reference {
    derandomise: bool,
    draws: RandomStream,
    burst_allowance: f64,
    drop_prob: f64,
    accu_prob: f64,
    qdelay_old: f64,
    /// When the next update is due, from the first packet on.
    update: Option<u64>,
    waiting: VecDeque<u32>,
    dropped: Vec<u32>,
}

impl Reference {
    fn qdelay(&self) -> f64 {
        f64::from(u32::try_from(self.waiting.len()).unwrap()) * 0.001
    }

    fn drop_early(&mut self, tag: u32) -> bool {
        if (self.qdelay_old < QDELAY_REF / 2.0 && self.drop_prob < 0.2) || self.waiting.len() <= 3 {
            return false;
        }
        if self.derandomise {
            self.accu_prob = if self.drop_prob == 0.0 { 0.0 } else { self.accu_prob };
            self.accu_prob += self.drop_prob;
            if self.accu_prob < 0.85 {
                return false;
            }
            if self.accu_prob >= 8.5 {
                return true;
            }
        }
        let draw = self.draws.at(u64::from(tag) + 1);
        f64::from(u32::try_from(draw >> 32).unwrap()) / 4_294_967_296.0 < self.drop_prob
    }

    fn calculate_drop_prob(&mut self) {
        let qdelay = self.qdelay();
        let mut p = 0.125 * (qdelay - QDELAY_REF) + 1.25 * (qdelay - self.qdelay_old);
        p /= match self.drop_prob {
            prob if prob < 0.000_001 => 2048.0,
            prob if prob < 0.000_01 => 512.0,
            prob if prob < 0.000_1 => 128.0,
            prob if prob < 0.001 => 32.0,
            prob if prob < 0.01 => 8.0,
            prob if prob < 0.1 => 2.0,
            _ => 1.0,
        };
        if self.drop_prob >= 0.1 && p > 0.02 {
            p = 0.02;
        }
        self.drop_prob += p;
        if qdelay == 0.0 && self.qdelay_old == 0.0 {
            self.drop_prob *= 0.98;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        self.qdelay_old = qdelay;
        self.burst_allowance = (self.burst_allowance - 0.015).max(0.0);
    }
}

impl Judge for Reference {
    fn enque(&mut self, now: u64, tag: u32) {
        self.update.get_or_insert(now + T_UPDATE);
        let calm = self.qdelay() < QDELAY_REF / 2.0 && self.qdelay_old < QDELAY_REF / 2.0;
        if self.drop_prob == 0.0 && calm {
            self.burst_allowance = 0.15;
        }
        if self.burst_allowance <= 1e-9 && self.drop_early(tag) {
            self.accu_prob = 0.0;
            self.dropped.push(tag);
        } else {
            self.waiting.push_back(tag);
        }
    }

    fn updates(&mut self, now: u64) {
        while let Some(due) = self.update.filter(|due| *due <= now) {
            self.calculate_drop_prob();
            self.update = Some(due + T_UPDATE);
        }
    }

    fn dequeue(&mut self) -> Option<u32> {
        self.waiting.pop_front()
    }
}

/// Overload, calm, bursts, a pause; never at a whole microsecond, so that no update falls on a
/// packet.
pub(crate) fn arrivals() -> Vec<u64> {
    let mut at = 0;
    (0..14_000u64)
        .map(|n| {
            at += match n / 2000 {
                0 => 12 * MS / 10,
                1 => 7 * MS / 10,
                2 => 3 * MS,
                3 => 98 * MS / 100,
                4 => 5 * MS / 10,
                _ => 9 * MS / 10,
            };
            at += if n % 2000 == 1999 { 400 * MS + 11 } else { 0 };
            at + 7
        })
        .collect()
}

fn reference(derandomise: bool, arrivals: &[u64]) -> (Vec<(u64, u32)>, Reference) {
    let mut state = Reference {
        derandomise,
        draws: RandomStream::derive(1, "a--b", LinkDirection::Up, "queue"),
        burst_allowance: 0.0,
        drop_prob: 0.0,
        accu_prob: 0.0,
        qdelay_old: 0.0,
        update: None,
        waiting: VecDeque::new(),
        dropped: Vec::new(),
    };
    let out = departures(&mut state, arrivals);
    (out, state)
}

/// A discipline that decides about arrivals, on a line that takes a packet in [`SERVICE`].
pub(crate) trait Judge {
    /// Every update before or at `now`: what happens at the same time comes after it.
    fn updates(&mut self, now: u64);
    /// A packet comes.
    fn enque(&mut self, now: u64, tag: u32);
    /// The next packet.
    fn dequeue(&mut self) -> Option<u32>;
}

/// When which of the packets that come at these times has left.
pub(crate) fn departures(state: &mut impl Judge, arrivals: &[u64]) -> Vec<(u64, u32)> {
    let mut out = Vec::new();
    let (mut free_at, mut idle) = (0, true);
    let next = |arrivals: &[u64], index: usize| arrivals.get(index).copied().unwrap_or(u64::MAX);
    let mut index = 0;
    while index < arrivals.len() || !idle {
        if !idle && free_at <= next(arrivals, index) {
            state.updates(free_at);
            match state.dequeue() {
                Some(tag) => {
                    free_at += SERVICE;
                    out.push((free_at, tag));
                }
                None => idle = true,
            }
            continue;
        }
        let at = next(arrivals, index);
        state.updates(at);
        state.enque(at, u32::try_from(index).unwrap());
        if idle && let Some(tag) = state.dequeue() {
            free_at = at + SERVICE;
            out.push((free_at, tag));
            idle = false;
        }
        index += 1;
    }
    out
}

#[test]
fn drops_and_departures_are_those_of_the_rfc() {
    for derandomise in [false, true] {
        let arrivals = arrivals();
        let mut net = Net::new(pair(
            1,
            profile(PieParameters { derandomise, ecn: false, ..PieParameters::default() }),
        ));
        for (at, tag) in arrivals.iter().zip(0..) {
            net.send_udp(*at, 1000, tag);
        }
        net.finish();
        let (expected, state) = reference(derandomise, &arrivals);
        assert!(state.dropped.len() > 1000, "the load makes it drop: {}", state.dropped.len());
        assert_eq!(net.arrivals(), expected);
        let count = u64::try_from(state.dropped.len()).unwrap();
        assert_eq!(net.lane(0).dropped[DropReason::Aqm], count);
        net.check_conservation();
    }
}

/// Sends at `gap`, and answers how many ms the packets sent from `from` on waited, on average.
fn mean_delay_ms(net: &mut Net, gap: u64, count: u32, from: u32) -> u64 {
    for tag in 0..count {
        net.send_udp(u64::from(tag) * gap, 1000, tag);
    }
    net.finish();
    let waits: Vec<u64> = net
        .arrivals()
        .into_iter()
        .filter(|(_, tag)| *tag >= from)
        .map(|(at, tag)| at - u64::from(tag) * gap - SERVICE)
        .collect();
    waits.iter().sum::<u64>() / u64::try_from(waits.len()).unwrap() / MS
}

/// The delay settles at the target under constant overload, with the link that `profile` makes of a
/// target.
pub(crate) fn assert_settles(profile: impl Fn(Span) -> LinkProfile) {
    for (target, gap) in [(15, 9 * MS / 10), (15, 7 * MS / 10), (40, 8 * MS / 10)] {
        let mut net = Net::new(pair(1, profile(Span::from_millis(target))));
        let mean = mean_delay_ms(&mut net, gap, 120_000, 40_000);
        assert!(mean.abs_diff(target) <= 1, "{mean} ms instead of {target}");
    }
}

/// Capable senders, with 1.05 times the rate: marks do not help, so the share rises until it is
/// more than what is marked, and then they are dropped.
pub(crate) fn assert_marks_then_drops(profile: LinkProfile) {
    let mut net = Net::new(pair(1, profile));
    for tag in 0..40_000u32 {
        let frame = build::with_ecn(net.udp(1000, tag), 2);
        net.send(u64::from(tag) * 95 * MS / 100, 0, vnet::VirtioNetHeader::default(), &frame);
    }
    net.finish();
    let ce = |frame: &[u8]| ecn::codepoint(frame) == Some(ecn::EcnCodepoint::Ce);
    let marked = net.out.iter().filter(|out| ce(&out.frame)).count();
    assert_eq!(net.lane(0).marked, u64::try_from(marked).unwrap());
    assert!(marked > 500, "{marked}");
    assert!(net.lane(0).dropped[DropReason::Aqm] > 500, "above the limit they are dropped");
}

/// After a load and its end, the engine has nothing to wake up for.
pub(crate) fn assert_no_timer_when_idle(profile: LinkProfile) {
    let mut net = Net::new(pair(1, profile));
    for tag in 0..2000u32 {
        net.send_udp(u64::from(tag) * MS / 2, 1000, tag);
    }
    net.finish();
    assert_eq!(net.engine.poll_timeout(), None);
}

#[test]
fn the_delay_settles_at_the_target_under_constant_overload() {
    assert_settles(|target| profile(PieParameters { target, ..PieParameters::default() }));
}

#[test]
fn a_burst_after_calm_passes_untouched() {
    let mut net = Net::new(pair(1, profile(PieParameters::default())));
    // Twice the rate for 149 ms builds up a delay of 74 ms, five times the target.
    for tag in 0..298u32 {
        net.send_udp(1000 * MS + u64::from(tag) * MS / 2, 1000, tag);
    }
    assert_eq!(net.lane(0).dropped.total(), 0);
    assert!(net.lane(0).queue_packets > 140);
    // It goes on: now packets are dropped.
    for tag in 298..3000u32 {
        net.send_udp(1000 * MS + u64::from(tag) * MS / 2, 1000, tag);
    }
    assert!(net.lane(0).dropped[DropReason::Aqm] > 100);
}

#[test]
fn capable_senders_are_marked_up_to_ten_per_cent() {
    assert_marks_then_drops(profile(PieParameters::default()));
}

#[test]
fn no_timer_is_set_for_updates_on_an_idle_link() {
    assert_no_timer_when_idle(profile(PieParameters::default()));
}
