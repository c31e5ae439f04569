//! Where what was counted in each interval goes.

use windtunnel_model::Time;
use windtunnel_trace::sample::LinkSampleRow;

/// Takes what links did, one row per lane index. It must not wait: packets do until it has returned.
pub trait SampleSink: Send {
    /// An interval has ended, `at` after the run began.
    fn sample(&self, at: Time, rows: Vec<LinkSampleRow>);

    /// The last interval has ended.
    fn last_sample(&self, at: Time, rows: Vec<LinkSampleRow>);
}
