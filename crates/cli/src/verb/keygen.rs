//! `keygen`: the key of a cluster.

use std::path::PathBuf;

use serde::Serialize;
use windtunnel_cluster::ClusterKey;
use windtunnel_lead::{KeySource, LeadError};

use crate::arguments::OutputFormat;
use crate::exit::ExitCategory;
use crate::failure::Outcome;
use crate::output;

/// Make the key of a cluster: its holders may use all machines of the cluster
///
/// Copy the file to each machine of the cluster, readable by you alone. A file that exists
/// already is left alone.
#[derive(Debug, clap::Args)]
pub(crate) struct KeygenArguments {
    /// The new file [default: windtunnel/cluster.key in $XDG_CONFIG_HOME or ~/.config]
    file: Option<PathBuf>,
    #[command(flatten)]
    format: OutputFormat,
}

/// For `--json`: nothing secret.
#[derive(Debug, Serialize)]
struct KeygenOutput {
    path: PathBuf,
    /// The fingerprint that distinguishes this key from others.
    key: String,
}

pub(crate) fn run(arguments: &KeygenArguments) -> Outcome {
    let path = match &arguments.file {
        Some(path) => path.clone(),
        None => KeySource::usual_path()?,
    };
    let key = ClusterKey::create(&path).map_err(LeadError::from)?;
    if arguments.format.json {
        output::json(&KeygenOutput { path, key: key.to_string() })?;
        return Ok(ExitCategory::Fine.code());
    }
    output::data(&format!("{}\n", path.display()))?;
    output::talk(&format!("made the key {key}: copy the file to each machine of the cluster"));
    Ok(ExitCategory::Fine.code())
}
