//! `--hosts`: which machines of a cluster.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::builder::NonEmptyStringValueParser;
use windtunnel_cluster::ClusterKey;
use windtunnel_lead::{ClusterRunObserver, DiscoveredMachines, KeySource, ShellCommandWords};
use windtunnel_model::Span;

use super::ClusterKeySelector;
use crate::exit::ExitCategory;
use crate::failure::VerbFailure;
use crate::load;

/// Machines of a cluster, and its key.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ClusterHostOptions {
    /// Machines of a cluster, with commas: agents' names or addresses, `all`, or `slurm` for those
    /// of the Slurm allocation that this is in. Where no agent answers, one is started over
    /// ssh; it ends with this command
    #[arg(
        long,
        value_name = "HOST",
        env = "WINDTUNNEL_HOSTS",
        value_delimiter = ',',
        value_parser = NonEmptyStringValueParser::new()
    )]
    hosts: Vec<String>,
    /// With --hosts: how agents are started; a host and a command are added
    #[arg(long, value_name = "COMMAND", env = "WINDTUNNEL_SSH", default_value = "ssh")]
    ssh: ShellCommandWords,
    /// With --hosts: windtunnel on machines where an agent is started, as a shell there reads it
    /// [default: windtunnel; for `slurm` the path of this program]
    #[arg(long, value_name = "COMMAND", env = "WINDTUNNEL_REMOTE_WINDTUNNEL")]
    remote_windtunnel: Option<ShellCommandWords>,
    /// With --hosts, for agents that are started: how far the real-time clocks of all machines are
    /// apart at the most, if that is known from elsewhere (PTP, GPS)
    #[arg(long, value_name = "TIME", env = "WINDTUNNEL_CLOCK_OFFSETS")]
    clock_offsets: Option<Span>,
    #[command(flatten)]
    key: ClusterKeySelector,
}

impl ClusterHostOptions {
    /// Whether any were named.
    pub(crate) fn are_named(&self) -> bool {
        !self.hosts.is_empty()
    }

    /// Refuses a key and a scenario that are both to come from standard input.
    pub(crate) fn refuse_two_inputs(&self, scenario: &Path) -> Result<(), VerbFailure> {
        let is_key = self.key.source() == KeySource::StandardInput;
        if self.are_named() && is_key && load::is_standard_input(scenario) {
            let text = "the scenario and the key cannot both come from standard input";
            return Err(
                VerbFailure::new(ExitCategory::Usage, text).hint("name a file for one of the two")
            );
        }
        Ok(())
    }

    /// Where keys are, which no program of a node may see, whether or not machines are named.
    pub(crate) fn key_places(&self) -> Vec<PathBuf> {
        self.key.source().places()
    }

    /// The key; one for this command alone if there is none.
    pub(crate) fn key(&self) -> Result<ClusterKey, VerbFailure> {
        Ok(self.key.source().read_or_make()?)
    }

    /// Finds those that were named, and starts agents where there are none.
    pub(crate) fn find(
        &self,
        key: &ClusterKey,
        progress: &Arc<dyn ClusterRunObserver>,
    ) -> Result<DiscoveredMachines, VerbFailure> {
        let machines = windtunnel_lead::MachineSelection {
            hosts: self.hosts.clone(),
            ssh: self.ssh.clone(),
            remote_windtunnel: self.remote_windtunnel.clone(),
            clock_offsets: self.clock_offsets,
        };
        Ok(machines.find(key, progress)?)
    }
}
