//! Maps of YAML.

use windtunnel_scenario::yaml::{YamlKey, YamlValue};

/// The value of a key of a map in YAML.
pub(super) fn find<'v>(keys: &'v [(YamlKey, YamlValue)], name: &str) -> Option<&'v YamlValue> {
    keys.iter().find(|(key, _)| key.text == name).map(|(_, value)| value)
}
