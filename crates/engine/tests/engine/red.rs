//! RED against a transcription of Floyd and Jacobson 1993, figure 2, in floating point, and against
//! the distances between drops that it promises.

use windtunnel_model::profile::{QueueDiscipline, QueueLimit, RedParameters};
use windtunnel_model::random::RandomStream;
use windtunnel_model::{Bytes, DropReason, LinkDirection, LinkProfile, Packets, Probability};
use windtunnel_wire::{build, ecn, vnet};

use crate::support::{MS, Net, pair, rated};

/// 1000 bytes at 8 Mbit/s.
const SERVICE: u64 = MS;

fn percent(text: &str) -> Probability {
    text.parse().unwrap()
}

fn setting() -> RedParameters {
    RedParameters {
        min: Some(QueueLimit::Bytes(Bytes(5000))),
        max: Some(QueueLimit::Bytes(Bytes(15_000))),
        probability: percent("10%"),
        weight: percent("2%"),
        ecn: false,
        ..RedParameters::default()
    }
}

fn profile(red: RedParameters) -> LinkProfile {
    LinkProfile {
        discipline: QueueDiscipline::Red(red),
        queue: Some(QueueLimit::Packets(Packets(60))),
        ..rated(8_000_000)
    }
}

/// The state of the paper's algorithm; times in ns, lengths in bytes.
struct Reference {
    setting: RedParameters,
    draws: RandomStream,
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
        match self.q_time {
            None => self.average += weight * (f64::from(queue) - self.average),
            Some(since) => {
                let m = (now - since) / SERVICE;
                self.average *= (1.0 - weight).powi(i32::try_from(m).unwrap());
                // What has been taken off the average; the rest of the idle time still counts.
                self.q_time = Some(since + m * SERVICE);
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

fn reference(setting: RedParameters, arrivals: &[u64]) -> (Vec<(u64, u32)>, Reference) {
    let mut state = Reference {
        setting,
        draws: RandomStream::derive(1, "a--b", LinkDirection::Up, "queue"),
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
        // One that was dropped on its way to a free line leaves it as it was: idle since `q_time`.
        if idle && let Some(tag) = state.waiting.pop_front() {
            free_at = *at + SERVICE;
            out.push((free_at, tag));
            (idle, state.q_time) = (false, None);
        }
    }
    while let Some(tag) = state.waiting.pop_front() {
        free_at += SERVICE;
        out.push((free_at, tag));
    }
    (out, state)
}

/// Bursts of any length and load, with pauses from shorter than a packet to a few hundred of them.
fn random_arrivals(seed: u64) -> Vec<u64> {
    let draws = RandomStream::derive(seed, "a--b", LinkDirection::Up, "arrivals");
    let (mut at, mut arrivals) = (0, Vec::new());
    for burst in 0..60 {
        let draw = |which: u64| draws.at(burst * 4 + which) >> 40;
        let gap =
            [MS / 10, MS / 3, 8 * MS / 10, 2 * MS, 7 * MS][usize::try_from(draw(0) % 5).unwrap()];
        for _ in 0..=draw(1) % 200 {
            at += gap;
            arrivals.push(at);
        }
        at += [MS / 4, 3 * MS, 40 * MS, 300 * MS][usize::try_from(draw(2) % 4).unwrap()]
            + draw(3) % MS;
    }
    arrivals
}

fn compare(setting: RedParameters, arrivals: &[u64]) -> usize {
    let mut net = Net::new(pair(1, profile(setting)));
    for (at, tag) in arrivals.iter().zip(0..) {
        net.send_udp(*at, 1000, tag);
    }
    net.finish();
    let (expected, state) = reference(setting, arrivals);
    let seen = net.arrivals();
    let first = seen.iter().zip(&expected).find(|(seen, expected)| seen != expected);
    assert_eq!(first, None, "the first departure that is another one");
    assert_eq!(seen.len(), expected.len());
    let count = u64::try_from(state.dropped.len()).unwrap();
    assert_eq!(net.lane(0).dropped[DropReason::Aqm], count);
    assert_eq!(net.lane(0).dropped[DropReason::QueueFull], state.full);
    net.check_conservation();
    state.dropped.len()
}

#[test]
fn drops_and_departures_are_those_of_the_paper() {
    for gentle in [false, true] {
        let dropped = compare(RedParameters { gentle, ..setting() }, &arrivals());
        assert!(dropped > 500, "the load makes it drop: {dropped}");
    }
}

#[test]
fn drops_and_departures_of_any_bursts_and_pauses_are_those_of_the_paper() {
    for seed in 0..40 {
        let setting = RedParameters { gentle: seed % 2 == 1, ..setting() };
        // A light weight keeps the average above `max` when the queue has long been empty.
        let weight = percent(["0.2%", "2%", "25%"][usize::try_from(seed % 3).unwrap()]);
        compare(RedParameters { weight, ..setting }, &random_arrivals(seed));
    }
}

/// 900 capable packets at 1.15 times the rate are marked or find no room, and bring the average far
/// above `max`. An idle second is 1250 packets of 1000 bytes at 10 Mbit/s: 0.998¹²⁵⁰ leaves 8 % of
/// it.
#[test]
fn an_idle_link_lets_pings_through_after_an_overload_with_ecn() {
    for (gentle, adaptive) in [(false, false), (true, false), (false, true)] {
        let red =
            QueueDiscipline::Red(RedParameters { gentle, adaptive, ..RedParameters::default() });
        let profile = LinkProfile { discipline: red, ..rated(10_000_000) };
        let mut net = Net::new(pair(1, profile));
        let gap = 1000 * 800 * 100 / 115;
        for tag in 0..900 {
            let frame = build::with_ecn(net.udp(1000, tag), 2);
            net.send(u64::from(tag) * gap, 0, vnet::VirtioNetHeader::default(), &frame);
        }
        net.run_until(2000 * MS);
        let before = net.lane(0).dropped.total();
        assert!(net.lane(0).marked > 100, "{:?}", net.lane(0));
        for ping in 0..100 {
            net.send_udp((2000 + u64::from(ping) * 200) * MS, 84, ping);
        }
        net.finish();
        let dropped = net.lane(0).dropped.total() - before;
        assert!(dropped <= 2, "gentle {gentle}, adaptive {adaptive}: {dropped} of 100");
    }
}

/// What comes more often than a typical packet takes must not keep an idle link's average up: of 1
/// s in steps of 0.3 ms, 0.98¹⁰⁰⁰ is left, though no step is a whole packet of 1 ms.
#[test]
fn drops_on_an_idle_link_do_not_stop_its_idle_time() {
    let mut net = Net::new(pair(1, profile(RedParameters { ecn: true, ..setting() })));
    for tag in 0..2000u32 {
        let frame = build::with_ecn(net.udp(1000, tag), 2);
        net.send(u64::from(tag) * MS / 2, 0, vnet::VirtioNetHeader::default(), &frame);
    }
    net.run_until(1500 * MS);
    let before = net.lane(0).dropped[DropReason::Aqm];
    for ping in 0..4000u32 {
        net.send_udp(1500 * MS + u64::from(ping) * 3 * MS / 10, 84, ping);
    }
    net.finish();
    // The average was at most 60 000, and is below `min` after 124 ms: ln(5/60)/ln 0.98 = 123.
    let dropped = net.lane(0).dropped[DropReason::Aqm] - before;
    assert!(dropped <= 124 * 10 / 3 + 1, "{dropped}");
}

/// With the average held at min + (max − min)/2 the base is p/2 = 5 %, and the distance between two
/// drops is uniform over 1 … 1/5 % − 1 (section 7 of the paper; figure 2 counts from 1 after a
/// drop).
#[test]
fn the_distance_between_drops_is_uniform() {
    let setting = RedParameters {
        min: Some(QueueLimit::Bytes(Bytes(1000))),
        max: Some(QueueLimit::Bytes(Bytes(39_000))),
        probability: percent("10%"),
        weight: percent("100%"),
        ecn: true,
        ..RedParameters::default()
    };
    let mut net = Net::new(pair(3, profile(setting)));
    // 20 wait whenever one comes, as marks remove none: 21 at once, and one each time one has left.
    for tag in 0..20_021u64 {
        let frame = build::with_ecn(net.udp(1000, u32::try_from(tag).unwrap()), 2);
        let at = if tag < 21 { 0 } else { (tag - 20) * MS - 1 };
        net.send(at, 0, vnet::VirtioNetHeader::default(), &frame);
    }
    net.finish();
    let ce = |frame: &[u8]| ecn::codepoint(frame) == Some(ecn::EcnCodepoint::Ce);
    let marked: Vec<usize> =
        (21..net.out.len()).filter(|index| ce(&net.out[*index].frame)).collect();
    let gaps: Vec<usize> = marked.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(net.lane(0).dropped.total(), 0);
    assert_eq!(gaps.iter().max(), Some(&19));
    // 2000 gaps of 10 on average: the mean's standard error is √(30/2000) = 0.12, so 4 of it are
    // 0.49; each length comes 105 ± 10 times, so 4.5 of it are 45.
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
    let setting = RedParameters { probability: percent("2%"), adaptive: true, ..setting() };
    let length = |adaptive| {
        let mut net = Net::new(pair(5, profile(RedParameters { adaptive, ..setting })));
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

/// A queue of 20 packets and an average above `max`: all are marked, and what the queue has no room
/// for is dropped.
#[test]
fn those_that_are_marked_and_then_dropped_are_not_counted_as_marked() {
    let limit = Some(QueueLimit::Packets(Packets(20)));
    let red = RedParameters { weight: percent("100%"), ecn: true, ..setting() };
    let mut net = Net::new(pair(1, LinkProfile { queue: limit, ..profile(red) }));
    for tag in 0..315u32 {
        let frame = build::with_ecn(net.udp(1000, tag), 2);
        net.send(u64::from(tag) * MS / 3, 0, vnet::VirtioNetHeader::default(), &frame);
    }
    net.finish();
    let ce = |out: &&crate::support::Out| ecn::codepoint(&out.frame) == Some(ecn::EcnCodepoint::Ce);
    let seen = u64::try_from(net.out.iter().filter(ce).count()).unwrap();
    assert!(net.lane(0).dropped[DropReason::QueueFull] > 150 && seen > 50);
    assert_eq!(net.lane(0).marked, seen);
}
