//! Secrets, configs and `tmpfs`, which are volumes here.

use windtunnel_scenario::ScenarioMistake;
use windtunnel_scenario::yaml::{YamlKey, YamlValue, YamlValueKind};

use super::reader::ComposeReader;
use super::volume;
use crate::import::input::shorten;
use crate::import::mapping::find;
use crate::topology::{ConversionReport, TopologyNode};

/// Reads `secrets`, `configs` and `tmpfs` of a service: further volumes.
pub(super) fn volumes(
    reader: &ComposeReader<'_>,
    root: &[(YamlKey, YamlValue)],
    keys: &[(YamlKey, YamlValue)],
    node: &TopologyNode,
    notes: &mut ConversionReport,
) -> Result<Vec<String>, ScenarioMistake> {
    let mut volumes = Vec::new();
    for (section, folder) in [("secrets", "/run/secrets/"), ("configs", "/")] {
        let Some(YamlValue { kind: YamlValueKind::List(items), .. }) = find(keys, section) else {
            continue;
        };
        let defined = match find(root, section) {
            Some(value) => reader.map(value, section)?,
            None => &[],
        };
        for item in items {
            let (name, target) = names(reader, item, &node.name, notes)?;
            let what = format!("{} of {}", shorten(&name), node.name);
            let file = match find(defined, &name).map(|it| reader.map(it, section)).transpose()? {
                Some(keys) => find(keys, "file"),
                None => None,
            };
            let Some(file) = file else {
                notes.lose("Secrets and configs that are not in a file", what);
                continue;
            };
            let file = reader.text(file, "file", notes)?;
            let file = if file.contains('/') { file } else { format!("./{file}") };
            let target = target.unwrap_or_else(|| name.clone());
            let target = if target.starts_with('/') { target } else { format!("{folder}{target}") };
            volumes.extend(volume::carried(&file, &target, true, &node.name, notes));
        }
    }
    volumes.extend(temporary(reader, keys, node, notes)?);
    Ok(volumes)
}

/// The name of a secret or config, and where it is mounted.
fn names(
    reader: &ComposeReader<'_>,
    item: &YamlValue,
    node: &str,
    notes: &mut ConversionReport,
) -> Result<(String, Option<String>), ScenarioMistake> {
    let YamlValueKind::Map(keys) = &item.kind else {
        return Ok((reader.text(item, "a secret or config", notes)?, None));
    };
    for (key, _) in keys.iter().filter(|(key, _)| !["source", "target"].contains(&&*key.text)) {
        notes.lose("Keys of secrets and configs", format!("{} of {node}", shorten(&key.text)));
    }
    let mut text =
        |key: &str| find(keys, key).map(|value| reader.text(value, key, notes)).transpose();
    Ok((text("source")?.unwrap_or_default(), text("target")?))
}

/// Folders of the run, empty at the beginning, for this node alone.
fn temporary(
    reader: &ComposeReader<'_>,
    keys: &[(YamlKey, YamlValue)],
    node: &TopologyNode,
    notes: &mut ConversionReport,
) -> Result<Vec<String>, ScenarioMistake> {
    let Some(value) = find(keys, "tmpfs") else { return Ok(Vec::new()) };
    let mut volumes = Vec::new();
    for (at, text) in (1..).zip(reader.texts(value, "tmpfs", notes)?) {
        let (target, options) = text.split_once(':').unwrap_or((&text, ""));
        if node.count.is_some() {
            let text = "`tmpfs` of services with replicas: the replicas would share it";
            notes.lose(text, format!("{} of {}", shorten(target), node.name));
            continue;
        }
        if !options.is_empty() {
            let what = format!("{} of {}", shorten(options), node.name);
            notes.lose("Options of `tmpfs`, which is a folder of the run", what);
        }
        let text = "`tmpfs` is a folder of the run: its files are on the run's disk, not in memory";
        notes.assume(text, format!("{} of {}", shorten(target), node.name));
        let name = format!("tmpfs-{}-{at}", node.name);
        volumes.extend(volume::carried(&name, target, false, &node.name, notes));
    }
    Ok(volumes)
}
