//! Rates and latencies of graphs whose attributes have no fixed names, as those of NetworkX: read
//! where their unit is known from the value (`100 Mbps`), the name (`bandwidth_mbps`), or an
//! attribute beside it (`bandwidth_unit`).

use std::collections::BTreeMap;

use windtunnel_model::{Rate, Span};

use super::decimal;
use super::graph::Attribute;

/// A quantity and the attribute that it is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AttributeQuantity<'a, T> {
    pub(super) key: &'a str,
    pub(super) value: T,
}

/// The rate of an edge. `whole` are the attributes of the graph, which may name a unit for all.
pub(super) fn rate<'a>(
    edge: &'a BTreeMap<String, Attribute>,
    whole: &BTreeMap<String, Attribute>,
) -> Option<AttributeQuantity<'a, Rate>> {
    find(edge, whole, &RATES, bits_per_second)
}

/// The latency of an edge.
pub(super) fn latency<'a>(
    edge: &'a BTreeMap<String, Attribute>,
    whole: &BTreeMap<String, Attribute>,
) -> Option<AttributeQuantity<'a, Span>> {
    find(edge, whole, &TIMES, |number, unit| decimal::time(&format!("{number} {unit}"), None))
}

/// Whether an attribute with this name is a rate or a latency if only its unit is known.
pub(super) fn names_quantity(key: &str) -> bool {
    let (name, unit) = parts(key);
    (RATES.contains(&name.as_str()) || TIMES.contains(&name.as_str())) && !is_unit_of_unit(&unit)
}

/// Whether an attribute names the unit of another one.
pub(super) fn names_unit(key: &str) -> bool {
    let (name, unit) = parts(key);
    (RATES.contains(&name.as_str()) || TIMES.contains(&name.as_str())) && is_unit_of_unit(&unit)
}

fn is_unit_of_unit(unit: &str) -> bool {
    ["unit", "units"].contains(&unit.to_ascii_lowercase().as_str())
}

/// The first quantity in the order of `names`, of which those other than `weight` come first.
fn find<'a, T>(
    edge: &'a BTreeMap<String, Attribute>,
    whole: &BTreeMap<String, Attribute>,
    names: &[&str],
    read: impl Fn(&str, &str) -> Option<T>,
) -> Option<AttributeQuantity<'a, T>> {
    names.iter().find_map(|wanted| {
        edge.iter().find_map(|(key, attribute)| {
            let (name, suffix) = parts(key);
            if name != *wanted || is_unit_of_unit(&suffix) {
                return None;
            }
            let (number, own) = decimal::split(&attribute.text);
            let beside = || unit_beside(edge, &name).or_else(|| unit_beside(whole, &name));
            let unit = match (own, suffix.as_str()) {
                ("", "") => beside()?,
                ("", suffix) => suffix,
                (own, _) => own,
            };
            Some(AttributeQuantity { key, value: read(number, unit)? })
        })
    })
}

/// The unit that an attribute such as `bandwidth_unit` gives for `bandwidth`.
fn unit_beside<'a>(attributes: &'a BTreeMap<String, Attribute>, of: &str) -> Option<&'a str> {
    let of_it = |key: &str| {
        let (name, unit) = parts(key);
        name == of && is_unit_of_unit(&unit)
    };
    attributes.iter().find(|(key, _)| of_it(key)).map(|(_, unit)| unit.text.trim())
}

/// What an attribute's name says: `Bandwidth (Mbit/s)` is (`bandwidth`, `Mbit/s`), `link_delay_us`
/// is (`delay`, `us`), `data_rate` is (`datarate`, ``).
fn parts(key: &str) -> (String, String) {
    let words = key.split(|c: char| c.is_whitespace() || "_-.()[]".contains(c));
    let mut words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    if words.len() > 1 && ["link", "edge"].contains(&words[0].to_ascii_lowercase().as_str()) {
        words.remove(0);
    }
    let last = words.last().copied().filter(|last| words.len() > 1 && is_unit(last));
    if last.is_some() {
        words.pop();
    }
    let unit = last.unwrap_or_default().to_owned();
    (words.concat().to_ascii_lowercase(), unit)
}

/// Whether a word of a name is a unit.
fn is_unit(word: &str) -> bool {
    is_unit_of_unit(word)
        || bits_per_second("1", word).is_some()
        || decimal::time(&format!("1 {word}"), None).is_some()
}

