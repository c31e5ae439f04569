//! Waiting for events and timers.

use std::time::Duration;

use windtunnel_sys::clock;
use windtunnel_sys::poll::{EventFd, PollFd, PollFlags, Timer, wait};

const NOW: Option<Duration> = Some(Duration::ZERO);

#[test]
fn an_event_is_readable_from_raise_to_clear() {
    let event = EventFd::open().unwrap();
    assert_eq!(wait(&mut [PollFd::new(&event, PollFlags::IN)], NOW).unwrap(), 0);
    event.raise().unwrap();
    event.raise().unwrap();
    assert_eq!(wait(&mut [PollFd::new(&event, PollFlags::IN)], NOW).unwrap(), 1);
    assert_eq!(event.clear().unwrap(), 2);
    assert_eq!(event.clear().unwrap(), 0);
    assert_eq!(wait(&mut [PollFd::new(&event, PollFlags::IN)], NOW).unwrap(), 0);
}

#[test]
fn a_timer_goes_off_at_its_moment_and_not_before() {
    let timer = Timer::open().unwrap();
    let at_ns = clock::monotonic_ns() + 10_000_000;
    timer.arm_at(at_ns).unwrap();
    assert_eq!(wait(&mut [PollFd::new(&timer, PollFlags::IN)], None).unwrap(), 1);
    assert!(clock::monotonic_ns() >= at_ns);
    assert!(timer.clear().unwrap());
    assert!(!timer.clear().unwrap());
}

#[test]
fn a_timer_armed_for_the_past_goes_off_at_once() {
    let timer = Timer::open().unwrap();
    timer.arm_at(0).unwrap();
    assert_eq!(wait(&mut [PollFd::new(&timer, PollFlags::IN)], None).unwrap(), 1);
}

#[test]
fn a_disarmed_timer_stays_silent() {
    let timer = Timer::open().unwrap();
    timer.arm_at(1).unwrap();
    timer.disarm().unwrap();
    assert_eq!(wait(&mut [PollFd::new(&timer, PollFlags::IN)], NOW).unwrap(), 0);
}

#[test]
fn a_wait_ends_after_its_timeout() {
    let before = clock::monotonic_ns();
    assert_eq!(wait(&mut [], Some(Duration::from_nanos(1_500_000))).unwrap(), 0);
    assert!(clock::monotonic_ns() - before >= 1_500_000);
}
