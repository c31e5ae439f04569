//! Limits of nodes in verdicts.

use windtunnel_budget::processor::CpuUsageWindow;
use windtunnel_limit::{LimitAccount, ResourceLimitOwner};
use windtunnel_model::{HeldLimit, LimitMechanism, Resource};

use super::super::testing::RunEvidenceFixture;

/// A run of a node that may use a quarter of a processor and had so many thousandths of one, in
/// seconds in each of which it was stopped for a while.
fn case(delivered: &[u64]) -> RunEvidenceFixture {
    let mut case =
        RunEvidenceFixture::of("nodes: {db: {cpu: 25%}, b: {}}\nlinks: [{between: [db, b]}]");
    let window = |(index, millis): (u64, &u64)| CpuUsageWindow {
        end_ns: (index + 1) * 1_000_000_000,
        length_ns: 1_000_000_000,
        used_ns: millis * 1_000_000,
        held_ns: 600_000_000,
        asked_millis: 250,
    };
    let windows = (0..).zip(delivered).map(window).collect();
    let held = HeldLimit::new(Resource::Cpu, LimitMechanism::DutyCycle, 250);
    let account = LimitAccount::new(ResourceLimitOwner::Node(0), Resource::Cpu, held);
    case.limits = vec![LimitAccount { windows, ..account }];
    case
}

#[test]
fn a_limit_that_was_held_is_reported_with_its_shares() {
    let report = case(&[250, 248, 256, 120]).judge();
    assert!(report.verdict.faithful, "{:?}", report.verdict);
    let limit = &report.limits[0];
    assert_eq!((limit.node.as_str(), limit.windows, limit.bound_windows), ("db", 4, 4));
    assert_eq!((limit.asked_cpus, limit.delivered_max_cpus), (0.25, 0.256));
    assert_eq!((limit.delivered_mean_cpus, limit.delivered_median_cpus), (0.2185, 0.25));
    assert_eq!((limit.used_ns, limit.throttled_ns), (874_000_000, 2_400_000_000));
}

#[test]
fn a_limit_that_was_exceeded_makes_the_run_unfaithful_with_the_worst_second() {
    let verdict = case(&[250, 262, 300]).judge().verdict;
    assert!(!verdict.faithful && !verdict.disturbed);
    let expected = "the processor limit of node db was not held in 2 of 3 seconds: 30.0% of a \
                    processor instead of 25.0% in the second until 3.00s, by duty cycle";
    assert_eq!(verdict.unfaithful, [expected]);
}

#[test]
fn a_mechanism_that_failed_makes_the_run_unfaithful_with_the_reason() {
    let mut case = case(&[]);
    case.limits[0].held.failure = Some("programs cannot be stopped: denied".to_owned());
    let expected =
        "the processor limit of node db was not held: programs cannot be stopped: denied";
    assert_eq!(case.judge().verdict.unfaithful, [expected]);
}
