//! Limits of the process and load of the machine.

use windtunnel_sys::{clock, limits};

#[test]
fn the_limit_of_open_files_is_raised_to_the_hard_one() {
    let raised = limits::raise_open_files().unwrap();
    assert_eq!(raised.soft, raised.hard);
    assert_eq!(limits::open_files(), raised);
}

#[test]
fn a_thread_can_be_kept_on_one_processor() {
    let cpus = limits::cpus().unwrap();
    limits::set_cpus(&cpus[..1]).unwrap();
    assert_eq!(limits::cpus().unwrap(), &cpus[..1]);
}

#[test]
fn a_processor_beyond_the_possible_is_refused() {
    let error = limits::set_cpus(&[1 << 20]).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
}

#[test]
fn running_shows_in_the_schedule() {
    let thread = limits::current_thread();
    let before = limits::schedule_of(thread).unwrap();
    let until = clock::thread_cpu_ns() + 30_000_000;
    while clock::thread_cpu_ns() < until {
        std::hint::spin_loop();
    }
    // Going through sleep makes the kernel bring its count up to date.
    clock::sleep_until(clock::monotonic_ns() + 1_000_000).unwrap();
    let after = limits::schedule_of(thread).unwrap();
    assert!(after.run_ns - before.run_ns >= 29_000_000);
    assert!(after.slices > before.slices);
}

#[test]
fn stolen_time_never_goes_back() {
    let before = limits::processors().unwrap();
    let after = limits::processors().unwrap();
    assert!(after.busy >= before.busy && after.stolen >= before.stolen);
    assert!(before.busy + before.idle > 0);
    assert!(limits::ticks_per_second() > 0);
}

#[test]
fn the_file_system_of_the_sources_has_a_size() {
    assert!(limits::free_bytes(".").is_ok());
    let error = limits::free_bytes("/no/such/path").unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
}
