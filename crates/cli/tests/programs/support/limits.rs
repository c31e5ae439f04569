//! Verdicts about limits.

use serde_json::Value;

/// Whether nothing makes a run doubtful but limits of processors that were exceeded in one second:
/// the machine may have kept a limit's mechanism itself from running, or counts time as used that
/// a hypervisor took.
#[track_caller]
pub(crate) fn assert_limits_were_held(report: &Value) {
    let is_one_second = |doubt: &Value| {
        let doubt = doubt.as_str().unwrap();
        doubt.starts_with("the processor limit of ") && doubt.contains(" was not held in 1 of ")
    };
    let doubts = report["verdict"]["unfaithful"].as_array().unwrap();
    assert!(doubts.iter().all(is_one_second), "{}", report["verdict"]);
}
