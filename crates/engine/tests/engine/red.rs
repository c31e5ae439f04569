//! RED against a transcription of Floyd and Jacobson 1993, figure 2, in floating point, and against the
//! distances between drops that it promises.

use windtunnel_engine::DropReason;
use windtunnel_model::profile::{Discipline, QueueLimit, Red};
use windtunnel_model::random::Stream;
use windtunnel_model::{Bytes, Direction, LinkProfile, Packets, Probability};
use windtunnel_wire::{build, ecn, vnet};

use crate::support::{MS, Net, pair, rated};

/// 1000 bytes at 8 Mbit/s.
const SERVICE: u64 = MS;

fn percent(text: &str) -> Probability {
    text.parse().unwrap()
}

fn setting() -> Red {
    Red {
        min: Some(QueueLimit::Bytes(Bytes(5000))),
        max: Some(QueueLimit::Bytes(Bytes(15_000))),
        probability: percent("10%"),
        weight: percent("2%"),
        ecn: false,
        ..Red::default()
    }
}

fn profile(red: Red) -> LinkProfile {
    LinkProfile {
        discipline: Discipline::Red(red),
        queue: Some(QueueLimit::Packets(Packets(60))),
        ..rated(8_000_000)
    }
}

/// The state of the paper's algorithm; times in ns, lengths in bytes.
struct Reference {
    setting: Red,
    draws: Stream,
    average: f64,
    count: i64,
    q_time: Option<u64>,
    waiting: std::collections::VecDeque<u32>,
    dropped: Vec<u32>,
    full: u64,
}

impl Reference {
    fn arrive(&mut self, now: u64, tag: u32) {
        let weight = f64::from(self.setting.weight.parts_per_billion()) / 1e9;
        let (min, max) = (5000.0, 15_000.0);
        let queue = u32::try_from(self.waiting.len() * 1000).unwrap();
        match self.q_time.take() {
            None => self.average += weight * (f64::from(queue) - self.average),
            Some(since) => {
                let m = i32::try_from((now - since) / SERVICE).unwrap();
                self.average *= (1.0 - weight).powi(m);
            }
        }
        let max_p = f64::from(self.setting.probability.parts_per_billion()) / 1e9;
        let mut certain = self.average >= max;
        let mut base = max_p * (self.average - min) / (max - min);
        if self.setting.gentle && (max..2.0 * max).contains(&self.average) {
            certain = false;
            base = max_p + (1.0 - max_p) * (self.average - max) / max;
        }
        let draw = self.draws.at(u64::from(tag) + 1);
        let uniform = f64::from(u32::try_from(draw >> 32).unwrap()) / 4_294_967_296.0;
        let mut hit = certain;
        if certain {
            self.count = 0;
        } else if self.average >= min {
            self.count += 1;
            let count = f64::from(i32::try_from(self.count).unwrap());
            let actual = base / (1.0 - count * base);
            hit = actual < 0.0 || uniform < actual;
            if hit {
                self.count = 0;
            }
        } else {
            self.count = -1;
        }
        if hit {
            self.dropped.push(tag);
        } else if self.waiting.len() >= 60 {
            self.full += 1;
        } else {
            self.waiting.push_back(tag);
        }
    }
}

/// Overload, load, calm and pauses.
fn arrivals() -> Vec<u64> {
    let mut at = 0;
    (0..12_000u64)
        .map(|n| {
            at += match n / 2000 {
                0 | 3 => 8 * MS / 10,
                1 => 96 * MS / 100,
                4 => 3 * MS / 10,
                _ => 15 * MS / 10,
            };
            at += if n % 1000 == 999 { 37 * MS + 11 } else { 0 };
            at
        })
        .collect()
}

fn reference(setting: Red, arrivals: &[u64]) -> (Vec<(u64, u32)>, Reference) {
    let mut state = Reference {
        setting,
        draws: Stream::derive(1, "a--b", Direction::Up, "queue"),
        average: 0.0,
        count: -1,
        q_time: None,
        waiting: Default::default(),
        dropped: Vec::new(),
        full: 0,
    };
    let mut out = Vec::new();
    // When the line is free, and whether somebody found that out already.
    let (mut free_at, mut idle) = (0, true);
    for (at, tag) in arrivals.iter().zip(0..) {
        while !idle && free_at <= *at {
            match state.waiting.pop_front() {
                Some(tag) => {
                    free_at += SERVICE;
                    out.push((free_at, tag));
                }
                None => {
                    state.q_time = Some(free_at);
                    idle = true;
                }
            }
        }
        state.arrive(*at, tag);
        if idle && let Some(tag) = state.waiting.pop_front() {
            free_at = *at + SERVICE;
            out.push((free_at, tag));
            idle = false;
        } else if idle {
            // It was dropped on its way to a free line, which stays free from now on.
            state.q_time = Some(*at);
        }
    }
    while let Some(tag) = state.waiting.pop_front() {
        free_at += SERVICE;
        out.push((free_at, tag));
    }
    (out, state)
}

