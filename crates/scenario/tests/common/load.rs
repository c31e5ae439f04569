//! What the tests share.

use windtunnel_scenario::{LoadedScenario, ScenarioOverrides, ScenarioSource, load_instead};

/// Loads a text as `name`.yaml in /home/me, with trace files from tests/traces; over several
/// machines if the name starts with `machines-`.
pub(crate) fn load_text(
    name: &str,
    text: &[u8],
) -> Result<LoadedScenario, windtunnel_scenario::ScenarioErrors> {
    let file = format!("{name}.yaml");
    let source = ScenarioSource { name: &file, text, default_name: name, base_dir: "/home/me" };
    let several_machines = name.starts_with("machines-");
    let instead = ScenarioOverrides { several_machines, ..ScenarioOverrides::default() };
    let files = |trace: &str| {
        let path = format!("{}/tests/traces/{trace}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read(path).map_err(|error| error.to_string())
    };
    load_instead(&source, &files, instead)
}
