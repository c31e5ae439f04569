//! Limits of memory, processes and descriptors in verdicts.

use windtunnel_limit::{LimitAccount, ResourceLimitOwner};
use windtunnel_model::{HeldLimit, LimitMechanism, Resource};

use super::super::testing::RunEvidenceFixture;

fn bound(owner: ResourceLimitOwner, resource: Resource, asked: u64) -> LimitAccount {
    LimitAccount::new(owner, resource, HeldLimit::new(resource, LimitMechanism::Nothing, asked))
}

fn case(bound: LimitAccount) -> RunEvidenceFixture {
    let mut case =
        RunEvidenceFixture::of("nodes: {db: {memory: 64MB}, b: {}}\nlinks: [{between: [db, b]}]");
    case.bounds = vec![bound];
    case
}

#[test]
fn a_limit_that_was_met_is_reported_and_the_run_is_faithful() {
    let mut bound = bound(ResourceLimitOwner::Node(0), Resource::Memory, 64_000_000);
    let held = &mut bound.held;
    (held.peak, held.met, held.ended, held.faults) = (Some(63_000_000), 7, 1, Some(3));
    let report = case(bound).judge();
    assert!(report.verdict.faithful, "{:?}", report.verdict);
    let seen = &report.bounds[0];
    assert_eq!((seen.node.as_str(), seen.limit), ("db", Resource::Memory));
    let seen = &seen.held;
    assert_eq!((seen.asked, seen.met, seen.ended), (64_000_000, 7, 1));
    assert_eq!((seen.peak, seen.faults), (Some(63_000_000), Some(3)));
}

#[test]
fn a_limit_that_was_not_held_makes_the_run_unfaithful_with_the_reason() {
    let mut bound = bound(ResourceLimitOwner::Program(0, 1), Resource::Pids, 50);
    bound.held.fail("denied".to_owned());
    let verdict = case(bound).judge().verdict;
    let expected = "the limit `pids` of program 1 of node db was not held: denied";
    assert_eq!(verdict.unfaithful, [expected]);
}

#[test]
fn what_is_used_of_descriptors_is_not_known() {
    let report = case(bound(ResourceLimitOwner::Node(0), Resource::OpenFiles, 256)).judge();
    assert_eq!((report.bounds[0].held.peak, report.bounds[0].held.faults), (None, None));
}

#[test]
fn what_was_used_between_two_looks_of_a_watch_is_said() {
    let mut bound = bound(ResourceLimitOwner::Node(0), Resource::Memory, 64_000_000);
    bound.held.mechanism = LimitMechanism::Watch;
    bound.held.peak = Some(64_000_000);
    assert_eq!(case(bound.clone()).judge().verdict.warnings, Vec::<String>::new());
    bound.held.peak = Some(70_000_000);
    let expected = "the limit `memory` of node db: 70000000 bytes were in use between two looks of \
                    the watch, where 64000000 are allowed";
    assert_eq!(case(bound.clone()).judge().verdict.warnings, [expected]);
    // A group of the kernel has no looks.
    bound.held.mechanism = LimitMechanism::GroupV1;
    assert_eq!(case(bound).judge().verdict.warnings, Vec::<String>::new());
}
