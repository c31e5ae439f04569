//! What the tests share.

use windtunnel_scenario::{Loaded, Source, load};

/// Loads a text as `name`.yaml in /home/me.
pub(crate) fn load_text(name: &str, text: &[u8]) -> Result<Loaded, windtunnel_scenario::Errors> {
    let file = format!("{name}.yaml");
    load(&Source { name: &file, text, default_name: name, base_dir: "/home/me" })
}