#[test]
fn drops_and_departures_are_those_of_the_paper() {
    for gentle in [false, true] {
        let setting = Red { gentle, ..setting() };
        let arrivals = arrivals();
        let mut net = Net::new(pair(1, profile(setting)));
        for (at, tag) in arrivals.iter().zip(0..) {
            net.send_udp(*at, 1000, tag);
        }
        net.finish();
        let (expected, state) = reference(setting, &arrivals);
        assert!(state.dropped.len() > 500, "the load makes it drop: {}", state.dropped.len());
        assert_eq!(net.arrivals(), expected);
        let count = u64::try_from(state.dropped.len()).unwrap();
        assert_eq!(net.lane(0).dropped[DropReason::Aqm], count);
        assert_eq!(net.lane(0).dropped[DropReason::QueueFull], state.full);
        net.check_conservation();
    }
}

/// With the average held at min + (max − min)/2 the base is p/2 = 5 %, and the distance between two
/// drops is uniform over 1 … 1/5 % − 1 (section 7 of the paper; figure 2 counts from 1 after a drop).
#[test]
fn the_distance_between_drops_is_uniform() {
    let setting = Red {
        min: Some(QueueLimit::Bytes(Bytes(1000))),
        max: Some(QueueLimit::Bytes(Bytes(39_000))),
        probability: percent("10%"),
        weight: percent("100%"),
        ecn: true,
        ..Red::default()
    };
    let mut net = Net::new(pair(3, profile(setting)));
    // 20 wait whenever one comes, as marks remove none: 21 at once, and one each time one has left.
    for tag in 0..20_021u64 {
        let frame = build::with_ecn(net.udp(1000, u32::try_from(tag).unwrap()), 2);
        let at = if tag < 21 { 0 } else { (tag - 20) * MS - 1 };
        net.send(at, 0, vnet::Header::default(), &frame);
    }
    net.finish();
    let ce = |frame: &[u8]| ecn::codepoint(frame) == Some(ecn::Codepoint::Ce);
    let marked: Vec<usize> =
        (21..net.out.len()).filter(|index| ce(&net.out[*index].frame)).collect();
    let gaps: Vec<usize> = marked.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(net.lane(0).dropped.total(), 0);
    assert_eq!(gaps.iter().max(), Some(&19));
    // 2000 gaps of 10 on average: the mean's standard error is √(30/2000) = 0.12, so 4 of it are 0.49;
    // each length comes 105 ± 10 times, so 4.5 of it are 45.
    let mean = gaps.iter().sum::<usize>() as f64 / gaps.len() as f64;
    assert!((mean - 10.0).abs() < 0.49, "{mean} over {} gaps", gaps.len());
    for length in 1..=19 {
        let count = gaps.iter().filter(|gap| **gap == length).count();
        assert!(count.abs_diff(105) < 45, "{count} gaps of {length}");
    }
}

#[test]
fn adaptive_red_holds_the_average_between_its_thresholds() {
    // 1.25 times the rate: a fifth has to go, ten times the probability that it starts with.
    let setting = Red { probability: percent("2%"), adaptive: true, ..setting() };
    let length = |adaptive| {
        let mut net = Net::new(pair(5, profile(Red { adaptive, ..setting })));
        let mut sum = 0;
        for tag in 0..60_000u32 {
            net.send_udp(u64::from(tag) * 8 * MS / 10, 1000, tag);
            sum += if tag >= 40_000 { net.lane(0).queue_bytes } else { 0 };
        }
        sum / 20_000
    };
    // The middle fifth is 9000 to 11 000 bytes; without it the average rides on `max`.
    let (adapted, fixed) = (length(true), length(false));
    assert!((8500..11_500).contains(&adapted), "{adapted}");
    assert!(fixed > 13_500, "{fixed}");
}

#[test]
fn an_average_that_was_high_is_forgotten_while_nothing_comes() {
    let mut net = Net::new(pair(1, profile(setting())));
    for tag in 0..2000u32 {
        net.send_udp(u64::from(tag) * MS / 2, 1000, tag);
    }
    let before = net.lane(0).dropped.total();
    assert!(before > 500);
    // A second is 1000 packets of time: 0.98¹⁰⁰⁰ leaves nothing, and 20 packets at once bring it to
    // 0.02·(0 + 1 + … + 18)·1000 bytes at most.
    for tag in 0..20u32 {
        net.send_udp(2500 * MS, 1000, tag);
    }
    assert_eq!(net.lane(0).dropped.total(), before);
}
