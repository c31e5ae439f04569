//! A drawing as SVG. The font is in it, so that it looks the same everywhere; programs that ignore
//! that take another sans-serif font.

use std::fmt::Write as _;

use crate::drawing::{DrawingElement, RgbColour, TextAnchor, TextLabel, VectorDrawing, length};
use crate::font;

/// The bytes of the file.
pub(crate) fn write(drawing: &VectorDrawing) -> Vec<u8> {
    let mut out = String::with_capacity(64 << 10);
    let (width, height) = (drawing.width, drawing.height);
    let millimetres = |points: f64| length(points * 25.4 / 72.0);
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}mm\" height=\"{}mm\" viewBox=\"0 0 {} {}\">",
        millimetres(width),
        millimetres(height),
        length(width),
        length(height)
    );
    let _ = writeln!(
        out,
        "<style>@font-face{{font-family:\"Roboto\";src:url(data:font/ttf;base64,{})}}\n\
         text{{font-family:Roboto,Helvetica,Arial,sans-serif;font-kerning:none;text-rendering:geometricPrecision}}</style>",
        base64(font::FILE)
    );
    let _ = writeln!(out, "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>");
    for item in &drawing.items {
        match item {
            DrawingElement::Line { points, stroke } => {
                let points: Vec<String> =
                    points.iter().map(|p| format!("{},{}", length(p.x), length(p.y))).collect();
                let dash: Vec<String> = stroke.dash.iter().map(|part| length(*part)).collect();
                let dash = match dash.is_empty() {
                    true => String::new(),
                    false => format!(" stroke-dasharray=\"{}\"", dash.join(" ")),
                };
                let _ = writeln!(
                    out,
                    "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"{dash} stroke-linejoin=\"round\" points=\"{}\"/>",
                    colour(stroke.colour),
                    length(stroke.width),
                    points.join(" ")
                );
            }
            DrawingElement::Words(words) => text(&mut out, words),
        }
    }
    out.push_str("</svg>\n");
    out.into_bytes()
}

fn text(out: &mut String, words: &TextLabel) {
    let anchor = match words.anchor {
        TextAnchor::Start => "start",
        TextAnchor::Middle => "middle",
        TextAnchor::End => "end",
    };
    let (x, y) = (length(words.at.x), length(words.at.y));
    let turn = match words.turned {
        true => format!(" transform=\"rotate(-90 {x} {y})\""),
        false => String::new(),
    };
    let _ = writeln!(
        out,
        "<text x=\"{x}\" y=\"{y}\" font-size=\"{}\" text-anchor=\"{anchor}\" fill=\"{}\"{turn}>{}</text>",
        length(words.size),
        colour(words.colour),
        escaped(&words.text)
    );
}

fn colour(RgbColour(red, green, blue): RgbColour) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Without what XML cannot have.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            character if character.is_control() => out.push(' '),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            character => out.push(character),
        }
    }
    out
}

/// RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for position in 0..4u8 {
            let digit = (bits >> (18 - 6 * u32::from(position)) & 63) as usize;
            match usize::from(position) <= group.len() {
                true => out.push(char::from(DIGITS[digit])),
                false => out.push('='),
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_rfc() {
        for (plain, coded) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foob", "Zm9vYg==")] {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }

    #[test]
    fn names_cannot_break_out_of_their_element() {
        assert_eq!(escaped("</text><script> & \u{1}"), "&lt;/text&gt;&lt;script&gt; &amp;  ");
    }
}