/// A rate of bits, or of bytes where the unit says so. `MBPS` and `MB` are ambiguous.
fn bits_per_second(number: &str, unit: &str) -> Option<Rate> {
    let each = ["/s", "/sec", "ps"].iter().find_map(|each| unit.strip_suffix(each));
    let of_bytes = |size: &str| match size.strip_suffix("Bytes").or(size.strip_suffix("bytes")) {
        Some(prefix) => Some(prefix.to_owned()),
        None => size.strip_suffix("Byte").or(size.strip_suffix('B')).map(str::to_owned),
    };
    match each.and_then(of_bytes) {
        Some(prefix) => {
            let bits = decimal::rate(&format!("{number} {prefix}bit"), None)?;
            bits.bits_per_second().checked_mul(8).and_then(Rate::from_bits_per_second)
        }
        None if unit.contains('B') && !unit.to_ascii_lowercase().contains("bit") => None,
        None => decimal::rate(&format!("{number} {unit}"), None),
    }
}

/// Names of rates, without the unit, in the order in which they count.
const RATES: [&str; 9] =
    ["bandwidth", "bw", "capacity", "datarate", "bitrate", "linkrate", "rate", "speed", "weight"];
/// Names of latencies.
const TIMES: [&str; 4] = ["latency", "delay", "propagationdelay", "weight"];

#[cfg(test)]
mod tests {
    use super::super::graph::Attribute;
    use super::*;

    fn attributes(pairs: &[(&str, &str)]) -> BTreeMap<String, Attribute> {
        let attribute = |text: &str| Attribute { text: text.to_owned(), offset: 0 };
        pairs.iter().map(|(key, text)| ((*key).to_owned(), attribute(text))).collect()
    }

    #[test]
    fn a_unit_is_taken_from_the_value_the_name_or_an_attribute_beside_it() {
        let cases: [(&[(&str, &str)], u64); 11] = [
            (&[("bandwidth", "100 Mbps")], 100_000_000),
            (&[("bandwidth", "2.5Gbit/s")], 2_500_000_000),
            (&[("bandwidth_mbps", "100.0")], 100_000_000),
            (&[("capacity_Gbps", "10")], 10_000_000_000),
            (&[("Bandwidth (kbit/s)", "512")], 512_000),
            (&[("link_capacity", "1G")], 1_000_000_000),
            (&[("data_rate", "10 MB/s")], 80_000_000),
            (&[("bw", "5"), ("bw_unit", "Mbps")], 5_000_000),
            (&[("weight", "10mbit")], 10_000_000),
            (&[("weight", "1 Gbps"), ("capacity", "2 Gbps")], 2_000_000_000),
            (&[("bandwidth_bps", "64000")], 64_000),
        ];
        for (pairs, bits) in cases {
            let edge = attributes(pairs);
            let found = rate(&edge, &BTreeMap::new()).map(|found| found.value.bits_per_second());
            assert_eq!(found, Some(bits), "{pairs:?}");
        }
        let whole = attributes(&[("bandwidth_units", "kbps")]);
        let edge = attributes(&[("bandwidth", "7")]);
        let found = rate(&edge, &whole).map(|found| found.value.bits_per_second());
        assert_eq!(found, Some(7_000));
    }

    #[test]
    fn a_number_with_an_ambiguous_unit_is_not_a_rate() {
        for pair in [
            ("bandwidth", "100"),
            ("weight", "3"),
            ("capacity", "10 MBPS"),
            ("capacity", "10 MB"),
            ("bandwidth", "fast"),
            ("bandwidth", "-5 Mbps"),
            ("colour", "10 Mbps"),
        ] {
            assert_eq!(rate(&attributes(&[pair]), &BTreeMap::new()), None, "{pair:?}");
        }
        assert!(names_quantity("bandwidth") && names_quantity("weight"));
        assert!(!names_quantity("colour") && !names_quantity("bandwidth_unit"));
        assert!(names_unit("bandwidth_unit"));
    }

    #[test]
    fn latencies_are_read_like_rates() {
        for (pair, nanos) in [
            (("delay_us", "1500"), 1_500_000),
            (("latency_ms", "2.5"), 2_500_000),
            (("weight", "7 ms"), 7_000_000),
            (("propagation_delay", "1s"), 1_000_000_000),
        ] {
            let edge = attributes(&[pair]);
            let found = latency(&edge, &BTreeMap::new()).map(|found| found.value);
            assert_eq!(found, Some(Span::from_nanos(nanos)), "{pair:?}");
        }
    }
}
