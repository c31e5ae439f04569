//! The controller against virtual programs in virtual time.

use proptest::prelude::*;

use super::*;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;

/// Virtual programs: each of `threads` computes for `compute_ns` of processor time, sleeps, and so
/// on. Sleeping goes on while they are stopped.
struct Programs {
    now_ns: u64,
    used_ns: u64,
    compute_ns: u64,
    sleep_ns: u64,
    threads: Vec<Thread>,
    /// How much every look is late.
    late_ns: u64,
    rounds: u64,
}

#[derive(Clone, Copy)]
enum Thread {
    Computes { left_ns: u64 },
    Sleeps { until_ns: u64 },
}

impl Programs {
    fn new(threads: usize, compute_ns: u64, sleep_ns: u64) -> Self {
        let threads = vec![Thread::Computes { left_ns: compute_ns }; threads];
        let (late_ns, rounds) = (0, 0);
        Programs { now_ns: 0, used_ns: 0, compute_ns, sleep_ns, threads, late_ns, rounds }
    }

    /// Goes on until `to_ns`, running or stopped, each thread on a processor of its own.
    fn pass(&mut self, to_ns: u64, run: bool) {
        for thread in &mut self.threads {
            let mut now = self.now_ns;
            while now < to_ns {
                match *thread {
                    Thread::Sleeps { until_ns } if until_ns > to_ns => break,
                    Thread::Sleeps { until_ns } if run || until_ns > now => {
                        now = now.max(until_ns);
                        *thread = Thread::Computes { left_ns: self.compute_ns };
                    }
                    _ if !run => break,
                    Thread::Sleeps { .. } => {}
                    Thread::Computes { left_ns } if left_ns > to_ns - now => {
                        self.used_ns += to_ns - now;
                        *thread = Thread::Computes { left_ns: left_ns - (to_ns - now) };
                        break;
                    }
                    Thread::Computes { left_ns } => {
                        now += left_ns;
                        self.used_ns += left_ns;
                        self.rounds += 1;
                        *thread = Thread::Sleeps { until_ns: now + self.sleep_ns };
                    }
                }
            }
        }
        self.now_ns = to_ns;
    }

    fn sleeps(&self) -> bool {
        let is_asleep =
            |it: &Thread| matches!(it, Thread::Sleeps { until_ns } if *until_ns > self.now_ns);
        self.threads.iter().all(is_asleep)
    }

    /// Under a controller until `until_ns`; the processor time used at each millisecond.
    fn drive(&mut self, cycle: &mut DutyCycle, until_ns: u64) -> Vec<u64> {
        let mut used = Vec::new();
        while self.now_ns < until_ns {
            let ran = cycle.run;
            let mut look = cycle.look(self.now_ns, self.used_ns, || 0);
            if ran && !look.run {
                look = cycle.defer(|| self.sleeps()).unwrap_or(look);
            }
            assert!(look.at_ns > self.now_ns, "time goes on");
            let to_ns = look.at_ns + self.late_ns;
            while self.now_ns < to_ns {
                let next = (self.now_ns / MS + 1) * MS;
                self.pass(next.min(to_ns), look.run);
                if self.now_ns == next {
                    used.push(self.used_ns);
                }
            }
        }
        used
    }
}

/// The largest distance of any window of a second from the share, in millionths of a processor.
fn worst(used: &[u64], share: u32) -> u64 {
    let windows = used.windows(1001).skip(100);
    let off = windows.map(|it| (it[1000] - it[0]).abs_diff(u64::from(share) * MS));
    off.max().unwrap_or(u64::MAX) / 1000
}

proptest! {
    #[test]
    fn a_busy_group_has_its_share_in_any_second(
        share in 10_u32..=970, threads in 1_usize..=4, late_us in 0_u64..300,
    ) {
        let mut programs = Programs { late_ns: late_us * 1000, ..Programs::new(threads, u64::MAX, 0) };
        let used = programs.drive(&mut DutyCycle::new(share, 0, 0), 4 * SECOND);
        // Half a per cent of a processor; a run of several threads is so much longer.
        let allowed = 5_000 * threads as u64;
        prop_assert!(worst(&used, share) <= allowed, "{}", worst(&used, share));
    }

    #[test]
    fn several_processors_are_shares_too(share in 1_000_u32..=3_800, late_us in 0_u64..300) {
        let mut programs = Programs { late_ns: late_us * 1000, ..Programs::new(4, u64::MAX, 0) };
        let used = programs.drive(&mut DutyCycle::new(share, 0, 0), 4 * SECOND);
        prop_assert!(worst(&used, share) <= 20_000, "{}", worst(&used, share));
    }

    #[test]
    fn only_computing_is_stretched(
        share in 50_u32..=950, compute_ms in 20_u64..=200, sleep_ms in 0_u64..=300,
    ) {
        let mut programs = Programs::new(1, compute_ms * MS, sleep_ms * MS);
        programs.drive(&mut DutyCycle::new(share, 0, 0), 60 * SECOND);
        let expected_ns = sleep_ms * MS + compute_ms * MS * 1000 / u64::from(share);
        let took_ns = 60 * SECOND / programs.rounds;
        // The computing before it is first seen may be paid while it sleeps, and a round is cut.
        let seen_ns = (LOOK_NS_MAX + CREDIT_NS) * 1000 / u64::from(share);
        let cut_ns = took_ns / programs.rounds + 1;
        prop_assert!(took_ns.abs_diff(expected_ns) <= seen_ns + cut_ns, "{took_ns} {expected_ns}");
        // Without long sleeps there is nothing to pay in.
        if sleep_ms == 0 {
            prop_assert!(took_ns.abs_diff(expected_ns) <= expected_ns / 100 + cut_ns);
        }
    }

    #[test]
    fn a_change_holds_at_once(before in 10_u32..=970, after in 10_u32..=970) {
        let mut programs = Programs::new(1, u64::MAX, 0);
        let mut cycle = DutyCycle::new(before, 0, 0);
        programs.drive(&mut cycle, 2 * SECOND);
        cycle.set_share(after, programs.now_ns, programs.used_ns);
        let began = programs.used_ns;
        let used = programs.drive(&mut cycle, 5 * SECOND);
        prop_assert!(worst(&used, after) <= 5_000, "{}", worst(&used, after));
        prop_assert!(programs.used_ns > began);
    }
}

