//! Chores of the repository that depend on nothing outside it.
//!
//! | module | what |
//! | --- | --- |
//! | [`bpf`] | the BPF programs and their compiled object |
//! | [`docs`] | the generated pages: reference, manual page, completions |
//! | [`supply`] | licences and sources of dependencies |
//! | [`tidy`] | mechanical checks of the tree |
//!
//! ```
//! let root = xtask::root();
//! assert!(root.join("Cargo.toml").exists());
//! ```

pub mod bpf;
pub mod docs;
pub mod supply;
pub mod tidy;

use std::path::{Path, PathBuf};

/// The folder of the repository.
#[must_use]
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}
