//! Measures of several runs, and how groups of them differ.
//!
//! Of a measure that repetitions of a group were asked for, the mean has a 95 % confidence interval
//! by Student's t; the difference of two groups has one by Welch's t (B. L. Welch, "The
//! generalization of 'Student's' problem when several different population variances are involved",
//! Biometrika 34, 1947), with the degrees of freedom of Welch and Satterthwaite.

mod measures;
mod student;

use serde::Serialize;

use crate::document::RunSection;
use crate::folder::{RunComparisonInputs, RunGroup};
use student::{interval, welch};

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

pub(crate) fn all(
    groups: &[RunGroup],
    runs: &[RunSection],
    facts: &[RunComparisonInputs],
) -> RunComparison {
    let of_group = |group: usize| (0..runs.len()).filter(|run| runs[*run].group == group).collect();
    let named = groups.iter().zip(0..);
    let groups: Vec<ComparisonGroup> = named
        .map(|(group, index)| ComparisonGroup { name: group.name.clone(), runs: of_group(index) })
        .collect();
    let measures = measures::all(runs, facts);
    let measures = measures.into_iter().map(|found| measure(found, &groups)).collect();
    RunComparison { groups, measures }
}

fn measure(found: measures::CrossRunMeasure, groups: &[ComparisonGroup]) -> RunMeasureComparison {
    let of = |group: &ComparisonGroup| group.runs.iter().map(|run| found.values[*run]).collect();
    let values: Vec<Vec<Option<f64>>> = groups.iter().map(of).collect();
    let samples: Vec<Vec<f64>> =
        values.iter().map(|values| values.iter().copied().flatten().collect()).collect();
    let difference = (1..groups.len()).filter_map(|group| {
        let (one, other) = (&samples[group], &samples[0]);
        let mean = student::mean(one)? - student::mean(other)?;
        let range = welch(one, other);
        Some(MeanDifference {
            group,
            against: 0,
            mean,
            low: range.map(|range| range[0]),
            high: range.map(|range| range[1]),
            confident: range.is_some_and(|[low, high]| low > 0.0 || high < 0.0),
        })
    });
    RunMeasureComparison {
        difference: difference.collect(),
        mean: samples.iter().map(|sample| student::mean(sample)).collect(),
        interval: samples.iter().map(|sample| interval(sample)).collect(),
        what: found.what,
        unit: found.unit,
        about: found.about,
        link: found.link,
        direction: found.direction,
        values,
    }
}
