//! `jitter`: a time, or a distribution.

use serde_json::{Value as Json, json};
use windtunnel_model::Span;
use windtunnel_model::profile::{Jitter, JitterDistribution};

use crate::grammar::{
    Decoder, SchemaAlternative, SchemaDefinitions, ValueForm, YamlMapEntry, map, words,
};
use crate::tree::YamlValueKind;

map! {
    /// The distribution of a random delay: `spread` with `distribution`, or a `table`.
    JitterForm {
        /// The scale: the most for `uniform`, the standard deviation of the whole normal variable
        /// for `normal`, the mean for `pareto`. As only delays are added, `normal` is its absolute
        /// value: a spread of 10ms has a mean of 7.98 ms and a standard deviation of 6.03 ms.
        "spread" SPREAD: Span,
        /// `uniform` (default), `normal` (half-normal, cut at 4 spreads) or `pareto` (Lomax with
        /// shape 3, cut at 40 spreads).
        "distribution" DISTRIBUTION: Shape,
        /// Quantiles at equal steps of probability, two or more, not decreasing, linear in between.
        "table" TABLE: JitterQuantilesForm,
    }
}

words! {
    /// The form of a distribution.
    Shape as "Distribution"; JitterDistribution {
        /// From 0 to the spread.
        "uniform" => JitterDistribution::Uniform,
        /// The absolute value of a normal variable.
        "normal" => JitterDistribution::Normal,
        /// Pareto of the second kind.
        "pareto" => JitterDistribution::Pareto,
    }
}

impl ValueForm for Jitter {
    type Value = Jitter;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Jitter> {
        match (field.scalar(), &field.value.kind) {
            (Some("none"), _) => Some(Jitter::default()),
            (Some(_), _) => {
                let spread = from.quantity(field, "a time such as 2ms, or `none`")?;
                Some(Jitter { spread, distribution: JitterDistribution::Uniform })
            }
            (None, YamlValueKind::Map(_)) => read_map(from, field),
            _ => {
                let needed = "a time such as 2ms, or {spread: 2ms, distribution: normal}, or \
                              {table: […]}";
                from.wrong_type(field, needed)
            }
        }
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        definitions.any_of(
            "Jitter",
            "Random delay.",
            &[
                SchemaAlternative("Uniform from 0 to this; or `none`.", time_or_none),
                SchemaAlternative("A distribution.", JitterForm::definition),
            ],
        )
    }
}

fn time_or_none(definitions: &mut SchemaDefinitions) -> Json {
    let pattern = r"^(none|[0-9]+(\.[0-9]+)? ?(ns|us|µs|ms|s|min|h))$";
    definitions.text("TimeOrNone", "A time with a unit, or `none`.", pattern, "2ms")
}

fn read_map(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Jitter> {
    let fields = from.table::<JitterForm>(field, "jitter")?;
    if let Some(table) = fields.get(JitterForm::TABLE) {
        if fields.has(JitterForm::SPREAD) || fields.has(JitterForm::DISTRIBUTION) {
            let message = "`table` is the whole distribution: it has no `spread` beside it";
            from.mistake(table.place, message);
            return None;
        }
        let distribution = JitterDistribution::Table(JitterQuantilesForm::read(from, table)?);
        return Some(Jitter { spread: Span::ZERO, distribution });
    }
    let spread = from.need(&fields, JitterForm::SPREAD, "jitter");
    let distribution =
        from.read_or(&fields, JitterForm::DISTRIBUTION, JitterDistribution::Uniform)?;
    Some(Jitter { spread: spread?, distribution })
}

/// Quantiles at equal steps of probability.
struct JitterQuantilesForm;

impl JitterQuantilesForm {
    const LEAST: usize = 2;
    const MOST: usize = 1000;
}

impl ValueForm for JitterQuantilesForm {
    type Value = Vec<Span>;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Vec<Span>> {
        let items = from.list(field, "a list of times, the quantiles of the delay")?;
        let table: Vec<Span> = items.map(|item| Span::read(from, item)).collect::<Option<_>>()?;
        let wrong = if table.len() < Self::LEAST {
            "a table needs two times or more: the least and the greatest delay"
        } else if table.len() > Self::MOST {
            "a table has at most 1000 times"
        } else if !table.is_sorted() {
            "a table holds quantiles: its times must not decrease"
        } else {
            return Some(table);
        };
        from.mistake(field.wrong(), wrong);
        None
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        json!({
            "type": "array",
            "items": Span::schema(definitions),
            "minItems": Self::LEAST,
            "maxItems": Self::MOST,
        })
    }
}
