//! Whether the emulation was what was asked.

use windtunnel_dataplane::LateInterval;
use windtunnel_model::Lane;
use windtunnel_model::{Span, Time};
use windtunnel_sys::limits::CpuTickCounters;

use super::super::testing::RunEvidenceFixture;
use crate::evidence::{DeviceDrops, LateOccurrence, RunEndReason, WhenLate};

/// Through a router: lanes 0 (a to r), 1 (r to a), 2 (r to b), 3 (b to r).
const ROUTED: &str = "
nodes: {a: {}, b: {}}
routers: [r]
links: [{between: [a, r]}, {between: [r, b]}]
";

const ON_TIME: Span = Span::from_micros(10);
const LATE: Span = Span::from_millis(2);

fn doubts(case: &RunEvidenceFixture) -> Vec<String> {
    case.judge().verdict.unfaithful
}

#[test]
fn one_packet_in_a_thousand_may_be_late_and_no_more() {
    let mut case = RunEvidenceFixture::of(ROUTED);
    case.depart(999, ON_TIME, 2);
    case.depart(1, LATE, 2);
    assert_eq!(doubts(&case), [] as [&str; 0]);
    case.depart(1, LATE, 2);
    let doubts = doubts(&case);
    assert_eq!(doubts.len(), 1);
    assert!(doubts[0].starts_with("2 of 1001 packets (0.1"), "{}", doubts[0]);
    assert!(doubts[0].contains("left more than 1ms late, at the worst 2.00ms"), "{}", doubts[0]);
    assert_eq!(case.judge().verdict.exit_code, 1);
}

#[test]
fn a_direction_is_judged_by_itself_however_many_packets_the_others_carry() {
    let mut case = RunEvidenceFixture::of(ROUTED);
    case.depart(100_000, ON_TIME, 2);
    case.depart(500, ON_TIME, 1);
    case.depart(10, LATE, 1);
    let doubts = doubts(&case);
    assert_eq!(doubts.len(), 1);
    assert!(doubts[0].starts_with("10 of 510 packets"), "{}", doubts[0]);
    assert!(doubts[0].contains("left a--r (r-a) more than 1ms late"), "{}", doubts[0]);
}

#[test]
fn one_packet_later_than_twenty_times_the_bound_is_too_late_whatever_the_share() {
    let mut case = RunEvidenceFixture::of(ROUTED);
    case.depart(1_000_000, ON_TIME, 2);
    case.depart(1, Span::from_millis(20), 2);
    assert_eq!(doubts(&case), [] as [&str; 0]);
    case.depart(1, Span::from_millis(21), 2);
    let at = Time::from_nanos(3_000_000_000);
    let max = Span::from_millis(21);
    case.tally.late_intervals = vec![LateInterval { at, lane: Lane::from_index(2), max }];
    let doubts = doubts(&case);
    assert_eq!(doubts.len(), 1);
    assert!(doubts[0].starts_with("1 of 1000002 packets left up to 21.0ms late"), "{}", doubts[0]);
    assert!(doubts[0].contains("more than 20 times the bound of 1ms"), "{}", doubts[0]);
    assert!(doubts[0].contains("mostly on r--b (r-b)"), "{}", doubts[0]);
}

#[test]
fn a_loop_that_stood_still_is_doubted_also_where_no_packet_moved() {
    let mut case = RunEvidenceFixture::of(ROUTED);
    case.tally.stalls.times = 1;
    case.tally.stalls.longest = Span::from_millis(20);
    assert_eq!(doubts(&case), [] as [&str; 0]);
    case.tally.stalls.longest = Span::from_millis(50);
    case.tally.stalls.at = Time::from_nanos(4_000_000_000);
    let expected = "the emulation stood still for 50.0ms until 4.00s, more than 20 times the bound \
                    of 1ms; likely cause: a stall of windtunnel's process or of this machine (its \
                    processors were busy for 0% of the time)";
    assert_eq!(doubts(&case), [expected]);
}

#[test]
fn a_planned_event_later_than_its_bound_is_doubted_by_its_name() {
    let mut case = RunEvidenceFixture::of(ROUTED);
    let event = |what: &str, late| LateOccurrence {
        what: what.to_owned(),
        intended: Span::from_secs(5),
        late: Span::from_millis(late),
        bound: Span::from_millis(1),
    };
    case.planned.add(event("kill of a", 1));
    assert_eq!(doubts(&case), [] as [&str; 0]);
    case.planned.add(event("start of b (x)", 286));
    case.planned.add(event("kill of a", 1_000));
    let expected = "2 of 3 planned events were late: kill of a, planned for 5.00s, by 1.00s (it may \
                    by 1.00ms), start of b (x), planned for 5.00s, by 286ms (it may by 1.00ms); \
                    likely cause: a stall of windtunnel's process or of this machine (its \
                    processors were busy for 0% of the time)";
    assert_eq!(doubts(&case), [expected]);
    let report = case.judge();
    assert!(report.verdict.disturbed, "a machine with more time may do it");
    let planned = report.planned;
    assert_eq!((planned.happened, planned.late, planned.latest_ns), (3, 2, 1_000_000_000));
    assert_eq!(planned.worst[1].event, "start of b (x)");
}

