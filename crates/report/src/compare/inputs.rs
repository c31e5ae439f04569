//! What is compared of a run and not shown.

/// What is compared and not shown.
#[derive(Debug, Default)]
pub(crate) struct RunComparisonInputs {
    /// Time of each recorded request.
    pub request_ns: Vec<u64>,
    /// All drops and all that was offered, by lane.
    pub packets: Vec<(u64, u64)>,
}
