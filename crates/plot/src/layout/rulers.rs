//! What each axis shows: its ends, its unit, its numbers.

use std::ops::RangeInclusive;

use crate::figure::{Axis, AxisScale, Figure, PlotPanel};
use crate::quantity::AxisUnit;
use crate::ticks::Ruler;

/// An axis as it is drawn.
#[derive(Debug)]
pub(super) struct AxisLayout {
    pub(super) ruler: Ruler,
    unit: AxisUnit,
    /// With the unit.
    pub(super) label: String,
}

/// The axes of all panels.
#[derive(Debug)]
pub(super) struct PanelAxisLayouts {
    pub(super) x: Vec<AxisLayout>,
    pub(super) y: Vec<AxisLayout>,
    /// Whether a panel has its numbers below the next one.
    pub(super) shares_with_next: Vec<bool>,
}

impl AxisLayout {
    /// An axis that shows these values.
    fn new(axis: &Axis, values: Option<(f64, f64)>, numbers: usize) -> Self {
        let fixed = axis.range.is_some();
        let (low, high) = axis.range.or(values).unwrap_or((0.0, 0.0));
        let (low, high) = match axis.scale {
            AxisScale::Linear if !fixed => (low.min(0.0), high.max(0.0)),
            _ => (low, high),
        };
        let unit = axis.quantity.unit(low.abs().max(high.abs()));
        let (low, high) = (low / unit.size, high / unit.size);
        let label = match unit.name {
            "" => axis.label.clone(),
            name => format!("{} ({name})", axis.label),
        };
        let least_step = if axis.quantity.is_whole() { 1.0 / unit.size } else { 0.0 };
        AxisLayout {
            ruler: Ruler::new(low, high, axis.scale, fixed, least_step, numbers),
            unit,
            label,
        }
    }

    /// Where a value is, from 0 to 1.
    pub(super) fn place(&self, value: f64) -> f64 {
        self.ruler.place(value / self.unit.size)
    }

    /// The values from one end to the other.
    pub(super) fn shown(&self) -> RangeInclusive<f64> {
        self.ruler.low * self.unit.size..=self.ruler.high * self.unit.size
    }
}

impl PanelAxisLayouts {
    /// The axes of a figure of this size in points.
    pub(super) fn of(figure: &Figure, width: f64, height: f64) -> Self {
        let panels = &figure.panels;
        let shares_with_next: Vec<bool> = (0..panels.len())
            .map(|index| panels.get(index + 1).is_some_and(|next| next.x == panels[index].x))
            .collect();
        let each = height / f64::from(u32::try_from(panels.len()).unwrap_or(1));
        let x: Vec<AxisLayout> = panels
            .iter()
            .map(|panel| {
                let same = panels.iter().filter(|other| other.x == panel.x);
                let range = extent(same.flat_map(xs), panel.x.scale);
                let range = match panel.x.scale {
                    // A line ends where its values end.
                    AxisScale::Linear => return AxisLayout::horizontal(panel, range, width),
                    AxisScale::Log => range,
                };
                AxisLayout::new(&panel.x, range, rooms(width, WIDE))
            })
            .collect();
        let y = panels.iter().zip(&x).map(|(panel, x)| {
            AxisLayout::new(
                &panel.y,
                extent(ys(panel, x.shown()), panel.y.scale),
                rooms(each, HIGH),
            )
        });
        let y = y.collect();
        PanelAxisLayouts { x, y, shares_with_next }
    }
}

impl AxisLayout {
    /// A linear horizontal axis: as long as its values, not to the next number.
    fn horizontal(panel: &PlotPanel, range: Option<(f64, f64)>, width: f64) -> Self {
        let (low, high) = panel.x.range.or(range).unwrap_or((0.0, 1.0));
        let low = if panel.x.range.is_none() { low.min(0.0) } else { low };
        let axis = Axis { range: Some((low, high)), ..panel.x.clone() };
        AxisLayout::new(&axis, None, rooms(width, WIDE))
    }
}

fn xs(panel: &PlotPanel) -> impl Iterator<Item = f64> {
    panel.series.iter().flat_map(|series| series.points.iter().map(|point| point.0))
}

/// Values of the part that is shown.
fn ys(panel: &PlotPanel, shown: RangeInclusive<f64>) -> impl Iterator<Item = f64> {
    let points = panel.series.iter().flat_map(|series| &series.points);
    points.filter(move |point| shown.contains(&point.0)).map(|point| point.1)
}

/// The least and the greatest; of a logarithmic axis those of positive ones.
fn extent(values: impl Iterator<Item = f64>, scale: AxisScale) -> Option<(f64, f64)> {
    let values =
        values.filter(|value| value.is_finite() && (scale == AxisScale::Linear || *value > 0.0));
    values.fold(None, |extent, value| match extent {
        None => Some((value, value)),
        Some((low, high)) => Some((value.min(low), value.max(high))),
    })
}

/// How many numbers have room.
fn rooms(length: f64, each: f64) -> usize {
    // Small and positive.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "see above")]
    let rooms = (length / each).clamp(2.0, 20.0) as usize;
    rooms
}

/// The room of a number along an axis, in points.
const WIDE: f64 = 36.0;
const HIGH: f64 = 24.0;
