//! The clocks.

use std::num::NonZeroU64;

use windtunnel_sys::clock;

#[test]
fn sleeping_ends_at_the_moment_or_later_and_costs_no_processor_time() {
    clock::set_timer_slack(NonZeroU64::new(1).unwrap()).unwrap();
    let at_ns = clock::monotonic_ns() + 20_000_000;
    let cpu_before = clock::thread_cpu_ns();
    clock::sleep_until(at_ns).unwrap();
    assert!(clock::monotonic_ns() >= at_ns);
    assert!(clock::thread_cpu_ns() - cpu_before < 20_000_000);
}

#[test]
fn a_moment_that_has_passed_is_not_slept_for() {
    let before = waits();
    (0..1000).for_each(|_| clock::sleep_until(0).unwrap());
    let waited = waits() - before;
    assert!(waited < 1000, "the thread gave its processor away {waited} times");
}

/// How often this thread has waited so far (proc_pid_status(5)).
fn waits() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").expect("there is /proc");
    let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    count.and_then(|count| count.trim().parse().ok()).expect("it is counted")
}

#[test]
fn the_real_time_is_after_this_was_written() {
    let ns_of_2026 = 1_767_225_600_000_000_000;
    assert!(clock::realtime_ns() > ns_of_2026);
}

#[test]
fn the_process_has_used_at_least_what_its_thread_has() {
    let thread = clock::thread_cpu_ns();
    assert!(clock::process_cpu_ns() >= thread);
}
