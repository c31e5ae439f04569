//! For the tests of checks.

/// What a check finds in a text.
pub(super) fn faults_of(
    check: fn(&str, &str, &mut Vec<String>),
    name: &str,
    text: &str,
) -> Vec<String> {
    let mut faults = Vec::new();
    check(name, text, &mut faults);
    faults
}
