//! Lines, areas and words at places. Lengths are in points, y grows downward.

/// A drawing.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct VectorDrawing {
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// Later ones are on top.
    pub(crate) items: Vec<DrawingElement>,
}

/// A part of a drawing.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum DrawingElement {
    /// A line through points.
    Line {
        points: Vec<DrawingPoint>,
        stroke: Stroke,
    },
    Words(TextLabel),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DrawingPoint {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

/// How a line looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Stroke {
    pub(crate) colour: RgbColour,
    pub(crate) width: f64,
    /// Lengths of dashes and gaps in turn; empty: a full line.
    pub(crate) dash: &'static [f64],
}

/// A line of text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TextLabel {
    pub(crate) text: String,
    /// Where its baseline begins, has its middle or ends.
    pub(crate) at: DrawingPoint,
    pub(crate) anchor: TextAnchor,
    pub(crate) size: f64,
    /// Whether it is to be read from below.
    pub(crate) turned: bool,
    pub(crate) colour: RgbColour,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextAnchor {
    Start,
    Middle,
    End,
}

/// Red, green and blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RgbColour(pub(crate) u8, pub(crate) u8, pub(crate) u8);

impl RgbColour {
    pub(crate) const BLACK: RgbColour = RgbColour(0, 0, 0);
    pub(crate) const WHITE: RgbColour = RgbColour(0xff, 0xff, 0xff);
    pub(crate) const GRID: RgbColour = RgbColour(0xe3, 0xe3, 0xe3);
    pub(crate) const FRAME: RgbColour = RgbColour(0x55, 0x55, 0x55);
    pub(crate) const MARK: RgbColour = RgbColour(0x77, 0x77, 0x77);

    /// Okabe and Ito's colours, without the yellow, which is too light for a line on white.
    pub(crate) fn of_series(number: usize) -> Self {
        SERIES[number % SERIES.len()]
    }
}

/// Dashes of series.
pub(crate) fn dash(number: usize) -> &'static [f64] {
    DASHES[number % DASHES.len()]
}

impl TextLabel {
    /// Where the text begins, if it has this width.
    pub(crate) fn start(&self, width: f64) -> DrawingPoint {
        let back = match self.anchor {
            TextAnchor::Start => 0.0,
            TextAnchor::Middle => width / 2.0,
            TextAnchor::End => width,
        };
        match self.turned {
            true => DrawingPoint { x: self.at.x, y: self.at.y + back },
            false => DrawingPoint { x: self.at.x - back, y: self.at.y },
        }
    }
}

/// A length with two digits after the point, without trailing zeros.
pub(crate) fn length(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

const SERIES: [RgbColour; 7] = [
    RgbColour(0x00, 0x72, 0xb2),
    RgbColour(0xd5, 0x5e, 0x00),
    RgbColour(0x00, 0x9e, 0x73),
    RgbColour(0xcc, 0x79, 0xa7),
    RgbColour(0x00, 0x00, 0x00),
    RgbColour(0x56, 0xb4, 0xe9),
    RgbColour(0xe6, 0x9f, 0x00),
];
const DASHES: [&[f64]; 4] = [&[], &[4.0, 1.6], &[1.2, 1.2], &[5.0, 1.5, 1.2, 1.5]];
