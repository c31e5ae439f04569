//! Volumes of services.

use windtunnel_scenario::ScenarioMistake;
use windtunnel_scenario::yaml::{YamlValue, YamlValueKind};

use super::reader::ComposeReader;
use crate::import::input::shorten;
use crate::import::mapping::find;
use crate::topology::ConversionReport;

/// What `volumes` says, as far as it is carried over.
pub(super) fn volumes(
    reader: &ComposeReader<'_>,
    value: &YamlValue,
    node: &str,
    notes: &mut ConversionReport,
) -> Result<Vec<String>, ScenarioMistake> {
    let YamlValueKind::List(items) = &value.kind else {
        return Err(reader.at(value.place, "`volumes` must be a list"));
    };
    let mut texts = Vec::new();
    for item in items {
        let text = match &item.kind {
            YamlValueKind::Map(_) => long(reader, item, node, notes)?,
            _ => short(&reader.text(item, "volumes", notes)?, node, notes),
        };
        texts.extend(text);
    }
    Ok(texts)
}

/// `SOURCE:/TARGET:ro,z`, or `/TARGET` alone.
fn short(text: &str, node: &str, notes: &mut ConversionReport) -> Option<String> {
    let mut parts = text.split(':');
    let (first, second, third) = (parts.next()?, parts.next(), parts.next());
    let Some(target) = second else {
        notes.leave_out(
            "Volumes without a name: the node's own files do",
            format!("{} of {node}", shorten(text)),
        );
        return None;
    };
    let options: Vec<&str> = third.unwrap_or("").split(',').filter(|it| !it.is_empty()).collect();
    for option in options.iter().filter(|option| !["ro", "rw"].contains(option)) {
        let what = format!("{} of {node}", shorten(option));
        match LABELS.contains(option) {
            true => notes.leave_out_once("Options of volumes", what),
            false => notes.lose("Options of volumes", what),
        }
    }
    carried(first, target, options.contains(&"ro"), node, notes)
}

/// Options that are about labels of SELinux and caches of Docker on other systems.
const LABELS: [&str; 5] = ["z", "Z", "cached", "consistent", "delegated"];

fn long(
    reader: &ComposeReader<'_>,
    item: &YamlValue,
    node: &str,
    notes: &mut ConversionReport,
) -> Result<Option<String>, ScenarioMistake> {
    let keys = reader.map(item, "a volume")?;
    let mut text = |key: &str| match find(keys, key) {
        Some(value) => reader.text(value, key, notes).map(Some),
        None => Ok(None),
    };
    let (kind, source, target) = (text("type")?, text("source")?, text("target")?);
    let read_only = text("read_only")?.as_deref() == Some("true");
    for (key, _) in keys {
        if !["type", "source", "target", "read_only"].contains(&key.text.as_str()) {
            notes.lose("Options of volumes", format!("{} of {node}", shorten(&key.text)));
        }
    }
    let (Some(target), kind) = (target, kind.unwrap_or_default()) else {
        return Err(reader.at(item.place, "this volume has no `target`"));
    };
    match (kind.as_str(), source) {
        ("bind" | "volume" | "", Some(source)) => {
            Ok(carried(&source, &target, read_only, node, notes))
        }
        _ => {
            notes.leave_out(
                "Volumes without a name: the node's own files do",
                format!("{} of {node}", shorten(&target)),
            );
            Ok(None)
        }
    }
}

/// A volume that a scenario takes.
pub(super) fn carried(
    source: &str,
    target: &str,
    read_only: bool,
    node: &str,
    notes: &mut ConversionReport,
) -> Option<String> {
    let of_name = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let is_path = source.contains('/') || source.starts_with('.');
    let is_name = source.starts_with(|c: char| c.is_ascii_alphanumeric())
        && source.chars().all(of_name)
        && source.len() <= 200;
    let parts: Vec<&str> =
        target.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let leads = target.starts_with('/') && !parts.is_empty() && !parts.contains(&"..");
    if !leads || !(is_path || is_name) || source.starts_with('~') || source.contains(':') {
        let what = format!("{}:{} of {node}", shorten(source), shorten(target));
        notes.lose("Volumes that cannot be mounted", what);
        return None;
    }
    let suffix = if read_only { ":ro" } else { "" };
    Some(format!("{source}:{target}{suffix}"))
}
