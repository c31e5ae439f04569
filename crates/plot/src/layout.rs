//! From a figure to a drawing: a title, a legend, then panels below each other whose frames begin and
//! end at the same places. Panels with equal axes share the numbers of the last of them.

mod curve;
mod legend;
mod rulers;

use crate::PlotError;
use crate::drawing::{
    DrawingElement, DrawingPoint, RgbColour, Stroke, TextAnchor, TextLabel, VectorDrawing, dash,
};
use crate::figure::{Figure, PlotPanel, VerticalMarker};
use crate::font::Font;
use crate::size::FigureSize;
use rulers::PanelAxisLayouts;

/// Where a panel's frame is.
#[derive(Debug, Clone, Copy)]
struct PanelFrame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

/// Draws the figure.
pub(crate) fn draw(figure: &Figure) -> Result<VectorDrawing, PlotError> {
    if figure.panels.is_empty() {
        return Err(PlotError::Empty);
    }
    let (width, height) = figure.size.points();
    let mut canvas =
        Canvas { font: Font::new(), drawing: VectorDrawing { width, height, items: Vec::new() } };
    let rulers = PanelAxisLayouts::of(figure, width, height);
    let left = MARGIN + LABEL + GAP * 2.0 + canvas.widest_number(&rulers);
    let right = width - MARGIN - canvas.overhang(&rulers);
    let mut top = MARGIN + canvas.title(figure, left, right);
    top += canvas.legend(figure, left, right, top);
    let area = PanelFrame { left, right, top, bottom: height - MARGIN };
    let frames = frames(figure, &rulers, area)?;
    for (index, (panel, frame)) in figure.panels.iter().zip(frames).enumerate() {
        canvas.panel(panel, frame, &rulers, index);
    }
    Ok(canvas.drawing)
}

/// Equal heights for all panels of an area.
fn frames(
    figure: &Figure,
    rulers: &PanelAxisLayouts,
    area: PanelFrame,
) -> Result<Vec<PanelFrame>, PlotError> {
    let PanelFrame { left, right, top, bottom } = area;
    let below = |index: usize| if rulers.shares_with_next[index] { BETWEEN } else { X_AXIS };
    let around: f64 = (0..figure.panels.len()).map(below).sum();
    let panels = u32::try_from(figure.panels.len()).unwrap_or(u32::MAX);
    let each = (bottom - top - around) / f64::from(panels);
    if each < LEAST_HEIGHT || right - left < LEAST_WIDTH {
        let height = figure.size.points().1 + (LEAST_HEIGHT - each).max(0.0) * f64::from(panels);
        let width = figure.size.points().0 + (LEAST_WIDTH - (right - left)).max(0.0);
        let least = FigureSize::holding(width, height);
        return Err(PlotError::TooSmall { size: figure.size, panels: figure.panels.len(), least });
    }
    let mut frames = Vec::with_capacity(figure.panels.len());
    let mut y = top;
    for index in 0..figure.panels.len() {
        frames.push(PanelFrame { left, right, top: y, bottom: y + each });
        y += each + below(index);
    }
    Ok(frames)
}

struct Canvas {
    font: Font,
    drawing: VectorDrawing,
}

impl Canvas {
    fn line(&mut self, points: Vec<DrawingPoint>, stroke: Stroke) {
        self.drawing.items.push(DrawingElement::Line { points, stroke });
    }

    fn words(&mut self, text: String, at: DrawingPoint, anchor: TextAnchor, size: f64) {
        let colour = RgbColour::BLACK;
        self.drawing.items.push(DrawingElement::Words(TextLabel {
            text,
            at,
            anchor,
            size,
            turned: false,
            colour,
        }));
    }

    /// Of all numbers of vertical axes.
    fn widest_number(&self, rulers: &PanelAxisLayouts) -> f64 {
        let texts = rulers.y.iter().flat_map(|axis| &axis.ruler.ticks);
        texts.map(|tick| self.font.width(&tick.text, NUMBER)).fold(0.0, f64::max)
    }

