//! CoDel against a transcription of RFC 8289, section 5.5, on an overloaded queue.

use std::collections::VecDeque;

use windtunnel_model::profile::{CodelParameters, QueueDiscipline, QueueLimit};
use windtunnel_model::{DropReason, LinkProfile, Packets, Span};
use windtunnel_wire::{build, ecn, vnet};

use crate::support::{MS, Net, pair, rated};

const TARGET: u64 = 5 * MS;
const INTERVAL: u64 = 100 * MS;
/// 1000 bytes at 8 Mbit/s.
const SERVICE: u64 = MS;

fn profile(ecn: bool) -> LinkProfile {
    let (target, interval) = (Span::from_nanos(TARGET), Span::from_nanos(INTERVAL));
    LinkProfile {
        discipline: QueueDiscipline::Codel(CodelParameters { target, interval, ecn }),
        queue: Some(QueueLimit::Packets(Packets(1000))),
        ..rated(8_000_000)
    }
}

/// The state of the RFC's pseudo-code; times in ns, packets are their arrival times and tags.
#[derive(Default)]
struct Reference {
    queue: VecDeque<(u64, u32)>,
    first_above_time: u64,
    drop_next: u64,
    count: u64,
    lastcount: u64,
    dropping: bool,
    dropped: Vec<u32>,
}

impl Reference {
    fn dodequeue(&mut self, now: u64) -> (Option<(u64, u32)>, bool) {
        let packet = self.queue.pop_front();
        let mut ok_to_drop = false;
        match packet {
            None => self.first_above_time = 0,
            Some((arrival, _)) => {
                let bytes = self.queue.len() * 1000;
                if now - arrival < TARGET || bytes <= 1500 {
                    self.first_above_time = 0;
                } else if self.first_above_time == 0 {
                    self.first_above_time = now + INTERVAL;
                } else if now >= self.first_above_time {
                    ok_to_drop = true;
                }
            }
        }
        (packet, ok_to_drop)
    }

    fn control_law(from: u64, count: u64) -> u64 {
        let step = (u128::from(INTERVAL).pow(2) / u128::from(count)).isqrt();
        from + u64::try_from(step).unwrap()
    }

    fn deque(&mut self, now: u64) -> Option<u32> {
        let (mut packet, mut ok_to_drop) = self.dodequeue(now);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                self.dropped.extend(packet.map(|packet| packet.1));
                self.count += 1;
                (packet, ok_to_drop) = self.dodequeue(now);
                if !ok_to_drop {
                    self.dropping = false;
                } else {
                    self.drop_next = Self::control_law(self.drop_next, self.count);
                }
            }
        } else if ok_to_drop {
            self.dropped.extend(packet.map(|packet| packet.1));
            (packet, _) = self.dodequeue(now);
            self.dropping = true;
            let delta = self.count - self.lastcount;
            self.count = 1;
            if delta > 1 && now - self.drop_next < 16 * INTERVAL {
                self.count = delta;
            }
            self.drop_next = Self::control_law(now, self.count);
            self.lastcount = self.count;
        }
        packet.map(|packet| packet.1)
    }
}

/// Bursts and pauses: every 0.7 ms for a while, then every 1.6 ms.
fn arrivals() -> Vec<u64> {
    let mut at = 0;
    let gap =
        |index: u64| if (index / 1500).is_multiple_of(2) { 7 * MS / 10 } else { 16 * MS / 10 };
    (0..6000)
        .map(|index| {
            at += gap(index);
            at
        })
        .collect()
}

fn reference(arrivals: &[u64]) -> (Vec<(u64, u32)>, Vec<u32>) {
    let mut state = Reference::default();
    let mut out = Vec::new();
    let mut pending = arrivals.iter().copied().zip(0u32..).peekable();
    let mut free_at = 0;
    loop {
        // An end of transmission comes before an arrival of the same time.
        let idle_until = pending.peek().map_or(u64::MAX, |(at, _)| *at);
        if free_at <= idle_until
            && let Some(tag) = state.deque(free_at)
        {
            free_at += SERVICE;
            out.push((free_at, tag));
            while let Some(arrival) = pending.next_if(|(at, _)| *at < free_at) {
                state.queue.push_back(arrival);
            }
            continue;
        }
        let Some(arrival) = pending.next() else { return (out, state.dropped) };
        state.queue.push_back(arrival);
        free_at = free_at.max(arrival.0);
    }
}

#[test]
fn drops_and_departures_are_those_of_the_rfc() {
    let arrivals = arrivals();
    let mut net = Net::new(pair(1, profile(false)));
    for (at, tag) in arrivals.iter().zip(0..) {
        net.send_udp(*at, 1000, tag);
    }
    net.finish();
    let (expected, dropped) = reference(&arrivals);
    assert!(dropped.len() > 40, "the load makes it drop: {}", dropped.len());
    assert_eq!(net.arrivals(), expected);
    let count = u64::try_from(dropped.len()).unwrap();
    assert_eq!(net.lane(0).dropped[DropReason::Aqm], count);
    net.check_conservation();
}

#[test]
fn capable_senders_are_marked_instead() {
    let arrivals = arrivals();
    let mut net = Net::new(pair(1, profile(true)));
    for (at, tag) in arrivals.iter().zip(0..) {
        let frame = build::with_ecn(net.udp(1000, tag), 2);
        net.send(*at, 0, vnet::VirtioNetHeader::default(), &frame);
    }
    net.finish();
    assert_eq!(net.lane(0).dropped.total(), 0);
    assert_eq!(net.out.len(), arrivals.len());
    let marked =
        |out: &&crate::support::Out| ecn::codepoint(&out.frame) == Some(ecn::EcnCodepoint::Ce);
    let marked = u64::try_from(net.out.iter().filter(marked).count()).unwrap();
    assert_eq!(net.lane(0).marked, marked);
    assert!(marked > 40, "{marked}");
}

#[test]
fn a_queue_below_the_target_is_left_alone() {
    let mut net = Net::new(pair(1, profile(false)));
    // Bursts of four every 4 ms: full load, and no packet waits longer than 3 ms.
    (0..4000u32).for_each(|tag| net.send_udp(u64::from(tag / 4) * 4 * MS, 1000, tag));
    net.finish();
    assert_eq!(net.out.len(), 4000);
}
