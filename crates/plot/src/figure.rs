//! What is drawn.

use crate::quantity::AxisQuantity;
use crate::size::FigureSize;

/// Panels, one below the other, with a legend for all of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    pub title: Option<String>,
    pub size: FigureSize,
    pub panels: Vec<PlotPanel>,
}

/// Series over an axis.
#[derive(Debug, Clone, PartialEq)]
pub struct PlotPanel {
    pub x: Axis,
    pub y: Axis,
    pub series: Vec<PlotSeries>,
    pub marks: Vec<VerticalMarker>,
}

/// An axis. Panels with equal axes of time below each other share its numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// What is on it, without the unit.
    pub label: String,
    pub quantity: AxisQuantity,
    pub scale: AxisScale,
    /// What it shows; absent: all values.
    pub range: Option<(f64, f64)>,
}

/// How values become places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AxisScale {
    /// From zero where values are on one side of it.
    Linear,
    /// Positive values only; others are at its lower end.
    Log,
}

/// Points that a line connects.
#[derive(Debug, Clone, PartialEq)]
pub struct PlotSeries {
    /// What the legend shows. Series of the same name share a row of it.
    pub name: String,
    /// Which colour: of one run everywhere the same.
    pub colour: usize,
    /// Which dashes, where series of one colour are to differ; 0 is a full line.
    pub dash: usize,
    pub shape: SeriesInterpolation,
    /// In the units of the axes' quantities, ascending in x.
    pub points: Vec<(f64, f64)>,
}

/// What connects two points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeriesInterpolation {
    Line,
    /// The value of a point holds until the next one.
    Steps,
}

/// Something that happened at a moment: a line over all of a panel.
#[derive(Debug, Clone, PartialEq)]
pub struct VerticalMarker {
    pub at: f64,
    /// Beside the line, in the first panel, where there is room.
    pub text: String,
}

impl PlotPanel {
    /// A panel without series.
    #[must_use]
    pub fn new(x: Axis, y: Axis) -> Self {
        PlotPanel { x, y, series: Vec::new(), marks: Vec::new() }
    }
}

impl Axis {
    /// A linear axis of all values.
    #[must_use]
    pub fn new(label: &str, quantity: AxisQuantity) -> Self {
        Axis { label: label.to_owned(), quantity, scale: AxisScale::Linear, range: None }
    }

    /// The time since a run began.
    #[must_use]
    pub fn seconds() -> Self {
        Axis::new("time", AxisQuantity::Seconds)
    }

    /// The same with powers of ten.
    #[must_use]
    pub fn log(self) -> Self {
        Axis { scale: AxisScale::Log, ..self }
    }
}

impl PlotSeries {
    /// A full line.
    #[must_use]
    pub fn new(name: &str, colour: usize, points: Vec<(f64, f64)>) -> Self {
        PlotSeries {
            name: name.to_owned(),
            colour,
            dash: 0,
            shape: SeriesInterpolation::Line,
            points,
        }
    }
}
