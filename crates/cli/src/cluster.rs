//! The cluster's key and its machines on the command line, and messages about runs over them.

mod concerns;
pub(crate) mod machines;
mod reservations;
mod talk;

use std::path::{Path, PathBuf};

use windtunnel_cluster::ClusterKey;
use windtunnel_lead::KeySource;

use crate::failure::VerbFailure;

pub(crate) use concerns::concerns;
pub(crate) use reservations::refuse_spread;
pub(crate) use talk::{progress, refuse_silent, refuse_to_detach, report_started};

/// The choice of the key.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ClusterKeySelector {
    /// The cluster's key, `-` for standard input [default: windtunnel/cluster.key in
    /// $XDG_CONFIG_HOME or ~/.config]
    #[arg(long, value_name = "FILE", env = "WINDTUNNEL_KEY")]
    key: Option<PathBuf>,
}

impl ClusterKeySelector {
    /// Where it comes from.
    pub(crate) fn source(&self) -> KeySource {
        match &self.key {
            None => KeySource::Usual,
            Some(path) if path == Path::new("-") => KeySource::StandardInput,
            Some(path) => KeySource::File(path.clone()),
        }
    }

    /// Reads the key, as [`KeySource::read`] does.
    pub(crate) fn read(&self) -> Result<ClusterKey, VerbFailure> {
        Ok(self.source().read()?)
    }
}
