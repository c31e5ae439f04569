//! Why runs cannot be shown.

use std::io;
use std::path::{Path, PathBuf};

/// Why runs cannot be shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    #[error("{} is not the folder of a run: it has no plan.json", .0.display())]
    NoRun(PathBuf),
    #[error("cannot read {}: {why}", .path.display())]
    Unusable { path: PathBuf, why: String },
}

impl ReportError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            ReportError::NoRun(_) => Some(
                "`windtunnel run` names the folder in its last line; `runs/latest` is the newest one below `runs`",
            ),
            ReportError::Unusable { .. } => None,
        }
    }
}

pub(crate) fn unusable(path: &Path) -> impl FnOnce(io::Error) -> ReportError {
    move |error| ReportError::Unusable { path: path.to_owned(), why: error.to_string() }
}
