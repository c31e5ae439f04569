//! Where an axis has numbers.

use crate::figure::AxisScale;

/// A place with a number, as part of the axis from 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AxisTick {
    pub(crate) at: f64,
    /// Empty for a line without a number.
    pub(crate) text: String,
}

/// An axis from `low` to `high` in the unit that it shows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ruler {
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) scale: AxisScale,
    pub(crate) ticks: Vec<AxisTick>,
}

impl Ruler {
    /// An axis that shows these values, with at most so many numbers, at least `least_step` apart.
    /// Its ends are moved to numbers unless they are asked for.
    pub(crate) fn new(
        low: f64,
        high: f64,
        scale: AxisScale,
        fixed: bool,
        least_step: f64,
        numbers: usize,
    ) -> Self {
        match scale {
            AxisScale::Linear => linear(low, high, fixed, least_step, numbers.max(2)),
            AxisScale::Log => log(low, high, numbers.max(2)),
        }
    }

    /// Where a value is, from 0 to 1; outside for one outside.
    pub(crate) fn place(&self, value: f64) -> f64 {
        match self.scale {
            AxisScale::Linear => (value - self.low) / (self.high - self.low),
            AxisScale::Log => {
                let value = value.max(self.low);
                (value.log10() - self.low.log10()) / (self.high.log10() - self.low.log10())
            }
        }
    }
}

fn linear(low: f64, high: f64, fixed: bool, least_step: f64, numbers: usize) -> Ruler {
    let (low, high) = if high > low { (low, high) } else { (low, low + 1.0) };
    let step = nice_step((high - low) / count(numbers)).max(least_step);
    let (low, high) = match fixed {
        true => (low, high),
        false => ((low / step + SLACK).floor() * step, (high / step - SLACK).ceil() * step),
    };
    let mut ruler = Ruler { low, high, scale: AxisScale::Linear, ticks: Vec::new() };
    let decimals = decimals(step);
    let mut index = (low / step - SLACK).ceil();
    while index * step <= high + step * SLACK {
        let value = index * step;
        ruler.ticks.push(AxisTick { at: ruler.place(value), text: number(value, decimals) });
        index += 1.0;
    }
    ruler
}

/// Whole decades. Numbers are at powers of ten, at each second or third where there are many; where
/// there are few, lines without numbers lie between.
fn log(low: f64, high: f64, numbers: usize) -> Ruler {
    let low = if low > 0.0 { low } else { 1e-3 };
    let (first, mut last) = (low.log10() + SLACK, high.max(low).log10() - SLACK);
    let first = first.floor();
    last = last.ceil().max(first + 1.0);
    let power = |exponent: f64| 10f64.powf(exponent);
    let mut ruler =
        Ruler { low: power(first), high: power(last), scale: AxisScale::Log, ticks: Vec::new() };
    let decades = last - first;
    let step = (decades / count(numbers)).ceil().max(1.0);
    let mut exponent = first;
    while exponent <= last {
        let value = power(exponent);
        let text = match (exponent - first) % step == 0.0 {
            true => power_of_ten(exponent),
            false => String::new(),
        };
        ruler.ticks.push(AxisTick { at: ruler.place(value), text });
        if decades <= MINOR_DECADES && exponent < last {
            let minor = (2u8..10).map(|digit| AxisTick {
                at: ruler.place(value * f64::from(digit)),
                text: String::new(),
            });
            let minor: Vec<AxisTick> = minor.collect();
            ruler.ticks.extend(minor);
        }
        exponent += 1.0;
    }
    ruler
}

/// 1, 2 or 5 times a power of ten, at least as much as asked.
fn nice_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= least * (1.0 - SLACK));
    factor.unwrap_or(10.0) * power
}

/// Digits after the point that a number of this step needs.
fn decimals(step: f64) -> usize {
    let mut decimals = 0;
    let mut rest = step;
    while decimals < 9 && (rest - rest.round()).abs() > rest.abs() * SLACK {
        rest *= 10.0;
        decimals += 1;
    }
    decimals
}

/// With a true minus sign.
fn number(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let is_zero = text.bytes().all(|byte| byte == b'0' || byte == b'.');
    if value < 0.0 && !is_zero { format!("−{text}") } else { text }
}

fn power_of_ten(exponent: f64) -> String {
    match exponent {
        exponent if (-4.0..0.0).contains(&exponent) => {
            number(10f64.powf(exponent), decimals(10f64.powf(exponent)))
        }
        exponent if (0.0..5.0).contains(&exponent) => number(10f64.powf(exponent), 0),
        exponent => format!("1e{exponent:.0}"),
    }
}

fn count(numbers: usize) -> f64 {
    f64::from(u32::try_from(numbers).unwrap_or(u32::MAX))
}

/// Of a step: what rounding may make of a number that is at an end.
const SLACK: f64 = 1e-9;
/// With more decades the lines between them are too dense.
const MINOR_DECADES: f64 = 4.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(low: f64, high: f64, scale: AxisScale, fixed: bool, numbers: usize) -> Vec<String> {
        let ruler = Ruler::new(low, high, scale, fixed, 0.0, numbers);
        ruler.ticks.into_iter().map(|tick| tick.text).filter(|text| !text.is_empty()).collect()
    }

    #[test]
    fn numbers_of_a_linear_axis_are_round_and_enclose_the_values() {
        assert_eq!(texts(0.0, 9.3, AxisScale::Linear, false, 5), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(
            texts(0.0, 0.31, AxisScale::Linear, false, 4),
            ["0.0", "0.1", "0.2", "0.3", "0.4"]
        );
        assert_eq!(texts(-3.0, 3.0, AxisScale::Linear, false, 4), ["−4", "−2", "0", "2", "4"]);
        assert_eq!(texts(0.0, 0.0, AxisScale::Linear, false, 2), ["0.0", "0.5", "1.0"]);
    }

    #[test]
    fn asked_ends_stay_where_they_are() {
        let ruler = Ruler::new(10.0, 21.4, AxisScale::Linear, true, 0.0, 6);
        assert_eq!((ruler.low, ruler.high), (10.0, 21.4));
        let texts: Vec<_> = ruler.ticks.iter().map(|tick| tick.text.as_str()).collect();
        assert_eq!(texts, ["10", "12", "14", "16", "18", "20"]);
    }

    #[test]
    fn numbers_of_packets_are_whole() {
        let ruler = Ruler::new(0.0, 2.0, AxisScale::Linear, false, 1.0, 9);
        let texts: Vec<_> = ruler.ticks.iter().map(|tick| tick.text.as_str()).collect();
        assert_eq!(texts, ["0", "1", "2"]);
    }

    #[test]
    fn a_log_axis_has_whole_decades() {
        assert_eq!(texts(0.02, 7.0, AxisScale::Log, false, 6), ["0.01", "0.1", "1", "10"]);
        assert_eq!(texts(1.0, 1e9, AxisScale::Log, false, 4), ["1", "1000", "1e6", "1e9"]);
        assert_eq!(texts(0.0, 0.0, AxisScale::Log, false, 4), ["0.001", "0.01"]);
        let ruler = Ruler::new(1.0, 100.0, AxisScale::Log, false, 0.0, 6);
        assert!((ruler.place(10.0) - 0.5).abs() < 1e-12);
        assert!(ruler.place(0.0).abs() < 1e-12);
        assert_eq!(ruler.ticks.len(), 3 + 16);
    }
}
