//! The line of a series: the part that is shown, without points that cannot be seen.

use std::ops::RangeInclusive;

use crate::drawing::DrawingPoint;
use crate::figure::{PlotSeries, SeriesInterpolation};

/// The line, clipped to a range of x; a point that is not finite breaks it.
pub(super) fn pieces(series: &PlotSeries, shown: &RangeInclusive<f64>) -> Vec<Vec<(f64, f64)>> {
    let is_number = |point: &(f64, f64)| point.0.is_finite() && point.1.is_finite();
    let whole = series.points.split(|point| !is_number(point)).filter(|part| !part.is_empty());
    let stepped = whole.map(|part| match series.shape {
        SeriesInterpolation::Line => part.to_vec(),
        SeriesInterpolation::Steps => steps(part),
    });
    stepped.map(|part| cut(&part, shown)).filter(|part| !part.is_empty()).collect()
}

/// Each value until the next point.
fn steps(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut line = Vec::with_capacity(points.len() * 2);
    for (index, &(x, y)) in points.iter().enumerate() {
        if index > 0 {
            line.push((x, points[index - 1].1));
        }
        line.push((x, y));
    }
    line
}

fn cut(points: &[(f64, f64)], shown: &RangeInclusive<f64>) -> Vec<(f64, f64)> {
    let mut line = Vec::new();
    for (index, &point) in points.iter().enumerate() {
        if let Some(&before) = index.checked_sub(1).and_then(|index| points.get(index)) {
            for edge in [*shown.start(), *shown.end()] {
                if before.0 < edge && edge < point.0 {
                    let part = (edge - before.0) / (point.0 - before.0);
                    line.push((edge, before.1 + (point.1 - before.1) * part));
                }
            }
        }
        if shown.contains(&point.0) {
            line.push(point);
        }
    }
    line
}

/// Of points in one column a fifth of a point wide, only the first, the lowest, the highest and the
/// last are seen. Others are left out.
pub(super) fn thinned(points: &[DrawingPoint]) -> Vec<DrawingPoint> {
    let column = |point: &DrawingPoint| (point.x / COLUMN).floor();
    let mut kept: Vec<DrawingPoint> = Vec::with_capacity(points.len().min(4096));
    for group in points.chunk_by(|a, b| column(a) == column(b)) {
        if group.len() <= 4 {
            kept.extend(group);
            continue;
        }
        let by_height = |a: &usize, b: &usize| group[*a].y.total_cmp(&group[*b].y);
        let lowest = (0..group.len()).min_by(by_height).unwrap_or(0);
        let highest = (0..group.len()).max_by(by_height).unwrap_or(0);
        let mut seen = [0, lowest, highest, group.len() - 1];
        seen.sort_unstable();
        kept.extend(seen.map(|index| group[index]));
    }
    kept.dedup();
    kept
}

const COLUMN: f64 = 0.2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_at_the_ends_of_its_axis() {
        let series = PlotSeries::new("a", 0, vec![(0.0, 0.0), (10.0, 100.0), (20.0, 100.0)]);
        assert_eq!(pieces(&series, &(5.0..=15.0)), [[(5.0, 50.0), (10.0, 100.0), (15.0, 100.0)]]);
        assert_eq!(pieces(&series, &(2.0..=4.0)), [[(2.0, 20.0), (4.0, 40.0)]]);
        assert!(pieces(&series, &(30.0..=40.0)).is_empty());
    }

    #[test]
    fn a_value_that_is_no_number_interrupts_the_line() {
        let points = vec![(0.0, 1.0), (1.0, f64::NAN), (2.0, 3.0)];
        assert_eq!(pieces(&PlotSeries::new("a", 0, points), &(0.0..=9.0)).len(), 2);
    }

    #[test]
    fn steps_hold_until_the_next_point() {
        let mut series = PlotSeries::new("a", 0, vec![(0.0, 1.0), (2.0, 3.0)]);
        series.shape = SeriesInterpolation::Steps;
        assert_eq!(pieces(&series, &(0.0..=2.0)), [[(0.0, 1.0), (2.0, 1.0), (2.0, 3.0)]]);
    }

    #[test]
    fn a_dense_line_keeps_its_extremes() {
        let height = |n| if n == 5_555 { 77.0 } else { f64::from(n % 7) };
        let points = (0..10_000).map(|n| DrawingPoint { x: f64::from(n) / 1000.0, y: height(n) });
        let kept = thinned(&points.collect::<Vec<_>>());
        assert!(kept.len() <= 4 * 51, "{}", kept.len());
        assert!(kept.iter().any(|point| point.y == 77.0));
    }
}
