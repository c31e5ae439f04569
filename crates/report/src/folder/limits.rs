//! How much of runs is shown.

/// How much of runs is shown.
#[derive(Debug, Clone, Copy)]
pub struct ReportSizeLimits {
    /// Size of the page, in bytes. Time lines get coarser until it is kept, or until they are of
    /// one point.
    pub page_bytes_max: usize,
    /// Records are read if all files of a run have no more bytes.
    pub records_bytes_max: u64,
}

impl Default for ReportSizeLimits {
    fn default() -> Self {
        ReportSizeLimits { page_bytes_max: 2_000_000, records_bytes_max: 1 << 30 }
    }
}
