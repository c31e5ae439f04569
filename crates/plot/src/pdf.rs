//! A drawing as PDF: one page of the figure's size. Text is text, with the font in the file.

use std::collections::BTreeMap;

use miniz_oxide::deflate::compress_to_vec_zlib;
use pdf_writer::types::{CidFontType, FontFlags, LineJoinStyle, SystemInfo, UnicodeCmap};
use pdf_writer::{Content, Filter, Finish, Name, Pdf, Rect, Ref, Str};

use crate::drawing::{DrawingElement, RgbColour, TextLabel, VectorDrawing};
use crate::font::{self, Font};

/// The bytes of the file.
pub(crate) fn write(drawing: &VectorDrawing) -> Vec<u8> {
    let font = Font::new();
    let mut used = BTreeMap::new();
    let content = compress_to_vec_zlib(&content(drawing, &font, &mut used), LEVEL);
    let mut pdf = Pdf::new();
    pdf.catalog(CATALOG).pages(PAGES);
    pdf.pages(PAGES).kids([PAGE]).count(1);
    let mut page = pdf.page(PAGE);
    page.media_box(Rect::new(0.0, 0.0, narrow(drawing.width), narrow(drawing.height)));
    page.parent(PAGES).contents(CONTENT);
    page.resources().fonts().pair(FONT_NAME, FONT);
    page.finish();
    pdf.stream(CONTENT, &content).filter(Filter::FlateDecode);
    embed(&mut pdf, &font, &used);
    pdf.finish()
}

/// What is drawn; `used` becomes the glyphs in it and their characters.
fn content(drawing: &VectorDrawing, font: &Font, used: &mut BTreeMap<u16, char>) -> Vec<u8> {
    let mut content = Content::new();
    // y grows upward in PDF.
    let up = |y: f64| narrow(drawing.height - y);
    content.set_line_join(LineJoinStyle::RoundJoin);
    for item in &drawing.items {
        match item {
            DrawingElement::Line { points, stroke } => {
                let [red, green, blue] = parts(stroke.colour);
                content.set_stroke_rgb(red, green, blue);
                content.set_line_width(narrow(stroke.width));
                content.set_dash_pattern(stroke.dash.iter().map(|part| narrow(*part)), 0.0);
                for (index, point) in points.iter().enumerate() {
                    match index {
                        0 => content.move_to(narrow(point.x), up(point.y)),
                        _ => content.line_to(narrow(point.x), up(point.y)),
                    };
                }
                content.stroke();
            }
            DrawingElement::Words(words) => {
                let start = words.start(font.width(&words.text, words.size));
                let (x, y) = (narrow(start.x), up(start.y));
                let turned = [0.0, 1.0, -1.0, 0.0, x, y];
                let straight = [1.0, 0.0, 0.0, 1.0, x, y];
                let [red, green, blue] = parts(words.colour);
                content.set_fill_rgb(red, green, blue);
                content.begin_text();
                content.set_font(FONT_NAME, narrow(words.size));
                content.set_text_matrix(if words.turned { turned } else { straight });
                content.show(Str(&glyphs(words, font, used)));
                content.end_text();
            }
        }
    }
    content.finish().to_vec()
}

/// The text as numbers of glyphs.
fn glyphs(words: &TextLabel, font: &Font, used: &mut BTreeMap<u16, char>) -> Vec<u8> {
    let numbers = words.text.chars().map(|character| {
        let glyph = font.glyph(character).0;
        used.entry(glyph).or_insert(character);
        glyph.to_be_bytes()
    });
    numbers.flatten().collect()
}

/// The font: its glyphs by their numbers, widths of those that are used, and their characters for
/// search and copying.
fn embed(pdf: &mut Pdf, font: &Font, used: &BTreeMap<u16, char>) {
    pdf.type0_font(FONT)
        .base_font(BASE)
        .encoding_predefined(Name(b"Identity-H"))
        .descendant_font(CID_FONT)
        .to_unicode(UNICODE);
    let mut cid = pdf.cid_font(CID_FONT);
    cid.subtype(CidFontType::Type2).base_font(BASE).system_info(SYSTEM);
    cid.font_descriptor(DESCRIPTOR).cid_to_gid_map_predefined(Name(b"Identity"));
    let mut widths = cid.widths();
    for &glyph in used.keys() {
        let width = font.advance(ttf_parser::GlyphId(glyph)) * 1000.0;
        widths.consecutive(glyph, [narrow(width)]);
    }
    widths.finish();
    cid.finish();
    let face = font.face();
    let thousandths = |units: i16| narrow(f64::from(units) * font.unit() * 1000.0);
    let bounds = face.global_bounding_box();
    let [left, bottom, right, top] =
        [bounds.x_min, bounds.y_min, bounds.x_max, bounds.y_max].map(thousandths);
    pdf.font_descriptor(DESCRIPTOR)
        .name(BASE)
        .flags(FontFlags::NON_SYMBOLIC)
        .bbox(Rect::new(left, bottom, right, top))
        .italic_angle(0.0)
        .ascent(thousandths(face.ascender()))
        .descent(thousandths(face.descender()))
        .cap_height(thousandths(face.capital_height().unwrap_or_default()))
        .stem_v(80.0)
        .font_file2(FILE);
    let mut cmap = UnicodeCmap::new(Name(b"Custom"), SYSTEM);
    for (&glyph, &character) in used {
        cmap.pair(glyph, character);
    }
    pdf.cmap(UNICODE, &cmap.finish());
    let file = compress_to_vec_zlib(font::FILE, LEVEL);
    let length = i32::try_from(font::FILE.len()).unwrap_or(i32::MAX);
    pdf.stream(FILE, &file).filter(Filter::FlateDecode).pair(Name(b"Length1"), length);
}

fn parts(RgbColour(red, green, blue): RgbColour) -> [f32; 3] {
    [red, green, blue].map(|part| f32::from(part) / 255.0)
}

/// To thousandths of a point, which are written shorter.
#[expect(clippy::cast_possible_truncation, reason = "places are within a page")]
fn narrow(value: f64) -> f32 {
    ((value * 1000.0).round() / 1000.0) as f32
}

const CATALOG: Ref = Ref::new(1);
const PAGES: Ref = Ref::new(2);
const PAGE: Ref = Ref::new(3);
const CONTENT: Ref = Ref::new(4);
const FONT: Ref = Ref::new(5);
const CID_FONT: Ref = Ref::new(6);
const DESCRIPTOR: Ref = Ref::new(7);
const UNICODE: Ref = Ref::new(8);
const FILE: Ref = Ref::new(9);
const FONT_NAME: Name<'static> = Name(b"F1");
/// Six letters before the name say that it is a part of the font.
const BASE: Name<'static> = Name(b"WTLATN+Roboto-Regular");
const SYSTEM: SystemInfo<'static> =
    SystemInfo { registry: Str(b"Adobe"), ordering: Str(b"Identity"), supplement: 0 };
const LEVEL: u8 = 8;
