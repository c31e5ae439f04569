//! `part`: one machine's part of a run. Agents start it, people do not.

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use windtunnel_host::PartPlace;

use crate::exit::ExitCategory;
use crate::failure::{Outcome, VerbFailure};

/// Do one machine's part of a run, as the agent at the other end of standard input wants it
#[derive(Debug, clap::Args)]
pub(crate) struct PartArguments {
    /// Files and folders that no program may see, with absolute paths
    #[arg(value_name = "PATH")]
    hidden: Vec<PathBuf>,
    /// The control group that all nodes are to be in
    #[arg(long, value_name = "GROUP", env = "WINDTUNNEL_PART_GROUP")]
    group: Option<String>,
}

/// The verb, as agents write it.
pub(crate) const NAME: &str = "part";

/// The arguments with which an agent starts it.
pub(crate) fn arguments(hidden: &[PathBuf], group: Option<&str>) -> Vec<OsString> {
    let group = group.into_iter().flat_map(|group| ["--group", group]).map(OsString::from);
    let hidden = hidden.iter().map(|path| path.clone().into_os_string());
    [OsString::from(NAME)].into_iter().chain(group).chain(hidden).collect()
}

pub(crate) fn run(arguments: &PartArguments) -> Outcome {
    let cannot = |error: std::io::Error| {
        VerbFailure::new(
            ExitCategory::Usage,
            format!("cannot talk to an agent on standard input: {error}"),
        )
        .hint("agents start this themselves: `windtunnel agent`")
    };
    let stream = rustix::stdio::stdin().as_fd().try_clone_to_owned().map_err(cannot)?;
    let place = PartPlace { hidden: arguments.hidden.clone(), group: arguments.group.clone() };
    windtunnel_host::part(UnixStream::from(stream), place).map_err(cannot)?;
    Ok(ExitCategory::Fine.code())
}
