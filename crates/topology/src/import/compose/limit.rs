//! What a service may use at most: `cpus`, `mem_limit`, `pids_limit`, `deploy.resources.limits` and
//! `ulimits`.

use windtunnel_model::Bytes;
use windtunnel_model::demand::Demand;
use windtunnel_scenario::ScenarioMistake;
use windtunnel_scenario::yaml::{YamlKey, YamlValue, YamlValueKind};

use super::reader::ComposeReader;
use crate::import::decimal;
use crate::import::input::shorten;
use crate::import::mapping::find;
use crate::topology::{ConversionReport, TopologyNode};

/// The most thousandths of a processor.
const MOST_MILLIS: u64 = 1_000_000;

/// Adds the limits of a service to its node. They reserve nothing, as those of containers.
pub(super) fn read(
    reader: &ComposeReader<'_>,
    keys: &[(YamlKey, YamlValue)],
    node: &mut TopologyNode,
    notes: &mut ConversionReport,
) -> Result<(), ScenarioMistake> {
    let limits = deployed(reader, keys, node, notes)?;
    let either = |name: &str, below: &str| find(limits, below).or_else(|| find(keys, name));
    if let Some(value) = either("cpus", "cpus") {
        let text = reader.text(value, "cpus", notes)?;
        let millis = decimal::scaled(&text, 1000)
            .ok_or_else(|| reader.wrong(value, "cpus", &text, "a number of processors"))?;
        if millis > MOST_MILLIS {
            return Err(reader.wrong(value, "cpus", &text, "a number of processors up to 1000"));
        }
        if millis > 0 {
            let limit = format!("{{limit: {}.{:03}}}", millis / 1000, millis % 1000);
            node.more.push(("cpu", limit));
        }
    }
    if let Some(value) = either("mem_limit", "memory") {
        let text = reader.text(value, "memory", notes)?;
        let bytes = bytes(&text).ok_or_else(|| reader.wrong(value, "memory", &text, "a size"))?;
        if bytes >= Demand::MEMORY_MIN.0 {
            node.more.push(("memory", format!("{{limit: {}}}", Bytes(bytes))));
        } else if bytes > 0 {
            notes.lose(
                "Sizes of memory in which nothing starts",
                format!("{text} of {}", node.name),
            );
        }
    }
    if let Some(value) = either("pids_limit", "pids") {
        let text = reader.text(value, "pids_limit", notes)?;
        let count = text.parse::<u32>().ok().filter(|count| *count <= Demand::PIDS_MAX);
        match count {
            Some(0) => {}
            Some(count) => node.more.push(("pids", count.to_string())),
            None if text == "-1" => {}
            None => return Err(reader.wrong(value, "pids_limit", &text, "a number of processes")),
        }
    }
    descriptors(reader, keys, node, notes)
}

/// `deploy.resources.limits`; what else `resources` say is noted.
fn deployed<'v>(
    reader: &ComposeReader<'_>,
    keys: &'v [(YamlKey, YamlValue)],
    node: &TopologyNode,
    notes: &mut ConversionReport,
) -> Result<&'v [(YamlKey, YamlValue)], ScenarioMistake> {
    let inner = |keys: &'v [(YamlKey, YamlValue)], name: &str| match find(keys, name) {
        Some(value) => reader.map(value, name),
        None => Ok(&[][..]),
    };
    let resources = inner(inner(keys, "deploy")?, "resources")?;
    let limits = inner(resources, "limits")?;
    let carried = ["cpus", "memory", "pids"];
    for (key, _) in limits.iter().filter(|(key, _)| !carried.contains(&key.text.as_str())) {
        let what = format!("deploy.resources.limits.{} of {}", shorten(&key.text), node.name);
        notes.lose("Keys of services", what);
    }
    for (key, _) in resources.iter().filter(|(key, _)| key.text != "limits") {
        let what = format!("deploy.resources.{} of {}", shorten(&key.text), node.name);
        notes.lose("Keys of services", what);
    }
    Ok(limits)
}

/// `ulimits.nofile`.
fn descriptors(
    reader: &ComposeReader<'_>,
    keys: &[(YamlKey, YamlValue)],
    node: &mut TopologyNode,
    notes: &mut ConversionReport,
) -> Result<(), ScenarioMistake> {
    let Some(value) = find(keys, "ulimits") else { return Ok(()) };
    for (key, value) in reader.map(value, "ulimits")? {
        let what = format!("ulimits.{} of {}", shorten(&key.text), node.name);
        let soft = match &value.kind {
            YamlValueKind::Map(inner) => find(inner, "soft").cloned(),
            _ => Some(value.clone()),
        };
        let text = match &soft {
            Some(soft) if key.text == "nofile" => reader.text(soft, "nofile", notes)?,
            _ => String::new(),
        };
        let range = Demand::OPEN_FILES_MIN..=Demand::OPEN_FILES_MAX;
        match text.parse::<u32>().ok().filter(|count| range.contains(count)) {
            Some(count) => node.more.push(("open-files", count.to_string())),
            None => notes.lose("Keys of services", what),
        }
    }
    Ok(())
}

/// A size as Docker writes it: `512m` is 512 · 1024².
pub(super) fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = decimal::split(text);
    let scale = match unit.to_ascii_lowercase().trim_end_matches('b').trim_end_matches('i') {
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        "t" => 1 << 40,
        _ => return None,
    };
    decimal::scaled(number, scale)
}

impl ComposeReader<'_> {
    /// A value that is not what it must be.
    fn wrong(&self, value: &YamlValue, key: &str, text: &str, needed: &str) -> ScenarioMistake {
        self.at(value.place, format!("{key}: `{}` is not {needed}", shorten(text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_two_as_dockers() {
        assert_eq!(bytes("512m"), Some(536_870_912));
        assert_eq!(bytes("1.5GB"), Some(1_610_612_736));
        assert_eq!(bytes("64KiB"), Some(65_536));
        assert_eq!(bytes("1000000"), Some(1_000_000));
        assert_eq!(bytes("1 potato"), None);
    }
}