#[test]
fn the_likely_cause_is_what_the_kernel_says_of_the_thread_and_the_processors() {
    let cause = |change: fn(&mut RunEvidenceFixture)| {
        let mut case = RunEvidenceFixture::of(ROUTED);
        case.depart(10, LATE, 2);
        change(&mut case);
        let doubts = doubts(&case);
        doubts[0].split("likely cause: ").nth(1).expect("a cause is named").to_owned()
    };
    assert_eq!(
        cause(|_| {}),
        "short stalls of this machine (its processors were busy for 0% of the time)"
    );
    // Of ten seconds, the thread was ready without a processor for 0.3 s.
    assert!(
        cause(|case| case.tally.waited_ns = 300_000_000)
            .starts_with("the processors are saturated: busy for 0% of the time; the engine was ready but had none for 3%")
    );
    let busy = |case: &mut RunEvidenceFixture| {
        case.processors = CpuTickCounters { busy: 85, idle: 15, stolen: 0 }
    };
    assert!(cause(busy).starts_with("the processors are saturated: busy for 85% of the time"));
    let ran = cause(|case| case.tally.ran_ns = 8_000_000_000);
    assert_eq!(ran, "the offered rate is too high: the engine was busy 80% of the time");
    let second = windtunnel_sys::limits::ticks_per_second();
    let mut case = RunEvidenceFixture::of(ROUTED);
    case.depart(10, LATE, 2);
    // 3 % in all the run, at any time.
    case.processors = CpuTickCounters { busy: 0, idle: 97 * second, stolen: 3 * second };
    assert!(doubts(&case)[0].contains("short stalls of this machine"), "{:?}", doubts(&case));
    // Nothing of that when packets were late.
    let lasted = Span::from_secs(1);
    case.load = WhenLate { busy: second, idle: second, stolen: 0, lasted };
    let cause = "short stalls of this machine (its processors were busy for 50% of the time when \
                 packets were late)";
    assert!(doubts(&case)[0].ends_with(cause), "{:?}", doubts(&case));
    case.load = WhenLate { busy: second, idle: second / 2, stolen: second / 2, lasted };
    let cause = "the hypervisor took 500ms of processor time from this machine when packets were \
                 late, 25% of what it has";
    assert!(doubts(&case)[0].ends_with(cause), "{:?}", doubts(&case));
}

#[test]
fn packets_that_were_lost_outside_the_model_are_counted_by_where_that_was() {
    let mut case = RunEvidenceFixture::of(ROUTED);
    case.tally.kernel_drops =
        vec![(Time::from_nanos(700_000_000), 5), (Time::from_nanos(900_000_000), 2)];
    case.device_drops = DeviceDrops { packets: 1, backlog_packets: 9 };
    case.tally.refused = 3;
    case.tally.truncated = 4;
    case.tally.lanes[3].no_memory = 6;
    let doubts = doubts(&case);
    let starts = [
        "the kernel dropped 7 packets before the engine saw them, first in the 100ms before 700ms",
        "1 packet was lost at the devices between nodes and engine: the kernel's backlog was full",
        "the kernel refused 3 packets that were due",
        "4 packets were not frames of at most 66KiB and were lost",
        "the packet memory was exhausted: 6 packets were lost on r--b (b-r) alone; give more with \
         --packet-memory",
    ];
    assert_eq!(doubts.len(), starts.len(), "{doubts:?}");
    for (doubt, start) in doubts.iter().zip(starts) {
        assert!(doubt.starts_with(start), "{doubt}");
    }
}

#[test]
fn a_loop_that_ended_early_or_an_overload_that_ended_the_run_is_not_faithful() {
    let mut case = RunEvidenceFixture::of(ROUTED);
    case.tally.failure = Some("cannot wait for packets: interrupted".to_owned());
    case.ending =
        RunEndReason::Overloaded("overloaded: the emulation was 30.0ms behind".to_owned());
    let doubts = doubts(&case);
    assert_eq!(doubts[0], "cannot wait for packets: interrupted");
    assert!(doubts[1].starts_with("overloaded: the emulation was 30.0ms behind: "));
}
