//! Which machines of a cluster: those that were named, with an agent on each.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use windtunnel_cluster::protocol::{
    AgentDescription, AgentRequest, ClusterHosts, UnresponsiveAgent,
};
use windtunnel_cluster::{AgentClient, AgentClientError, ClusterKey};
use windtunnel_model::Span;

use crate::choosing::{all_names, called, choose, listening, unknown};
use crate::error::{LeadError, LeadErrorKind};
use crate::progress::ClusterRunObserver;
use crate::starting::{AgentLaunchSettings, LaunchedAgents, ShellCommandWords};

/// Machines of a cluster, as the user names them.
#[derive(Debug, Clone)]
pub struct MachineSelection {
    /// Agents' names or addresses, `all`, or `slurm` for those of the Slurm allocation that this
    /// process is in. Where no agent answers, one is started over ssh.
    pub hosts: Vec<String>,
    /// How agents are started; a host and a command are added.
    pub ssh: ShellCommandWords,
    /// Windtunnel on machines where an agent is started, as a shell there reads it: `windtunnel`,
    /// or for `slurm` the path of this program, unless it is named here.
    pub remote_windtunnel: Option<ShellCommandWords>,
    /// How far the real-time clocks of all machines are apart at the most, as the user knows, for
    /// agents that are started.
    pub clock_offsets: Option<Span>,
}

/// Machines that were found.
pub struct DiscoveredMachines {
    /// Each once, by name and address, in whichever order they were named.
    pub cards: Vec<AgentDescription>,
    /// With `all`: agents that are there and did not answer.
    pub silent: Vec<UnresponsiveAgent>,
    /// Agents that end when this is dropped.
    pub started: LaunchedAgents,
}

impl MachineSelection {
    /// Finds those that were named, and starts agents where there are none.
    ///
    /// # Errors
    /// If a name means no machine or several, no agent can be started where none is, or agents do
    /// not reach each other.
    pub fn find(
        &self,
        key: &ClusterKey,
        progress: &Arc<dyn ClusterRunObserver>,
    ) -> Result<DiscoveredMachines, LeadError> {
        let mut reached = ReachableAgents::new(&self.hosts, key)?;
        let remote = self.remote_windtunnel.as_ref();
        let clock_offsets = self.clock_offsets;
        let starter = AgentLaunchSettings { ssh: &self.ssh, remote, clock_offsets, key, progress };
        let wants_slurm = self.hosts.iter().any(|name| name == SLURM);
        let (missing, is_known) = reached.missing()?;
        let mut started = LaunchedAgents::default();
        if !missing.is_empty() || wants_slurm {
            started = starter.start(&missing, wants_slurm)?;
        }
        let hosts = if started.agents.is_empty() {
            reached.any_or_error()?.hosts(false)?
        } else {
            let with_others = is_known || self.hosts.iter().any(|name| name == ALL);
            unite(&reached, &started, with_others)?
        };
        let answers = reached.answers.into_iter();
        let answers: BTreeMap<String, String> = answers.chain(started.answers()).collect();
        let chosen = choose(&hosts, &self.hosts, &answers, &started.of_slurm())?;
        let is_all = self.hosts.iter().any(|name| name == ALL);
        let silent = if is_all { hosts.silent } else { Vec::new() };
        let cards = hosts.hosts.into_iter().enumerate();
        let cards: Vec<AgentDescription> =
            cards.filter(|(at, _)| chosen.contains(at)).map(|(_, card)| card).collect();
        ensure_fit(&cards)?;
        if self.clock_offsets.is_some()
            && let Some(text) = with_own_offsets(&cards, &started)
        {
            progress.warn(&text);
        }
        Ok(DiscoveredMachines { cards, silent, started })
    }
}

/// Which agents were not started with what the user knows of clocks, in words.
fn with_own_offsets(cards: &[AgentDescription], started: &LaunchedAgents) -> Option<String> {
    let is_started =
        |card: &&AgentDescription| started.agents.iter().any(|it| it.card.agent == card.agent);
    let others = cards.iter().filter(|card| !is_started(card));
    let names: Vec<&str> = others.map(|card| card.host.as_str()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "--clock-offsets is for agents that this command starts: those on {} run already, and \
             have what they were started with",
            names.join(", ")
        )
    })
}

