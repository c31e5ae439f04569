//! Widths and outlines of characters, of the font that this crate carries.

use ttf_parser::{Face, GlyphId, OutlineBuilder};

/// The font's file.
pub(crate) const FILE: &[u8] = include_bytes!("../font/Roboto-Regular-Latin-Greek.ttf");

/// The font.
#[derive(Debug)]
pub(crate) struct Font {
    face: Face<'static>,
}

impl Font {
    /// The one font.
    pub(crate) fn new() -> Self {
        Font {
            face: Face::parse(FILE, 0)
                .expect("the font is a part of the program, and tests read it"),
        }
    }

    pub(crate) fn face(&self) -> &Face<'static> {
        &self.face
    }

    /// The glyph of a character; of one that the font lacks, the empty box.
    pub(crate) fn glyph(&self, character: char) -> GlyphId {
        self.face.glyph_index(character).unwrap_or_default()
    }

    /// Of a glyph, in parts of the size of the text.
    pub(crate) fn advance(&self, glyph: GlyphId) -> f64 {
        f64::from(self.face.glyph_hor_advance(glyph).unwrap_or(0)) * self.unit()
    }

    /// Of a text in points.
    pub(crate) fn width(&self, text: &str, size: f64) -> f64 {
        text.chars().map(|character| self.advance(self.glyph(character))).sum::<f64>() * size
    }

    /// The height of capital letters and digits, in points.
    pub(crate) fn cap_height(&self, size: f64) -> f64 {
        f64::from(self.face.capital_height().unwrap_or(1456)) * self.unit() * size
    }

    pub(crate) fn outline(&self, glyph: GlyphId, builder: &mut dyn OutlineBuilder) {
        // A glyph without an outline is a blank.
        let _ = self.face.outline_glyph(glyph, builder);
    }

    /// One of the font's units, in parts of the size of the text.
    pub(crate) fn unit(&self) -> f64 {
        1.0 / f64::from(self.face.units_per_em())
    }

    /// The text, or as much of its beginning as has room, with an ellipsis.
    pub(crate) fn fitted(&self, text: &str, size: f64, room: f64) -> String {
        if self.width(text, size) <= room {
            return text.to_owned();
        }
        let mut kept: String = text.to_owned();
        while kept.pop().is_some() {
            let shown = format!("{}…", kept.trim_end());
            if self.width(&shown, size) <= room {
                return shown;
            }
        }
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_font_has_the_characters_of_units_and_of_european_names() {
        let font = Font::new();
        for character in "azAZ09/()−µ…≤é ß Łódź Ω θ €".chars() {
            assert_ne!(font.glyph(character), GlyphId(0), "{character}");
        }
        assert_eq!(font.glyph('京'), GlyphId(0));
    }

    #[test]
    fn a_text_without_room_ends_with_an_ellipsis() {
        let font = Font::new();
        let room = font.width("throughp…", 8.0);
        assert_eq!(font.fitted("throughput of it", 8.0, room), "throughp…");
        assert_eq!(font.fitted("short", 8.0, 100.0), "short");
        assert_eq!(font.fitted("short", 8.0, 0.5), "");
    }
}
