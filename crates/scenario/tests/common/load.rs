//! What the tests share.

use windtunnel_scenario::{Loaded, Source, load_with};

/// Loads a text as `name`.yaml in /home/me, with trace files from tests/traces.
pub(crate) fn load_text(name: &str, text: &[u8]) -> Result<Loaded, windtunnel_scenario::Errors> {
    let file = format!("{name}.yaml");
    let source = Source { name: &file, text, default_name: name, base_dir: "/home/me" };
    load_with(&source, &|trace| {
        let path = format!("{}/tests/traces/{trace}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read(path).map_err(|error| error.to_string())
    })
}
