//! Bounds, and the figures that they bound: a mean, a best second, a percentile.

use std::fmt;
use std::str::FromStr;

use windtunnel_model::expect::{Bounds, Level, Occupancy, Percentile, RateStatistic};
use windtunnel_model::profile::QueueLimit;
use windtunnel_model::{Probability, Rate, Span};

use super::RATE_MEANT;
use crate::decode::{Field, Fields};
use crate::error::Findings;
use crate::keys;

/// Bounds of times by what they bound.
pub(super) type Times<S> = Vec<(S, Bounds<Span>)>;

/// What can be said of a rate.
pub(super) enum RateFact {
    Level(RateStatistic, Bounds<Rate>),
    Deviation(Bounds<Probability>),
}

/// A map whose keys name figures, percentiles among them.
pub(super) struct Figures<'t> {
    pub(super) field: Field<'t>,
    pub(super) fields: Fields<'t>,
    percentiles: Vec<(Percentile, Field<'t>)>,
}

/// A number of packets or lines.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
struct Count(u64);

impl FromStr for Count {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Count).map_err(|_| format!("`{text}` is no whole number"))
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Findings {
    /// `min`, `max` or both.
    pub(super) fn bounds<T>(&mut self, field: Field<'_>, needed: &str) -> Option<Bounds<T>>
    where
        T: FromStr + PartialOrd + Copy + fmt::Display,
        T::Err: fmt::Display,
    {
        self.told_as_map(field)?;
        let fields = self.fields(field, "bounds", keys::BOUNDS)?;
        self.bounds_in(field, &fields, needed)
    }

    /// `min` and `max` of a map that may have other keys.
    fn bounds_in<T>(
        &mut self,
        field: Field<'_>,
        fields: &Fields<'_>,
        needed: &str,
    ) -> Option<Bounds<T>>
    where
        T: FromStr + PartialOrd + Copy + fmt::Display,
        T::Err: fmt::Display,
    {
        let mut read = |key| match fields.find(key) {
            Some(field) => self.quantity(field, needed).map(Some),
            None => Some(None),
        };
        let (min, max) = (read("min"), read("max"));
        let bounds: Bounds<T> = Bounds { min: min?, max: max? };
        match (bounds.min, bounds.max) {
            (None, None) if fields.unknown => return None,
            (None, None) => {
                self.mistake(field.wrong(), format!("`{}` needs `min`, `max` or both", field.key));
                return None;
            }
            (Some(min), Some(max)) if min > max => {
                let message = format!("`min` ({min}) is more than `max` ({max})");
                self.mistake(fields.place, message);
                return None;
            }
            _ => {}
        }
        Some(bounds)
    }

    /// A bound without a side: is it the least or the most?
    fn told_as_map(&mut self, field: Field<'_>) -> Option<()> {
        let Some(text) = field.scalar() else { return Some(()) };
        let message = format!("`{}` needs `min`, `max` or both, not a value alone", field.key);
        let text = crate::text::shorten(text);
        let hint = format!("write `{0}: {{max: {text}}}` or `{0}: {{min: {text}}}`", field.key);
        self.mistake_with_hint(field.wrong(), message, hint);
        None
    }

    /// Bounds of a number, or the number.
    pub(super) fn count(&mut self, field: Field<'_>) -> Option<Bounds<u64>> {
        if field.scalar().is_some() {
            let Count(exactly) = self.quantity(field, "a whole number")?;
            return Some(Bounds { min: Some(exactly), max: Some(exactly) });
        }
        let fields = self.fields(field, "bounds", keys::BOUNDS)?;
        self.count_bounds(field, &fields)
    }

    pub(super) fn count_bounds(
        &mut self,
        field: Field<'_>,
        fields: &Fields<'_>,
    ) -> Option<Bounds<u64>> {
        let bounds = self.bounds_in::<Count>(field, fields, "a whole number")?;
        Some(Bounds { min: bounds.min.map(|c| c.0), max: bounds.max.map(|c| c.0) })
    }

    /// A map of the figures `known` and of percentiles.
    pub(super) fn figures<'t>(
        &mut self,
        field: Field<'t>,
        what: &str,
        known: &[&str],
    ) -> Option<Figures<'t>> {
        let fields = self.map(field, &format!("{what}: a map of keys"))?;
        let mut figures = Figures { field, fields, percentiles: Vec::new() };
        for (key, value) in figures.fields.entries {
            let digits = key
                .text
                .strip_prefix('p')
                .filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || "-.".contains(c)));
            if known.contains(&key.text.as_str()) || keys::is_extension(&key.text) {
                continue;
            }
            figures.fields.unknown = true;
            if digits.is_none() {
                self.unknown_key(key, what, known);
                continue;
            }
            match key.text.parse() {
                Ok(percentile) => {
                    figures.fields.unknown = false;
                    let field = Field { key: &key.text, place: key.place, value };
                    figures.percentiles.push((percentile, field));
                }
                Err(message) => {
                    let message = format!("{}: {message}", field.key);
                    self.mistake(key.place, message);
                }
            }
        }
        if figures.fields.place.length == 0 {
            figures.fields.place = field.place;
        }
        Some(figures)
    }

    /// Figures of times: `min` and `max` bound `meant`.
    pub(super) fn times<S: Copy>(
        &mut self,
        figures: &Figures<'_>,
        needed: &str,
        meant: S,
        named: &[(&str, S)],
        percentile: impl Fn(Percentile) -> S,
    ) -> Option<Times<S>> {
        let Figures { field, fields, percentiles } = figures;
        let mut found = Vec::new();
        if fields.has("min") || fields.has("max") {
            found.push((meant, self.bounds_in(*field, fields, needed)?));
        }
        for (key, statistic) in named {
            if let Some(field) = fields.find(key) {
                found.push((*statistic, self.bounds(field, needed)?));
            }
        }
        for (which, field) in percentiles {
            found.push((percentile(*which), self.bounds(*field, needed)?));
        }
        self.some_figure(*field, fields.unknown, found)
    }

    /// `rate` or `throughput`.
    pub(super) fn rate_figures(&mut self, field: Field<'_>) -> Option<Vec<RateFact>> {
        let needed = "a rate such as 45mbit";
        self.told_as_map(field)?;
        let fields = self.fields(field, "bounds of a rate", keys::RATE_FIGURES)?;
        let mut found = Vec::new();
        if fields.has("min") || fields.has("max") {
            let bounds = self.bounds_in(field, &fields, needed)?;
            found.push(RateFact::Level(RATE_MEANT, bounds));
        }
        let levels = [
            ("mean", RateStatistic::Mean),
            ("peak", RateStatistic::Peak),
            ("lowest", RateStatistic::Lowest),
        ];
        for (key, statistic) in levels {
            if let Some(field) = fields.find(key) {
                found.push(RateFact::Level(statistic, self.bounds(field, needed)?));
            }
        }
        if let Some(field) = fields.find("deviation") {
            found.push(RateFact::Deviation(self.bounds(field, "a share of the mean such as 1%")?));
        }
        self.some_figure(field, fields.unknown, found)
    }

    /// `queue`, in packets, bytes or time.
    pub(super) fn queue_figures(&mut self, field: Field<'_>) -> Option<Vec<(Level, Occupancy)>> {
        let figures = self.figures(field, "bounds of a queue", keys::LEVEL_FIGURES)?;
        let mut found = Vec::new();
        let whole = figures.fields.has("min") || figures.fields.has("max");
        if whole {
            found.push((Level::Peak, self.occupancy(figures.field, &figures.fields)?));
        }
        for (which, field) in &figures.percentiles {
            let fields = self.fields(*field, "bounds", keys::BOUNDS)?;
            found.push((Level::Percentile(*which), self.occupancy(*field, &fields)?));
        }
        self.some_figure(field, figures.fields.unknown, found)
    }

    fn occupancy(&mut self, field: Field<'_>, fields: &Fields<'_>) -> Option<Occupancy> {
        let sides = ["min", "max"].into_iter().filter_map(|key| fields.find(key));
        let limits: Vec<QueueLimit> =
            sides.map(|side| self.queue_limit(side)).collect::<Option<_>>()?;
        match limits[..] {
            [QueueLimit::Packets(_)] | [QueueLimit::Packets(_), QueueLimit::Packets(_)] => {
                Some(Occupancy::Packets(self.bounds_in(field, fields, QUEUE)?))
            }
            [QueueLimit::Bytes(_)] | [QueueLimit::Bytes(_), QueueLimit::Bytes(_)] => {
                Some(Occupancy::Bytes(self.bounds_in(field, fields, QUEUE)?))
            }
            [QueueLimit::Time(_)] | [QueueLimit::Time(_), QueueLimit::Time(_)] => {
                Some(Occupancy::Time(self.bounds_in(field, fields, QUEUE)?))
            }
            [] => {
                if !fields.unknown {
                    let message = format!("`{}` needs `min`, `max` or both", field.key);
                    self.mistake(field.wrong(), message);
                }
                None
            }
            _ => {
                let message = "`min` and `max` of a queue are in different units";
                self.mistake(fields.place, message);
                None
            }
        }
    }

    fn queue_limit(&mut self, field: Field<'_>) -> Option<QueueLimit> {
        let text = self.text(field, QUEUE)?;
        let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').trim();
        match unit {
            "p" => self.quantity(field, QUEUE).map(QueueLimit::Packets),
            unit if unit.ends_with('B') => self.quantity(field, QUEUE).map(QueueLimit::Bytes),
            unit if unit.is_empty() || !TIME_UNITS.contains(&unit) => {
                let message =
                    format!("{}: `{}` is not {QUEUE}", field.key, crate::text::shorten(text));
                self.mistake(field.wrong(), message);
                None
            }
            _ => self.quantity(field, QUEUE).map(QueueLimit::Time),
        }
    }

    /// `lateness`: its percentiles are known of the whole run only.
    pub(super) fn lateness(&mut self, field: Field<'_>, in_window: bool) -> Option<Times<Level>> {
        let figures = self.figures(field, "bounds of lateness", keys::LEVEL_FIGURES)?;
        if let Some((which, field)) = figures.percentiles.first().filter(|_| in_window) {
            let message = format!("{which} of lateness is known of the whole run only");
            let hint = "leave `between` out, or bound the most with `max`";
            self.mistake_with_hint(field.place, message, hint);
            return None;
        }
        self.times(&figures, "a time such as 1ms", Level::Peak, &[], Level::Percentile)
    }

    /// At least one figure must be bounded.
    pub(super) fn some_figure<T>(
        &mut self,
        field: Field<'_>,
        unknown: bool,
        found: Vec<T>,
    ) -> Option<Vec<T>> {
        if found.is_empty() {
            if !unknown {
                let message = format!("`{}` needs `min`, `max` or both", field.key);
                self.mistake(field.wrong(), message);
            }
            return None;
        }
        Some(found)
    }
}

const QUEUE: &str = "packets (100p), bytes (256KB) or a time (50ms)";
const TIME_UNITS: [&str; 7] = ["ns", "us", "µs", "ms", "s", "min", "h"];
