//! Leads a run over several machines, for every user interface.
//!
//! Promises: nothing begins anywhere before it can begin everywhere; a run that does not begin
//! leaves nothing; once it has begun, its machines go on without the leader. Agents that are
//! started for a run have the key through their standard input only, and end with the run. Refuses:
//! to print, and to know the command line: notices go to an
//! [`Observer`](windtunnel_host::Observer) and to [`ClusterRunObserver`], failures are a [`LeadError`].
//!
//! A run takes these steps: [`MachineSelection::find`] finds the machines that are named, and starts agents
//! where there are none; [`ClusterRunRequest::begin`] places the nodes and leads all machines through the stages
//! to the beginning; [`LiveClusterRun::finish`] watches it to its end and gathers the results, or
//! [`LiveClusterRun::detach`] leaves it to its machines, and [`LiveClusterRun::attend`] follows it later.
//!
//! A *machine* has an *agent*, the daemon there. A *member* is a machine in a run, and its *host*
//! the name by which users know it.
//!
//! | module | what |
//! | --- | --- |
//! | `key` | [`KeySource`]: where the cluster's key comes from |
//! | `machines` | [`MachineSelection`], [`DiscoveredMachines`]: which machines, by names, addresses, `all` or `slurm` |
//! | `choosing` | which machines of a cluster names mean |
//! | `starting` | [`LaunchedAgents`]: agents that are started over ssh or in a Slurm allocation |
//! | `placing` | [`PlacementHostSet`]: which node goes on which machine |
//! | `run` | [`ClusterRunRequest`], [`LiveClusterRun`]: from the plan to the report |
//! | `conductor` | takes all parts through the stages |
//! | `overdue` | a stage that takes too long: for which machines it waits |
//! | `notices` | the parts' notices, as if the run were on one machine |
//! | `proxy`, `command` | the control socket of the run folder: each request goes to its part |
//! | `progress` | [`ClusterRunObserver`]: notices while a run is led |
//! | `error` | [`LeadError`] |
//! | `sample` | machines for tests; with the feature of that name |
//!
//! ```
//! let ssh: windtunnel_lead::ShellCommandWords = "ssh -o 'ProxyCommand nc %h %p'".parse().unwrap();
//! let hosts = vec!["m1".to_owned(), "m2".to_owned()];
//! let (remote_windtunnel, clock_offsets) = (None, None);
//! let machines = windtunnel_lead::MachineSelection { hosts, ssh, remote_windtunnel, clock_offsets };
//! assert_eq!(machines.ssh.to_string(), "ssh -o 'ProxyCommand nc %h %p'");
//! ```

mod choosing;
mod command;
mod conductor;
mod error;
mod key;
mod machines;
mod notices;
mod overdue;
mod placing;
mod progress;
mod proxy;
mod run;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
mod starting;
#[cfg(test)]
mod tests;

pub use error::{LeadError, LeadErrorKind};
pub use key::KeySource;
pub use machines::{DiscoveredMachines, MachineSelection};
pub use placing::PlacementHostSet;
pub use progress::ClusterRunObserver;
pub use run::{ClusterRunRequest, LiveClusterRun, look, options_of};
pub use starting::{AgentLaunchMethod, LaunchedAgents, ShellCommandWords, StartedAgent};