/// Each machine can have nodes.
fn ensure_fit(cards: &[AgentDescription]) -> Result<(), LeadError> {
    let unfit = || cards.iter().filter_map(|card| Some((card, card.unfit.as_ref()?)));
    let each =
        unfit().map(|(card, unfit)| format!("host {} can have no nodes: {}", card.host, unfit.why));
    let text = each.collect::<Vec<_>>().join("; ");
    if text.is_empty() {
        return Ok(());
    }
    let leave = "leave it out of --hosts, or mend it and start its agent again";
    let hint = match unfit().find_map(|(_, unfit)| unfit.hint.as_ref()) {
        Some(hint) => format!("{hint}; {leave}"),
        None => leave.to_owned(),
    };
    Err(LeadError::new(LeadErrorKind::Machine, text).with_hint(hint))
}

/// Agents that answer.
struct ReachableAgents {
    /// By name, those that were named, in this order.
    named: Vec<(String, Result<AgentClient, AgentClientError>)>,
    /// The agent of this machine.
    here: Result<AgentClient, AgentClientError>,
    /// The agents' numbers, by name.
    answers: BTreeMap<String, String>,
}

impl ReachableAgents {
    /// Asks all at the same time.
    fn new(names: &[String], key: &ClusterKey) -> Result<Self, LeadError> {
        let is_name = |name: &&String| ![ALL, SLURM].contains(&name.as_str());
        let mut seen = BTreeSet::new();
        let names: Vec<&String> =
            names.iter().filter(is_name).filter(|name| seen.insert(*name)).collect();
        let (named, here) = thread::scope(|scope| {
            let here = scope.spawn(|| AgentClient::connect(HERE, key));
            let asked = names.iter().map(|name| scope.spawn(|| AgentClient::connect(name, key)));
            // All are asked before the first answer is waited for.
            let asked: Vec<_> = asked.collect();
            let named =
                names.iter().zip(asked).map(|(name, asked)| ((*name).clone(), joined(asked)));
            (named.collect::<Vec<_>>(), joined(here))
        });
        let mut reached = ReachableAgents { named, here, answers: BTreeMap::new() };
        for (name, client) in &mut reached.named {
            match client {
                Ok(client) => {
                    let agent = agent_of(name, client)?.agent;
                    reached.answers.insert(name.clone(), agent);
                }
                Err(AgentClientError::NoHost { .. } | AgentClientError::NoAgent { .. }) => {}
                // An agent is there, so it is meant, and its error is the best explanation.
                Err(error) => {
                    let no_host =
                        AgentClientError::NoAgent { host: String::new(), why: String::new() };
                    return Err(std::mem::replace(error, no_host).into());
                }
            }
        }
        Ok(reached)
    }

    /// The first that was named and answers, or else the agent of this machine.
    fn any(&self) -> Option<&AgentClient> {
        let mut named = self.named.iter().filter_map(|(_, client)| client.as_ref().ok());
        named.next().or_else(|| self.here.as_ref().ok())
    }

    /// The same, where one is needed.
    fn any_or_error(&mut self) -> Result<&AgentClient, LeadError> {
        if self.any().is_none() {
            let nothing = AgentClientError::NoAgent { host: HERE.to_owned(), why: String::new() };
            let here = std::mem::replace(&mut self.here, Err(nothing));
            return Err(here.err().map_or_else(no_agent, not_here));
        }
        self.any().ok_or_else(no_agent)
    }

    /// The names at which no agent answers and that no agent knows; and whether an agent was
    /// known.
    fn missing(&mut self) -> Result<(Vec<MachineWithoutAgent>, bool), LeadError> {
        let hosts = self.any().map(|client| client.hosts(false)).transpose()?;
        let mut is_known = !self.answers.is_empty();
        let mut missing = Vec::new();
        for (name, client) in &self.named {
            let Err(error) = client else { continue };
            if let Some(hosts) = &hosts
                && (called(hosts, name)?.is_some() || listening(hosts, name)?.is_some())
            {
                is_known = true;
                continue;
            }
            let has_address = !matches!(error, AgentClientError::NoHost { .. });
            if !has_address && !is_plain(name) {
                return Err(match &hosts {
                    Some(hosts) => unknown(hosts, name),
                    None => no_address(name),
                });
            }
            let others = hosts.as_ref().map(all_names);
            missing.push(MachineWithoutAgent { name: name.clone(), has_address, others });
        }
        Ok((missing, is_known))
    }
}

