//! What is shown of runs, as the page, plots and other programs read it.
//!
//! Fields without a unit in their name are names or counts. Times are nanoseconds after the run
//! began, bytes are IP bytes. What is not known is absent.

pub(crate) mod comparison;
pub(crate) mod distribution;
mod draft;
pub(crate) mod map;
mod mark;
mod output;
pub(crate) mod run;

use serde::Serialize;

pub use crate::flows::{FlowDirectionSummary, FlowSummary, Rtt};
pub use crate::series::{LinkTimeSeries, LinkTimeSeriesSet};
pub use comparison::{ComparisonGroup, MeanDifference, RunComparison, RunMeasureComparison};
pub use distribution::DurationHistogram;
pub use map::{MapDirectedLink, MapLink, MapVertex, TopologyMap, VertexKind};
pub use mark::{EventAnnotation, EventAnnotationKind};
pub use output::NodeOutputExcerpt;
pub use run::{CpuLimitSeries, RunSection};

/// Version of the format. A reader refuses a later one.
pub const VERSION: u32 = 1;

/// All that is shown.
#[derive(Debug, Clone, Serialize)]
pub struct ReportDocument {
    /// `windtunnel-report`.
    pub format: &'static str,
    /// [`VERSION`].
    pub version: u32,
    /// The program that made it, and its version.
    pub generator: String,
    pub mode: PageMode,
    pub runs: Vec<RunSection>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparison: Option<RunComparison>,
}

/// What the page is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PageMode {
    /// Runs that are over.
    Report,
    /// A run that goes on.
    Live,
    /// A file that does not run.
    Edit,
}
