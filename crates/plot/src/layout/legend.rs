//! The legend: a short line and a name for each series, in rows above the panels.

use std::collections::BTreeSet;

use super::{Canvas, NUMBER, SERIES};
use crate::drawing::{DrawingPoint, RgbColour, Stroke, TextAnchor, dash};
use crate::figure::{Figure, PlotSeries};

impl Canvas {
    /// Draws it where there is more than one name; the height that it takes.
    pub(super) fn legend(&mut self, figure: &Figure, left: f64, right: f64, top: f64) -> f64 {
        let mut names = BTreeSet::new();
        let all = figure.panels.iter().flat_map(|panel| &panel.series);
        let rows: Vec<&PlotSeries> =
            all.filter(|series| names.insert(series.name.as_str())).collect();
        if rows.len() < 2 {
            return 0.0;
        }
        let (mut x, mut y) = (left, top + ROW / 2.0);
        for series in rows {
            let text = self.font.fitted(&series.name, NUMBER, right - left - SWATCH - SPACE);
            let width = SWATCH + SPACE + self.font.width(&text, NUMBER);
            if x > left && x + width > right {
                (x, y) = (left, y + ROW);
            }
            let stroke = Stroke {
                colour: RgbColour::of_series(series.colour),
                width: SERIES * 1.2,
                dash: dash(series.dash),
            };
            self.line(vec![DrawingPoint { x, y }, DrawingPoint { x: x + SWATCH, y }], stroke);
            let at =
                DrawingPoint { x: x + SWATCH + SPACE, y: y + self.font.cap_height(NUMBER) / 2.0 };
            self.words(text, at, TextAnchor::Start, NUMBER);
            x += width + SPACE * 3.0;
        }
        y - top + ROW / 2.0 + 1.5
    }
}

const SWATCH: f64 = 14.0;
const SPACE: f64 = 3.0;
const ROW: f64 = 9.0;
