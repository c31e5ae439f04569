//! A drawing as PNG.

use tiny_skia::{
    FillRule, LineJoin, Paint, Path, PathBuilder, Pixmap, Stroke as Pen, StrokeDash, Transform,
};
use ttf_parser::OutlineBuilder;

use crate::drawing::{DrawingElement, RgbColour, TextLabel, VectorDrawing};
use crate::font::Font;
use crate::size::FigureSize;
use crate::{PIXELS_MAX, PlotError};

/// The bytes of the file.
pub(crate) fn write(
    drawing: &VectorDrawing,
    size: FigureSize,
    dpi: u32,
) -> Result<Vec<u8>, PlotError> {
    let scale = f64::from(dpi) / 72.0;
    let (width, height) = (pixels(drawing.width * scale), pixels(drawing.height * scale));
    let too_many = || PlotError::TooManyPixels { size, dpi };
    if u64::from(width) * u64::from(height) > PIXELS_MAX {
        return Err(too_many());
    }
    let mut image = Pixmap::new(width, height).ok_or_else(too_many)?;
    image.fill(tiny_skia::Color::WHITE);
    let transform = Transform::from_scale(narrow(scale), narrow(scale));
    let font = Font::new();
    for item in &drawing.items {
        match item {
            DrawingElement::Line { points, stroke } => {
                let mut path = PathBuilder::new();
                for (index, point) in points.iter().enumerate() {
                    match index {
                        0 => path.move_to(narrow(point.x), narrow(point.y)),
                        _ => path.line_to(narrow(point.x), narrow(point.y)),
                    }
                }
                // One point alone is no line.
                let Some(path) = path.finish() else { continue };
                let dash: Vec<f32> = stroke.dash.iter().map(|part| narrow(*part)).collect();
                let pen = Pen {
                    width: narrow(stroke.width),
                    line_join: LineJoin::Round,
                    dash: StrokeDash::new(dash, 0.0),
                    ..Pen::default()
                };
                image.stroke_path(&path, &paint(stroke.colour), &pen, transform, None);
            }
            DrawingElement::Words(words) => {
                let Some(path) = outline(&font, words) else { continue };
                let paint = paint(words.colour);
                image.fill_path(&path, &paint, FillRule::Winding, transform, None);
            }
        }
    }
    Ok(encode(&image))
}

/// An opaque image as a PNG of 24-bit colour: what is drawn has few colours and long rows of white, for which no filter
/// of PNG does more than the compression.
fn encode(image: &Pixmap) -> Vec<u8> {
    let (width, height) = (image.width(), image.height());
    let row_bytes = width as usize * 3 + 1;
    let mut rows = Vec::with_capacity(row_bytes * height as usize);
    for row in image.pixels().chunks_exact(width as usize) {
        rows.push(0);
        rows.extend(row.iter().flat_map(|pixel| [pixel.red(), pixel.green(), pixel.blue()]));
    }
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    let size = [width.to_be_bytes(), height.to_be_bytes()].concat();
    // 8 bits a colour, red, green and blue; the only compression, the only filters, not interlaced.
    chunk(&mut file, *b"IHDR", &[&size[..], &[8, 2, 0, 0, 0]].concat());
    chunk(&mut file, *b"IDAT", &miniz_oxide::deflate::compress_to_vec_zlib(&rows, 6));
    chunk(&mut file, *b"IEND", &[]);
    file
}

/// Length, kind, content, and the sum over the last two.
fn chunk(file: &mut Vec<u8>, kind: [u8; 4], content: &[u8]) {
    file.extend(u32::try_from(content.len()).unwrap_or(u32::MAX).to_be_bytes());
    let summed_from = file.len();
    file.extend(kind);
    file.extend(content);
    let sum = crc32fast::hash(&file[summed_from..]);
    file.extend(sum.to_be_bytes());
}

fn paint(RgbColour(red, green, blue): RgbColour) -> Paint<'static> {
    let mut paint = Paint { anti_alias: true, ..Paint::default() };
    paint.set_color_rgba8(red, green, blue, u8::MAX);
    paint
}

/// The outlines of a text; `None` for one that has none.
fn outline(font: &Font, words: &TextLabel) -> Option<Path> {
    let start = words.start(font.width(&words.text, words.size));
    let mut pen =
        GlyphOutline { path: PathBuilder::new(), scale: font.unit() * words.size, along: 0.0 };
    for character in words.text.chars() {
        let glyph = font.glyph(character);
        font.outline(glyph, &mut pen);
        pen.along += font.advance(glyph) * words.size;
    }
    let turn = if words.turned { -90.0 } else { 0.0 };
    let place = Transform::from_rotate(turn).post_translate(narrow(start.x), narrow(start.y));
    pen.path.finish()?.transform(place)
}

/// Outlines of glyphs, one behind the other.
struct GlyphOutline {
    path: PathBuilder,
    scale: f64,
    along: f64,
}

impl GlyphOutline {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        (narrow(self.along + f64::from(x) * self.scale), narrow(-f64::from(y) * self.scale))
    }
}

impl OutlineBuilder for GlyphOutline {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

/// Places are within a page: single precision is a thousandth of a pixel there.
#[expect(clippy::cast_possible_truncation, reason = "see above")]
fn narrow(value: f64) -> f32 {
    value as f32
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
fn pixels(length: f64) -> u32 {
    length.round().clamp(1.0, 1e6) as u32
}