    /// What the last number of a horizontal axis has to the right of its frame.
    fn overhang(&self, rulers: &PanelAxisLayouts) -> f64 {
        let last = rulers.x.iter().filter_map(|axis| axis.ruler.ticks.last());
        let over = last.filter(|tick| tick.at > 0.9);
        over.map(|tick| self.font.width(&tick.text, NUMBER) / 2.0).fold(2.0, f64::max)
    }

    /// The height that it takes.
    fn title(&mut self, figure: &Figure, left: f64, right: f64) -> f64 {
        let Some(title) = figure.title.as_deref().filter(|title| !title.is_empty()) else {
            return 0.0;
        };
        let text = self.font.fitted(title, TITLE, self.drawing.width - 2.0 * MARGIN);
        // Over the frames, unless it is wider than they are.
        let middle = match self.font.width(&text, TITLE) <= right - left {
            true => f64::midpoint(left, right),
            false => self.drawing.width / 2.0,
        };
        let y = MARGIN + self.font.cap_height(TITLE) + 1.0;
        self.words(text, DrawingPoint { x: middle, y }, TextAnchor::Middle, TITLE);
        TITLE + 3.5
    }

    fn panel(
        &mut self,
        panel: &PlotPanel,
        frame: PanelFrame,
        rulers: &PanelAxisLayouts,
        index: usize,
    ) {
        let (x, y) = (&rulers.x[index], &rulers.y[index]);
        let across = |at: f64| frame.left + at * (frame.right - frame.left);
        let up = |at: f64| frame.bottom - at * (frame.bottom - frame.top);
        for tick in &x.ruler.ticks {
            let x = across(tick.at);
            self.line(
                vec![DrawingPoint { x, y: frame.top }, DrawingPoint { x, y: frame.bottom }],
                grid(&tick.text),
            );
        }
        for tick in &y.ruler.ticks {
            let y = up(tick.at);
            self.line(
                vec![DrawingPoint { x: frame.left, y }, DrawingPoint { x: frame.right, y }],
                grid(&tick.text),
            );
        }
        self.marks(panel, frame, rulers, index);
        for series in &panel.series {
            let stroke = Stroke {
                colour: RgbColour::of_series(series.colour),
                width: SERIES,
                dash: dash(series.dash),
            };
            let place = |(a, b): (f64, f64)| DrawingPoint {
                x: across(x.place(a).clamp(0.0, 1.0)),
                y: up(y.place(b).clamp(0.0, 1.0)),
            };
            for points in curve::pieces(series, &x.shown()) {
                let places = curve::thinned(&points.into_iter().map(place).collect::<Vec<_>>());
                self.line(places, stroke);
            }
        }
        self.mark_words(panel, frame, rulers, index);
        self.frame(frame);
        self.numbers(frame, rulers, index);
    }

