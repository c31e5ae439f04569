//! Limits of memory, processes and descriptors in verdicts.

use super::super::testing::RunEvidenceFixture;
use crate::evidence::{ResourceLimit, ResourceLimitKind, ResourceLimitOwner};

fn case(bound: ResourceLimit) -> RunEvidenceFixture {
    let mut case =
        RunEvidenceFixture::of("nodes: {db: {memory: 64MB}, b: {}}\nlinks: [{between: [db, b]}]");
    case.bounds = vec![bound];
    case
}

#[test]
fn a_limit_that_was_met_is_reported_and_the_run_is_faithful() {
    let mut bound =
        ResourceLimit::new(ResourceLimitOwner::Node(0), ResourceLimitKind::Memory, 64_000_000);
    (bound.peak, bound.met, bound.ended, bound.faults) = (63_000_000, 7, 1, 3);
    let report = case(bound).judge();
    assert!(report.verdict.faithful, "{:?}", report.verdict);
    let seen = &report.bounds[0];
    assert_eq!((seen.node.as_str(), seen.limit.as_str(), seen.asked), ("db", "memory", 64_000_000));
    assert_eq!((seen.peak, seen.met, seen.ended, seen.faults), (Some(63_000_000), 7, 1, Some(3)));
}

#[test]
fn a_limit_that_was_not_held_makes_the_run_unfaithful_with_the_reason() {
    let mut bound =
        ResourceLimit::new(ResourceLimitOwner::Program(0, 1), ResourceLimitKind::Pids, 50);
    bound.fail("denied".to_owned());
    let verdict = case(bound).judge().verdict;
    let expected = "the limit `pids` of program 1 of node db was not held: denied";
    assert_eq!(verdict.unfaithful, [expected]);
}

#[test]
fn what_is_used_of_descriptors_is_not_known() {
    let report =
        case(ResourceLimit::new(ResourceLimitOwner::Node(0), ResourceLimitKind::OpenFiles, 256))
            .judge();
    assert_eq!((report.bounds[0].peak, report.bounds[0].faults), (None, None));
}

#[test]
fn what_was_used_between_two_looks_of_a_watch_is_said() {
    let mut bound =
        ResourceLimit::new(ResourceLimitOwner::Node(0), ResourceLimitKind::Memory, 64_000_000);
    bound.mechanism = "watch".to_owned();
    bound.peak = 64_000_000;
    assert_eq!(case(bound.clone()).judge().verdict.warnings, Vec::<String>::new());
    bound.peak = 70_000_000;
    let expected = "the limit `memory` of node db: 70000000 bytes were in use between two looks of \
                    the watch, where 64000000 are allowed";
    assert_eq!(case(bound.clone()).judge().verdict.warnings, [expected]);
    // A group of the kernel has no looks.
    bound.mechanism = "cgroup v1".to_owned();
    assert_eq!(case(bound).judge().verdict.warnings, Vec::<String>::new());
}
