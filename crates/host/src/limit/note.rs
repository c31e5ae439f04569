//! What commands of one name share of the kernel, in a file beside that of the limit.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::resources::Resources;

/// What commands of one name share of the kernel.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Note {
    /// [`Group::address`](windtunnel_limit::Group::address).
    pub(super) address: String,
    /// What it limits.
    pub(super) resources: Resources,
}

impl Note {
    pub(super) fn read(limit: &Path) -> Option<Note> {
        let text = fs::read(Note::path(limit)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Whole, whenever it is read.
    pub(super) fn write(&self, limit: &Path) -> io::Result<()> {
        let draft = limit.with_extension(format!("draft-{}", std::process::id()));
        fs::write(&draft, serde_json::to_vec(self)?)?;
        fs::rename(&draft, Note::path(limit))
    }

    pub(super) fn path(limit: &Path) -> PathBuf {
        limit.with_extension("group")
    }
}
