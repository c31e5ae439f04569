//! Plans for the tests of this room and of those above it.

use windtunnel_model::Plan;

/// The plan of a file, in which not every two nodes need a path.
/// # Panics
/// If there is a mistake in it.
#[must_use]
pub fn plan(text: &str) -> Plan {
    let text = format!("allow-unreachable: true\n{text}");
    let source = windtunnel_scenario::ScenarioSource {
        name: "x.yaml",
        text: text.as_bytes(),
        default_name: "x",
        base_dir: "/",
    };
    match windtunnel_scenario::load(&source) {
        Ok(loaded) => loaded.plan,
        Err(mistakes) => panic!("{mistakes:?}"),
    }
}
