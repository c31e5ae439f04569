//! The figures that are bounded: a mean, a best second, a percentile.

use serde_json::Value as Json;
use windtunnel_model::Span;
use windtunnel_model::expect::{
    LevelStatistic, Percentile, QueueOccupancyBounds, RateStatistic, TimeStatistic, ValueBounds,
};
use windtunnel_model::{Probability, Rate};

use super::bounds::{
    OccupancyBounds, RateBounds, ShareBounds, TimeBounds, read_bounds, read_occupancy, refuse_bare,
};
use crate::grammar::{Decoder, Fields, MapSchema, SchemaDefinitions, ValueForm, YamlMapEntry, map};
use crate::position::SourceLocation;
use crate::tree::is_extension;

/// What can be said of a rate.
pub(crate) enum RateFact {
    Level(RateStatistic, ValueBounds<Rate>),
    Deviation(ValueBounds<Probability>),
}

map! {
    /// Bounds of a rate: `min` and `max` bound the best second.
    RateFigures, Vec<RateFact>, by read_rate {
        ..RateBounds,
        /// Bounds of the mean.
        "mean" MEAN: RateBounds,
        /// Bounds of the best second.
        "peak" PEAK: RateBounds,
        /// Bounds of the worst second.
        "lowest" LOWEST: RateBounds,
        /// Bounds of the standard deviation of consecutive seconds, as a share of their mean.
        "deviation" DEVIATION: ShareBounds,
    }
}

