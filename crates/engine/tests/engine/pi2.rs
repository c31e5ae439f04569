//! PI2 against the paper's two lines in floating point, and against what it promises.

use std::collections::VecDeque;

use windtunnel_model::profile::{Pi2Parameters, QueueDiscipline, QueueLimit};
use windtunnel_model::random::RandomStream;
use windtunnel_model::{DropReason, LinkDirection, LinkProfile, Packets};

use crate::pie::{
    Judge, arrivals, assert_marks_then_drops, assert_no_timer_when_idle, assert_settles, departures,
};
use crate::support::{MS, Net, pair, rated};

const TARGET: f64 = 0.015;
const T_UPDATE: u64 = 15 * MS;
/// A second: 0.1 · 0.015/0.1² and 0.3/0.1.
const ALPHA: f64 = 0.15;
const BETA: f64 = 3.0;

fn profile(pi2: Pi2Parameters) -> LinkProfile {
    LinkProfile {
        discipline: QueueDiscipline::Pi2(pi2),
        queue: Some(QueueLimit::Packets(Packets(1000))),
        ..rated(8_000_000)
    }
}

/// Delays in seconds; a packet takes a millisecond.
struct Reference {
    draws: RandomStream,
    root: f64,
    delay_old: f64,
    update: Option<u64>,
    waiting: VecDeque<u32>,
    dropped: usize,
}

impl Judge for Reference {
    fn updates(&mut self, now: u64) {
        while let Some(due) = self.update.filter(|due| *due <= now) {
            let delay = f64::from(u32::try_from(self.waiting.len()).unwrap()) * 0.001;
            let step = ALPHA * (delay - TARGET) + BETA * (delay - self.delay_old);
            self.root = (self.root + step).clamp(0.0, 1.0);
            self.delay_old = delay;
            self.update = Some(due + T_UPDATE);
        }
    }

    fn enque(&mut self, now: u64, tag: u32) {
        self.update.get_or_insert(now + T_UPDATE);
        let draw = self.draws.at(u64::from(tag) + 1);
        let drawn = f64::from(u32::try_from(draw >> 32).unwrap()) / 4_294_967_296.0;
        if self.waiting.len() > 3 && drawn < self.root * self.root {
            self.dropped += 1;
        } else {
            self.waiting.push_back(tag);
        }
    }

    fn dequeue(&mut self) -> Option<u32> {
        self.waiting.pop_front()
    }
}

#[test]
fn drops_and_departures_are_those_of_the_paper() {
    let arrivals = arrivals();
    let mut net =
        Net::new(pair(1, profile(Pi2Parameters { ecn: false, ..Pi2Parameters::default() })));
    for (at, tag) in arrivals.iter().zip(0..) {
        net.send_udp(*at, 1000, tag);
    }
    net.finish();
    let mut state = Reference {
        draws: RandomStream::derive(1, "a--b", LinkDirection::Up, "queue"),
        root: 0.0,
        delay_old: 0.0,
        update: None,
        waiting: VecDeque::new(),
        dropped: 0,
    };
    let expected = departures(&mut state, &arrivals);
    assert!(state.dropped > 1000, "the load makes it drop: {}", state.dropped);
    assert_eq!(net.arrivals(), expected);
    assert_eq!(net.lane(0).dropped[DropReason::Aqm], u64::try_from(state.dropped).unwrap());
    net.check_conservation();
}

#[test]
fn the_delay_settles_at_the_target_under_constant_overload() {
    assert_settles(|target| profile(Pi2Parameters { target, ..Pi2Parameters::default() }));
}

/// The share that has to go is 1 − 1/load: its root is where the controller comes to rest.
#[test]
fn of_a_constant_overload_the_share_beyond_the_rate_is_dropped() {
    let mut net = Net::new(pair(1, profile(Pi2Parameters::default())));
    for tag in 0..120_000u32 {
        net.send_udp(u64::from(tag) * MS * 8 / 10, 1000, tag);
    }
    net.finish();
    let dropped = net.lane(0).dropped[DropReason::Aqm];
    // 20 % of 120 000, within what the queue holds and the beginning took.
    assert!(dropped.abs_diff(24_000) < 240, "{dropped}");
}

#[test]
fn capable_senders_are_marked_up_to_a_quarter() {
    assert_marks_then_drops(profile(Pi2Parameters::default()));
}

#[test]
fn no_timer_is_set_for_updates_on_an_idle_link() {
    assert_no_timer_when_idle(profile(Pi2Parameters::default()));
}