/// How long a turn of a program takes, in the mean.
fn turn_ns(share: u32, compute_ns: u64, sleep_ns: u64) -> u64 {
    let mut programs = Programs::new(1, compute_ns, sleep_ns);
    programs.drive(&mut DutyCycle::new(share, 0, 0), 60 * SECOND);
    60 * SECOND / programs.rounds
}

#[test]
fn turns_that_are_shorter_than_a_look_are_as_long_as_on_a_slower_processor() {
    // What it computes, sleeps, and takes: c/s + w.
    for (share, compute_ms, sleep_ms, expected_ms) in
        [(100, 2, 20, 40), (10, 1, 150, 250), (250, 1, 3, 7), (500, 5, 10, 20), (50, 3, 400, 460)]
    {
        let took_ns = turn_ns(share, compute_ms * MS, sleep_ms * MS);
        let off_ns = took_ns.abs_diff(expected_ms * MS);
        assert!(off_ns <= expected_ms * MS / 50, "{took_ns} of {expected_ms} ms");
    }
}

#[test]
fn a_debt_that_is_a_second_old_is_paid_asleep() {
    let took_ns = turn_ns(100, 2 * MS, 3 * SECOND);
    assert!(took_ns.abs_diff(3_002 * MS) <= 20 * MS, "{took_ns}");
}

#[test]
fn idle_time_earns_no_more_than_the_credit() {
    let mut programs = Programs::new(1, u64::MAX, 0);
    programs.threads = vec![Thread::Sleeps { until_ns: 10 * SECOND }];
    let mut cycle = DutyCycle::new(100, 0, 0);
    programs.drive(&mut cycle, 10 * SECOND);
    assert_eq!(cycle.stopped_ns(), 0, "a program that sleeps is never stopped");
    let began = programs.now_ns;
    programs.drive(&mut cycle, began + SECOND);
    let most = SECOND / 10 + CREDIT_NS + LOOK_NS_MAX;
    assert!(programs.used_ns <= most, "{}", programs.used_ns);
}

#[test]
fn a_group_that_may_use_more_than_it_wants_is_never_stopped() {
    let mut programs = Programs::new(1, u64::MAX, 0);
    let mut cycle = DutyCycle::new(1_000, 0, 0);
    programs.drive(&mut cycle, 5 * SECOND);
    assert_eq!(cycle.stopped_ns(), 0);
}

#[test]
fn the_time_in_which_it_was_stopped_is_counted() {
    let mut programs = Programs::new(1, u64::MAX, 0);
    let mut cycle = DutyCycle::new(250, 0, 0);
    programs.drive(&mut cycle, 4 * SECOND);
    let stopped = cycle.stopped_ns();
    assert!(stopped.abs_diff(3 * SECOND) < 20 * MS, "{stopped}");
}

/// A thread that always wants to compute, and gets a processor only in `gets` of `cycle`
/// nanoseconds, wherever the controller lets it run. What it used in `until_ns`.
fn computes_beside_others(share: u32, gets: u64, cycle: u64, until_ns: u64, says: bool) -> u64 {
    let mut controller = DutyCycle::new(share, 0, 0);
    let (mut now, mut used, mut waited) = (0, 0, 0);
    while now < until_ns {
        let look =
            controller.look(now, used, || if says { core::mem::take(&mut waited) } else { 0 });
        while now < look.at_ns {
            let step = (look.at_ns - now).min(100_000);
            match look.run {
                true if now % cycle < gets => used += step,
                true => waited += step,
                false => {}
            }
            now += step;
        }
    }
    used
}

#[test]
fn a_group_that_waits_for_processors_keeps_what_it_earns() {
    // A processor is there for 3 of every 8 ms: a quarter can be had of it.
    for share in [100, 200, 250] {
        let used = computes_beside_others(share, 3 * MS, 8 * MS, 20 * SECOND, true);
        let asked = 20 * SECOND * u64::from(share) / 1000;
        assert!(used.abs_diff(asked) <= asked / 50, "{share}: {used} of {asked}");
        let without = computes_beside_others(share, 3 * MS, 8 * MS, 20 * SECOND, false);
        assert!(without < asked * 95 / 100, "it would have had {without} of {asked}");
    }
}

#[test]
fn what_it_is_owed_is_bounded() {
    // For 3 s it gets no processor, and then one to itself.
    let mut controller = DutyCycle::new(500, 0, 0);
    for ms in 0..3_000 {
        assert!(controller.look(ms * MS, 0, || 0).run);
    }
    let (mut now, mut used) = (3 * SECOND, 0);
    while now < 4 * SECOND {
        let look = controller.look(now, used, || 3 * SECOND);
        used += if look.run { look.at_ns - now } else { 0 };
        now = look.at_ns;
    }
    assert!(used <= SECOND / 2 + OWED_NS_MAX + 10 * MS, "{used}");
}