fn read_rate(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Vec<RateFact>> {
    refuse_bare(from, field)?;
    let fields = from.table::<RateFigures>(field, "bounds of a rate")?;
    let mut found = Vec::new();
    if fields.has(RateBounds::MIN) || fields.has(RateBounds::MAX) {
        let bounds = read_bounds(from, field, &fields, RateBounds::MIN, RateBounds::MAX)?;
        found.push(RateFact::Level(RATE_MEANT, bounds));
    }
    let levels = [
        (RateFigures::MEAN, RateStatistic::Mean),
        (RateFigures::PEAK, RateStatistic::Peak),
        (RateFigures::LOWEST, RateStatistic::Lowest),
    ];
    for (key, statistic) in levels {
        let bounds = from.read(&fields, key)?;
        found.extend(bounds.map(|bounds| RateFact::Level(statistic, bounds)));
    }
    found.extend(from.read(&fields, RateFigures::DEVIATION)?.map(RateFact::Deviation));
    some(from, field, &fields, found)
}

map! {
    /// Bounds of round-trip times: `min` and `max` bound the median; or bounds of the mean, or of a
    /// percentile by nearest rank such as `p50`, `p99.9` or `p100` (the greatest).
    RttBounds {
        ..TimeBounds,
        /// Bounds of the mean.
        "mean" MEAN: TimeBounds,
    }
}

/// Bounds of round-trip times, percentiles among them.
pub(super) struct RttFigures;

impl ValueForm for RttFigures {
    type Value = Vec<(TimeStatistic, ValueBounds<Span>)>;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Self::Value> {
        let (fields, percentiles) = read_map::<RttBounds>(from, field, RTT)?;
        let mut found = Vec::new();
        if let Some(median) = read_times(from, field, &fields)? {
            found.push((TimeStatistic::Median, median));
        }
        let mean = from.read(&fields, RttBounds::MEAN)?;
        found.extend(mean.map(|bounds| (TimeStatistic::Mean, bounds)));
        for (which, field) in percentiles {
            found.push((TimeStatistic::Percentile(which), TimeBounds::read(from, field)?));
        }
        some(from, field, &fields, found)
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        let value = TimeBounds::schema(definitions);
        RttBounds::definition_with(definitions, PERCENTILE, value)
    }
}

map! {
    /// Bounds of a queue: `min` and `max` bound the most that waited; a percentile such as `p95` is
    /// one of samples taken every 100ms.
    QueueBounds {
        ..OccupancyBounds,
    }
}

/// Bounds of a queue, percentiles among them.
pub(super) struct QueueFigures;

impl ValueForm for QueueFigures {
    type Value = Vec<(LevelStatistic, QueueOccupancyBounds)>;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Self::Value> {
        let (fields, percentiles) = read_map::<QueueBounds>(from, field, "bounds of a queue")?;
        let mut found = Vec::new();
        if fields.has(OccupancyBounds::MIN) || fields.has(OccupancyBounds::MAX) {
            found.push((LevelStatistic::Peak, read_occupancy(from, field, &fields)?));
        }
        for (which, field) in percentiles {
            found.push((LevelStatistic::Percentile(which), OccupancyBounds::read(from, field)?));
        }
        some(from, field, &fields, found)
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        let value = OccupancyBounds::schema(definitions);
        QueueBounds::definition_with(definitions, PERCENTILE, value)
    }
}

map! {
    /// Bounds of lateness: `min` and `max` bound the greatest; or, of the whole run, a percentile
    /// such as `p99`.
    LatenessBounds {
        ..TimeBounds,
    }
}

/// Bounds of lateness, percentiles among them.
#[derive(Default)]
pub(super) struct LatenessFigures {
    found: Vec<(LevelStatistic, ValueBounds<Span>)>,
    percentile: Option<(Percentile, SourceLocation)>,
}

impl LatenessFigures {
    /// The bounds; its percentiles are known of the whole run only.
    pub(super) fn checked(
        self,
        from: &mut Decoder<'_>,
        in_window: bool,
    ) -> Option<Vec<(LevelStatistic, ValueBounds<Span>)>> {
        if let Some((which, place)) = self.percentile.filter(|_| in_window) {
            let message = format!("{which} of lateness is known of the whole run only");
            let hint = "leave `between` out, or bound the most with `max`";
            from.mistake_with_hint(place, message, hint);
            return None;
        }
        Some(self.found)
    }
}

impl ValueForm for LatenessFigures {
    type Value = LatenessFigures;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<LatenessFigures> {
        let (fields, percentiles) = read_map::<LatenessBounds>(from, field, "bounds of lateness")?;
        let percentile = percentiles.first().map(|(which, field)| (*which, field.place));
        let mut found = Vec::new();
        if let Some(greatest) = read_times(from, field, &fields)? {
            found.push((LevelStatistic::Peak, greatest));
        }
        for (which, field) in percentiles {
            found.push((LevelStatistic::Percentile(which), TimeBounds::read(from, field)?));
        }
        let found = some(from, field, &fields, found)?;
        Some(LatenessFigures { found, percentile })
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        let value = TimeBounds::schema(definitions);
        LatenessBounds::definition_with(definitions, PERCENTILE, value)
    }
}

/// `min` and `max` of times, if the map has one of them.
fn read_times(
    from: &mut Decoder<'_>,
    field: YamlMapEntry<'_>,
    fields: &Fields<'_>,
) -> Option<Option<ValueBounds<Span>>> {
    if !fields.has(TimeBounds::MIN) && !fields.has(TimeBounds::MAX) {
        return Some(None);
    }
    read_bounds(from, field, fields, TimeBounds::MIN, TimeBounds::MAX).map(Some)
}

/// A map of the keys of `M` and of percentiles, which are returned separately.
fn read_map<'t, M: MapSchema>(
    from: &mut Decoder<'_>,
    field: YamlMapEntry<'t>,
    what: &str,
) -> Option<(Fields<'t>, Vec<(Percentile, YamlMapEntry<'t>)>)> {
    let known = M::list();
    let mut fields = from.map(field, &format!("{what}: a map of keys"))?;
    let mut percentiles = Vec::new();
    for entry in fields.all() {
        if known.contains(&entry.key) || is_extension(entry.key) {
            continue;
        }
        let digit = |c: char| c.is_ascii_digit() || "-.".contains(c);
        if !entry.key.strip_prefix('p').is_some_and(|rest| rest.starts_with(digit)) {
            from.unknown_key(entry.key, entry.place, what, &known);
            fields.unknown = true;
            continue;
        }
        match entry.key.parse() {
            Ok(percentile) => percentiles.push((percentile, entry)),
            Err(message) => {
                from.mistake(entry.place, format!("{}: {message}", field.key));
                fields.unknown = true;
            }
        }
    }
    if fields.place.length == 0 {
        fields.place = field.place;
    }
    Some((fields, percentiles))
}

/// At least one figure must be bounded.
pub(super) fn some<T>(
    from: &mut Decoder<'_>,
    field: YamlMapEntry<'_>,
    fields: &Fields<'_>,
    found: Vec<T>,
) -> Option<Vec<T>> {
    if found.is_empty() {
        if !fields.unknown {
            from.mistake(field.wrong(), format!("`{}` needs `min`, `max` or both", field.key));
        }
        return None;
    }
    Some(found)
}

const RTT: &str = "bounds of a round-trip time";
/// The names of percentiles.
const PERCENTILE: &str = r"^p([0-9]{1,2}(\.[0-9]{1,3})?|100)$";
/// `rate` alone means its best second.
const RATE_MEANT: RateStatistic = RateStatistic::Peak;
