//! The size of a figure on paper.

use std::fmt;
use std::str::FromStr;

/// Width and height in tenths of a millimetre.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FigureSize {
    width: u32,
    height: u32,
}

impl FigureSize {
    /// A column of a paper with two.
    pub const SINGLE_COLUMN: FigureSize = FigureSize::millimetres(84, 60);

    /// So many millimetres.
    #[must_use]
    pub const fn millimetres(width: u32, height: u32) -> Self {
        FigureSize { width: width * 10, height: height * 10 }
    }

    /// What so many panels need that share an axis, in one column.
    #[must_use]
    pub fn of_panels(panels: usize) -> Self {
        let more = u32::try_from(panels.saturating_sub(1)).unwrap_or(u32::MAX).min(100);
        FigureSize { height: Self::SINGLE_COLUMN.height + more * 340, ..Self::SINGLE_COLUMN }
    }

    /// Width and height in points, of which an inch has 72.
    #[must_use]
    pub fn points(self) -> (f64, f64) {
        let points = |tenths: u32| f64::from(tenths) * 72.0 / 254.0;
        (points(self.width), points(self.height))
    }

    /// The least size that has so many points.
    #[must_use]
    pub(crate) fn holding(width: f64, height: f64) -> Self {
        // Both are small and positive.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "see above")]
        let tenths = |points: f64| (points * 254.0 / 720.0).ceil().clamp(1.0, 1e5) as u32 * 10;
        FigureSize { width: tenths(width), height: tenths(height) }
    }
}

impl fmt::Display for FigureSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millimetres = |tenths: u32| match tenths % 10 {
            0 => (tenths / 10).to_string(),
            rest => format!("{}.{rest}", tenths / 10),
        };
        write!(f, "{}x{}mm", millimetres(self.width), millimetres(self.height))
    }
}

impl FromStr for FigureSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "write WIDTHxHEIGHTmm, such as 84x60mm, 170x80mm or 8.4x6cm".to_owned();
        let (numbers, scale) = match (text.strip_suffix("mm"), text.strip_suffix("cm")) {
            (Some(numbers), _) => (numbers, 10.0),
            (_, Some(numbers)) => (numbers, 100.0),
            _ => return Err(wrong()),
        };
        let (width, height) = numbers.split_once(['x', '×']).ok_or_else(wrong)?;
        let tenths = |number: &str| -> Result<u32, String> {
            let value: f64 = number.trim().parse().map_err(|_| wrong())?;
            let tenths = (value * scale).round();
            if !(LEAST..=MOST).contains(&tenths) {
                return Err("sides are from 20mm to 2000mm".to_owned());
            }
            // Within the bounds above.
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "above")]
            Ok(tenths as u32)
        };
        Ok(FigureSize { width: tenths(width)?, height: tenths(height)? })
    }
}

const LEAST: f64 = 200.0;
const MOST: f64 = 20_000.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_written() {
        for (text, shown) in
            [("84x60mm", "84x60mm"), ("8.45x6cm", "84.5x60mm"), ("170×80mm", "170x80mm")]
        {
            assert_eq!(text.parse::<FigureSize>().unwrap().to_string(), shown);
        }
        for wrong in ["84x60", "84mm", "0x0mm", "nanx60mm", "1e9x5cm", "-84x60mm", ""] {
            assert!(wrong.parse::<FigureSize>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_inch_has_72_points() {
        let (width, height) = "25.4x50.8mm".parse::<FigureSize>().unwrap().points();
        assert!((width - 72.0).abs() < 1e-9 && (height - 144.0).abs() < 1e-9);
        assert_eq!(FigureSize::holding(72.0, 144.0), FigureSize::millimetres(26, 51));
    }
}
