//! Figures for papers: series of a run drawn as SVG, PNG or PDF.
//!
//! Promises: the same figure gives the same bytes; all three formats are of one drawing; text is
//! drawn with a font that this crate carries (`font/`), so that nothing depends on what is
//! installed; colours that colour-blind readers can distinguish, and lines that differ in their
//! dashes too. Refuses: reading runs (its input is numbers), clocks, files.
//!
//! | module | what |
//! | --- | --- |
//! | [`figure`] | what is drawn: panels of series over an axis |
//! | [`quantity`] | what numbers are, and the unit in which an axis shows them |
//! | [`size`] | the size on paper |
//! | `ticks` | where an axis has numbers |
//! | `layout` | from a figure to a drawing: places of frames, lines and words |
//! | `drawing` | lines, areas and words at places |
//! | `font` | widths and outlines of characters |
//! | `svg`, `png`, `pdf` | a drawing as bytes |
//!
//! ```
//! use windtunnel_plot::{Axis, Figure, FigureFormat, PlotPanel, AxisQuantity, PlotSeries, FigureSize};
//! let mut panel = PlotPanel::new(Axis::seconds(), Axis::new("throughput", AxisQuantity::BitRate));
//! panel.series.push(PlotSeries::new("ocean", 0, vec![(0.0, 1e6), (1.0, 9e6)]));
//! let figure = Figure { title: None, size: FigureSize::SINGLE_COLUMN, panels: vec![panel] };
//! let svg = windtunnel_plot::render(&figure, FigureFormat::Svg)?;
//! assert!(String::from_utf8(svg)?.contains("throughput (Mbit/s)"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod drawing;
pub mod figure;
mod font;
mod layout;
mod pdf;
mod png;
pub mod quantity;
pub mod size;
mod svg;
mod ticks;

pub use figure::{
    Axis, AxisScale, Figure, PlotPanel, PlotSeries, SeriesInterpolation, VerticalMarker,
};
pub use quantity::AxisQuantity;
pub use size::FigureSize;

/// The format of a figure's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureFormat {
    Svg,
    /// With so many pixels to the inch.
    Png {
        dpi: u32,
    },
    Pdf,
}

/// Why a figure cannot be drawn.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlotError {
    /// It has no panel.
    #[error("the figure has nothing to draw")]
    Empty,
    /// Frames and words need more room than there is.
    #[error("the figure has no room in {size}: {panels} panels need at least {least}")]
    TooSmall { size: FigureSize, panels: usize, least: FigureSize },
    /// It would have too many pixels.
    #[error("a PNG of {size} with {dpi} pixels to the inch has more than {PIXELS_MAX} pixels")]
    TooManyPixels { size: FigureSize, dpi: u32 },
}

/// The figure as bytes.
///
/// # Errors
/// If it has no panel, or no room, or too many pixels.
pub fn render(figure: &Figure, format: FigureFormat) -> Result<Vec<u8>, PlotError> {
    let drawing = layout::draw(figure)?;
    match format {
        FigureFormat::Svg => Ok(svg::write(&drawing)),
        FigureFormat::Png { dpi } => png::write(&drawing, figure.size, dpi),
        FigureFormat::Pdf => Ok(pdf::write(&drawing)),
    }
}

/// The most pixels of a PNG.
pub const PIXELS_MAX: u64 = 100_000_000;
