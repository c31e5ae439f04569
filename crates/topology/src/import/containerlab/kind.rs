//! Which kind a node is: its own, that of its group, or the default.

use windtunnel_scenario::ScenarioMistake;
use windtunnel_scenario::yaml::{YamlKey, YamlValue, YamlValueKind};

use super::{ContainerlabReader, note_image};
use crate::import::input::shorten;
use crate::import::mapping::find;
use crate::topology::ConversionReport;

/// What nodes inherit.
#[derive(Debug)]
pub(super) struct ContainerlabDefaults<'v> {
    defaults: &'v [(YamlKey, YamlValue)],
    groups: &'v [(YamlKey, YamlValue)],
}

impl<'v> ContainerlabDefaults<'v> {
    /// The definitions of a topology. What nodes would inherit beside a kind is noted.
    pub(super) fn read(
        reader: &ContainerlabReader<'_>,
        topology: &'v [(YamlKey, YamlValue)],
        notes: &mut ConversionReport,
    ) -> Result<Self, ScenarioMistake> {
        let section = |name: &str| match find(topology, name) {
            None => Ok(&[][..]),
            Some(value) if matches!(value.kind, YamlValueKind::Null) => Ok(&[][..]),
            Some(value) => reader.map(value, name),
        };
        let definitions =
            ContainerlabDefaults { defaults: section("defaults")?, groups: section("groups")? };
        note_inherited(notes, "defaults", definitions.defaults);
        for name in ["kinds", "groups"] {
            for (key, value) in section(name)? {
                if let YamlValueKind::Map(keys) = &value.kind {
                    note_inherited(notes, &format!("{name}.{}", shorten(&key.text)), keys);
                }
            }
        }
        Ok(definitions)
    }

    /// The kind of the node `key` with these keys.
    pub(super) fn kind_of<'a>(
        &'a self,
        reader: &ContainerlabReader<'_>,
        key: &YamlKey,
        node: &'a [(YamlKey, YamlValue)],
    ) -> Result<&'a str, ScenarioMistake> {
        if let Some(kind) = find(node, "kind") {
            return reader.text(kind, "kind");
        }
        if let Some(group) = find(node, "group").or_else(|| find(self.defaults, "group"))
            && let Some(group) = find(self.groups, reader.text(group, "group")?)
            && let YamlValueKind::Map(group) = &group.kind
            && let Some(kind) = find(group, "kind")
        {
            return reader.text(kind, "kind");
        }
        match find(self.defaults, "kind") {
            Some(kind) => reader.text(kind, "kind"),
            None => {
                let message = format!("the node `{}` has no `kind`", shorten(&key.text));
                let hint = "kind: of the node, of its group (`groups:`), or of `defaults:`";
                Err(reader.input.at(key.place, message, Some(hint.to_owned())))
            }
        }
    }
}

/// What the keys that nodes inherit would have done.
fn note_inherited(notes: &mut ConversionReport, of: &str, keys: &[(YamlKey, YamlValue)]) {
    for (key, value) in keys {
        match (key.text.as_str(), &value.kind) {
            ("kind", _) => {}
            ("image", YamlValueKind::Text(image)) => note_image(notes, of, image),
            ("labels" | "group", _) => notes.leave_out("Keys of nodes", shorten(&key.text)),
            (other, _) => notes.lose("Keys of nodes", format!("{} of {of}", shorten(other))),
        }
    }
}
