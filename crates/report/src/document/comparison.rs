//! Figures of several runs.

use serde::Serialize;

/// Groups of runs, and what was measured in all of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunComparison {
    pub groups: Vec<ComparisonGroup>,
    pub measures: Vec<RunMeasureComparison>,
}

/// Runs of the same experiment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ComparisonGroup {
    pub name: String,
    /// Positions of runs.
    pub runs: Vec<usize>,
}

/// A figure of each run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunMeasureComparison {
    /// `goodput`, `dropped`, `lateness p99` and the like.
    pub what: String,
    /// `bit/s`, `ns`, `packets` or `1`.
    pub unit: &'static str,
    /// What it is a figure of, in words.
    pub about: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<String>,
    /// By group and run; `None` where a run does not have it.
    pub values: Vec<Vec<Option<f64>>>,
    /// By group.
    pub mean: Vec<Option<f64>>,
    /// The 95 % confidence interval of each mean; `None` for fewer than two runs.
    pub interval: Vec<Option<[f64; 2]>>,
    /// Of each other group against the first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub difference: Vec<MeanDifference>,
}

/// How the mean of a group differs from that of another.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeanDifference {
    pub group: usize,
    pub against: usize,
    /// The group's mean less the other's.
    pub mean: f64,
    /// The 95 % confidence interval; absent if one of the two has fewer than two runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Whether the interval does not have 0 in it.
    pub confident: bool,
}