    fn frame(&mut self, PanelFrame { left, right, top, bottom }: PanelFrame) {
        let corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)];
        let points = corners.map(|(x, y)| DrawingPoint { x, y }).to_vec();
        self.line(points, Stroke { colour: RgbColour::FRAME, width: 0.5, dash: &[] });
    }

    /// Numbers and labels of both axes.
    fn numbers(&mut self, frame: PanelFrame, rulers: &PanelAxisLayouts, index: usize) {
        let (x, y) = (&rulers.x[index], &rulers.y[index]);
        let half = self.font.cap_height(NUMBER) / 2.0;
        for tick in y.ruler.ticks.iter().filter(|tick| !tick.text.is_empty()) {
            let at = DrawingPoint {
                x: frame.left - GAP,
                y: frame.bottom - tick.at * (frame.bottom - frame.top) + half,
            };
            self.words(tick.text.clone(), at, TextAnchor::End, NUMBER);
        }
        let room = frame.bottom - frame.top + BETWEEN;
        let at =
            DrawingPoint { x: MARGIN + LABEL * 0.8, y: f64::midpoint(frame.top, frame.bottom) };
        let text = self.font.fitted(&y.label, LABEL, room);
        let words = TextLabel {
            text,
            at,
            anchor: TextAnchor::Middle,
            size: LABEL,
            turned: true,
            colour: RgbColour::BLACK,
        };
        self.drawing.items.push(DrawingElement::Words(words));
        if rulers.shares_with_next[index] {
            return;
        }
        let baseline = frame.bottom + GAP + half * 2.0 + 0.5;
        for tick in x.ruler.ticks.iter().filter(|tick| !tick.text.is_empty()) {
            let at = frame.left + tick.at * (frame.right - frame.left);
            self.words(
                tick.text.clone(),
                DrawingPoint { x: at, y: baseline },
                TextAnchor::Middle,
                NUMBER,
            );
        }
        let middle =
            DrawingPoint { x: f64::midpoint(frame.left, frame.right), y: baseline + LABEL + 1.5 };
        let text = self.font.fitted(&x.label, LABEL, frame.right - frame.left);
        self.words(text, middle, TextAnchor::Middle, LABEL);
    }

    /// Lines of what happened.
    fn marks(
        &mut self,
        panel: &PlotPanel,
        frame: PanelFrame,
        rulers: &PanelAxisLayouts,
        index: usize,
    ) {
        let stroke = Stroke { colour: RgbColour::MARK, width: 0.5, dash: &[1.5, 1.5] };
        for (x, _) in placed(panel, frame, rulers, index) {
            let ends = [frame.top, frame.bottom];
            self.line(ends.map(|y| DrawingPoint { x, y }).to_vec(), stroke);
        }
    }

    /// Words beside the lines of the first panel, on white, where they do not overlap.
    fn mark_words(
        &mut self,
        panel: &PlotPanel,
        frame: PanelFrame,
        rulers: &PanelAxisLayouts,
        index: usize,
    ) {
        if index > 0 && rulers.shares_with_next[index - 1] {
            return;
        }
        let mut free = frame.left;
        for (x, text) in placed(panel, frame, rulers, index) {
            if text.is_empty() || x - MARK - 1.5 < free {
                continue;
            }
            free = x;
            let text = self.font.fitted(text, MARK, frame.bottom - frame.top - 4.0);
            let at = DrawingPoint { x: x - 1.5, y: frame.top + 2.0 };
            let (length, middle) = (self.font.width(&text, MARK), at.x - MARK * 0.36);
            let ends = [at.y - 1.0, at.y + length + 1.0].map(|y| DrawingPoint { x: middle, y });
            let white = Stroke { colour: RgbColour::WHITE, width: MARK, dash: &[] };
            self.line(ends.to_vec(), white);
            let (anchor, size, colour) = (TextAnchor::End, MARK, RgbColour::FRAME);
            let words = TextLabel { text, at, anchor, size, turned: true, colour };
            self.drawing.items.push(DrawingElement::Words(words));
        }
    }
}

/// The marks of a panel that its axis shows, with their places.
fn placed<'p>(
    panel: &'p PlotPanel,
    frame: PanelFrame,
    rulers: &PanelAxisLayouts,
    index: usize,
) -> Vec<(f64, &'p str)> {
    let place = |mark: &'p VerticalMarker| {
        let at = rulers.x[index].place(mark.at);
        let x = frame.left + at * (frame.right - frame.left);
        (0.0..=1.0).contains(&at).then_some((x, mark.text.as_str()))
    };
    panel.marks.iter().filter_map(place).collect()
}

/// Lines without a number are thinner.
fn grid(text: &str) -> Stroke {
    let width = if text.is_empty() { 0.25 } else { 0.5 };
    Stroke { colour: RgbColour::GRID, width, dash: &[] }
}

/// Around everything.
const MARGIN: f64 = 2.5;
/// Between numbers and their frame.
const GAP: f64 = 3.0;
/// Below a frame: numbers and the label.
const X_AXIS: f64 = 22.0;
/// Between frames that share numbers.
const BETWEEN: f64 = 7.0;
const LEAST_HEIGHT: f64 = 24.0;
const LEAST_WIDTH: f64 = 40.0;
/// Sizes of text: papers set theirs in 9 or 10 points, captions in 8.
const TITLE: f64 = 8.5;
const LABEL: f64 = 7.5;
const NUMBER: f64 = 7.0;
const MARK: f64 = 5.5;
/// The width of a series' line.
const SERIES: f64 = 1.0;
