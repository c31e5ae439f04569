//! Searches for the size of a path, and silent peers.

use super::*;

const RTT: Span = Span::from_micros(100);

/// A device and a way behind it that carry so much, and a peer that answers unless it is
/// `deaf`.
struct World {
    device: usize,
    way: usize,
    deaf: bool,
    now: Time,
    probes: u32,
}

impl World {
    fn run(&mut self, path: &mut PeerPathState, time: Span) {
        let end = self.now + time;
        while path.due() <= end {
            self.now = self.now.max(path.due());
            let Some(size) = path.poll(self.now) else { panic!("due, and nothing to do") };
            self.probes += 1;
            assert!(self.probes < 2000, "{path:?}");
            if size > self.device {
                path.too_big(self.now, size);
            } else if size <= self.way && !self.deaf {
                path.answered(self.now + RTT, size, RTT);
            }
        }
        self.now = end;
    }
}

fn world(device: usize, way: usize) -> World {
    World { device, way, deaf: false, now: Time::from_nanos(7), probes: 0 }
}

#[test]
fn the_mtu_of_the_device_is_found_at_once() {
    for (device, found) in [(65_507, 65_487), (1472, 1472), (1452, 1452), (8972, 8972)] {
        let mut path = PeerPathState::new();
        world(device, device).run(&mut path, Span::from_millis(20));
        assert_eq!(path.size(), found);
        assert_eq!(path.rtt(), Some(RTT));
    }
    for device in (SAFE..9000).step_by(77) {
        let mut path = PeerPathState::new();
        world(device, device).run(&mut path, Span::from_millis(20));
        assert!((device - FINE..=device).contains(&path.size()), "{device}: {}", path.size());
    }
}

#[test]
fn a_narrow_place_behind_the_device_is_found_by_silence() {
    let (mut path, mut world) = (PeerPathState::new(), world(8972, 1372));
    world.run(&mut path, Span::from_secs(10));
    assert_eq!(path.size(), 1372);
    // One probe a second, until larger sizes are tried again after a minute.
    world.probes = 0;
    world.run(&mut path, Span::from_secs(30));
    assert!((29..=31).contains(&world.probes), "{}", world.probes);
    world.way = 1472;
    world.run(&mut path, Span::from_secs(40));
    assert_eq!(path.size(), 1472);
}

#[test]
fn a_black_hole_is_left_within_two_and_a_half_seconds() {
    let (mut path, mut world) = (PeerPathState::new(), world(8972, 8972));
    world.run(&mut path, Span::from_secs(1));
    world.way = 1400;
    // KEEP and four times the patience.
    world.run(&mut path, Span::from_millis(2100));
    assert!(path.size() <= 1400, "{}", path.size());
    world.run(&mut path, Span::from_secs(10));
    assert!((1400 - FINE..=1400).contains(&path.size()), "{}", path.size());
}

#[test]
fn a_device_that_became_narrower_is_believed_at_once() {
    let (mut path, mut world) = (PeerPathState::new(), world(8972, 8972));
    world.run(&mut path, Span::from_secs(1));
    world.device = 1392;
    path.too_big(world.now, path.size());
    assert_eq!(path.size(), SAFE);
    world.run(&mut path, Span::from_millis(20));
    assert_eq!(path.size(), 1392);
}

#[test]
fn a_silent_peer_is_greeted_more_and_more_rarely_and_found_again() {
    let (mut path, mut world) = (PeerPathState::new(), world(1472, 1472));
    world.deaf = true;
    world.run(&mut path, Span::from_secs(10));
    assert_eq!((path.size(), path.rtt()), (SAFE, None));
    assert!((30..40).contains(&world.probes), "{}", world.probes);
    world.deaf = false;
    world.run(&mut path, HELLO_MOST + Span::from_millis(20));
    assert_eq!(path.size(), 1472);
}

#[test]
fn a_peer_is_silent_once_it_has_answered_nothing_for_two_seconds_also_in_a_search_for_larger_sizes()
{
    for searching in [false, true] {
        // A search in which each size is answered by silence takes many seconds.
        let way = if searching { 1300 } else { 8972 };
        let (mut path, mut world) = (PeerPathState::new(), world(8972, way));
        world.run(&mut path, Span::from_millis(if searching { 100 } else { 5000 }));
        assert_eq!(path.silent_since(world.now), None);
        world.deaf = true;
        let since = world.now;
        world.run(&mut path, Span::from_secs(4));
        let silent = path.silent_since(world.now).unwrap();
        // A probe that has to arrive goes once a second, and after the three tries of a size at
        // most.
        assert!(
            silent.since(since) <= KEEP + Span::from_millis(750),
            "{searching} {silent:?} {since:?}"
        );
        world.deaf = false;
        world.run(&mut path, Span::from_secs(1));
        assert_eq!(path.silent_since(world.now), None);
    }
}

#[test]
fn a_way_that_loses_sizes_which_are_too_large_is_not_silent() {
    let (mut path, mut world) = (PeerPathState::new(), world(8972, 1300));
    for _ in 0..200 {
        world.run(&mut path, Span::from_millis(50));
        assert_eq!(path.silent_since(world.now), None);
    }
}

#[test]
fn a_device_too_narrow_for_anything_is_not_asked_without_end() {
    let (mut path, mut world) = (PeerPathState::new(), world(1000, 1000));
    world.run(&mut path, Span::from_secs(10));
    assert!(world.probes < 40, "{}", world.probes);
}

#[test]
fn the_least_round_trip_of_the_last_seconds_is_kept() {
    let mut path = PeerPathState::new();
    let at = |secs| Time::ZERO + Span::from_secs(secs);
    for (second, rtt, least) in [(5, 9, 9), (6, 3, 3), (7, 8, 3), (10, 7, 3), (15, 6, 6)] {
        path.answered(at(second), SAFE, Span::from_millis(rtt));
        assert_eq!(path.rtt(), Some(Span::from_millis(least)), "at {second} s");
    }
}
