//! Measures of several runs, and how groups of them differ.
//!
//! Of a measure that repetitions of a group were asked for, the mean has a 95 % confidence interval
//! by Student's t; the difference of two groups has one by Welch's t (B. L. Welch, "The
//! generalization of 'Student's' problem when several different population variances are involved",
//! Biometrika 34, 1947), with the degrees of freedom of Welch and Satterthwaite.

pub(crate) mod inputs;
mod measures;
mod student;

use crate::document::comparison::{
    ComparisonGroup, MeanDifference, RunComparison, RunMeasureComparison,
};
use crate::document::run::RunSection;
use crate::folder::groups::RunGroup;
use inputs::RunComparisonInputs;
use student::{interval, welch};

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