/// A machine that has no agent.
#[derive(Debug)]
pub(crate) struct MachineWithoutAgent {
    pub(crate) name: String,
    /// Whether the name means something here; otherwise, ssh may know it.
    pub(crate) has_address: bool,
    /// The agents that are known, in words.
    pub(crate) others: Option<String>,
}

/// The card of an agent.
pub(crate) fn agent_of(name: &str, client: &AgentClient) -> Result<AgentDescription, LeadError> {
    client.ask(&AgentRequest::card()).map_err(|error| match error {
        AgentClientError::Unexpected { .. } => {
            let text = format!("the agent at {name} does not describe itself");
            LeadError::new(LeadErrorKind::Usage, text)
        }
        other => other.into(),
    })
}

/// Makes one cluster of all, and waits until they know each other and their clocks. `with_others`:
/// agents that were there belong to it.
fn unite(
    reached: &ReachableAgents,
    started: &LaunchedAgents,
    with_others: bool,
) -> Result<ClusterHosts, LeadError> {
    let known = reached.any().filter(|_| with_others);
    let anchor = known.or_else(|| started.agents.first().map(|agent| &agent.client));
    let anchor =
        anchor.ok_or_else(|| LeadError::new(LeadErrorKind::Internal, "no agent was started"))?;
    let at = agent_of("the first machine", anchor)?;
    for agent in started.agents.iter().filter(|agent| agent.card.agent != at.agent) {
        agent.client.ask(&AgentRequest::join(at.address))?;
    }
    let mut members: BTreeSet<&str> = reached.answers.values().map(String::as_str).collect();
    members.insert(&at.agent);
    members.extend(started.agents.iter().map(|agent| agent.card.agent.as_str()));
    let until = Instant::now() + PATIENCE;
    loop {
        let hosts = anchor.hosts(false)?;
        match stranger(&hosts, &members, started) {
            None => return Ok(hosts),
            Some(text) if Instant::now() > until => {
                return Err(LeadError::new(LeadErrorKind::Machine, text).with_hint(
                    "agents reach each other at the addresses that `windtunnel hosts` lists: open these UDP ports \
                     between the machines, or start agents there by hand with --advertise",
                ));
            }
            Some(_) => thread::sleep(PAUSE),
        }
    }
}

/// Which started agent another of these agents does not know well enough, in words.
fn stranger(
    hosts: &ClusterHosts,
    members: &BTreeSet<&str>,
    started: &LaunchedAgents,
) -> Option<String> {
    let card = |agent: &str| hosts.hosts.iter().find(|card| card.agent == agent);
    for agent in &started.agents {
        let name = format!("{} ({})", agent.name, agent.card.address);
        let Some(own) = card(&agent.card.agent) else {
            return Some(format!("the agent on {name} is not known to the others"));
        };
        for other in members.iter().filter(|other| **other != own.agent) {
            let Some(other) = card(other) else { continue };
            let clock = |of: &AgentDescription, to: &AgentDescription| {
                let mut peers = of.peers.iter();
                peers.any(|peer| peer.agent == to.agent && peer.clock.is_some())
            };
            if !clock(own, other) || !clock(other, own) {
                let other = format!("{} ({})", other.host, other.address);
                return Some(format!("the agents on {name} and {other} do not reach each other"));
            }
        }
    }
    None
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// What a machine may be called, so that its name can be given to ssh.
fn is_plain(name: &str) -> bool {
    let may = |c: char| c.is_alphanumeric() || "._-@".contains(c);
    !name.starts_with('-') && name.chars().all(may)
}

fn no_address(name: &str) -> LeadError {
    LeadError::new(LeadErrorKind::Usage, format!("no machine is called {name}"))
        .with_hint("write NAME, NAME:PORT or [IPv6]:PORT")
}

/// The error where no machine was named, and this machine's agent cannot be asked.
fn not_here(here: AgentClientError) -> LeadError {
    match here {
        here @ AgentClientError::NoAgent { .. } => LeadError::NoAgentHere(here),
        here => here.into(),
    }
}

fn no_agent() -> LeadError {
    LeadError::new(LeadErrorKind::Usage, "no agent")
}

/// Every machine of the cluster.
pub(crate) const ALL: &str = "all";
/// Every machine of the Slurm allocation.
pub(crate) const SLURM: &str = "slurm";
/// Where to ask if no machine was named, or none that was named answers.
const HERE: &str = "localhost";
/// How long agents have to find each other.
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests;
