//! Agents that are started for one run, where none answers: over ssh, or in a Slurm allocation. The
//! agents get the key through standard input, and end when that closes.

mod lines;
mod session;
mod slurm;
mod ssh;

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;

use windtunnel_cluster::protocol::AgentDescription;
use windtunnel_cluster::{AgentClient, AgentClientError, ClusterKey};
use windtunnel_model::Span;

use crate::error::{LeadError, LeadErrorKind};
use crate::machines::{MachineWithoutAgent, agent_of};
use crate::progress::ClusterRunObserver;
use session::Sessions;

/// Agents that were started for this run; they end when this is dropped.
#[derive(Default)]
pub struct LaunchedAgents {
    pub(crate) agents: Vec<StartedAgent>,
    /// After the agents: connections close first.
    _sessions: Sessions,
}

/// One of them.
#[derive(Debug)]
pub struct StartedAgent {
    /// What its machine was called.
    pub name: String,
    pub by: AgentLaunchMethod,
    pub(crate) client: AgentClient,
    pub(crate) card: AgentDescription,
}

/// How an agent was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AgentLaunchMethod {
    Ssh,
    Slurm,
}

/// What is needed to start agents.
pub(crate) struct AgentLaunchSettings<'a> {
    pub(crate) ssh: &'a ShellCommandWords,
    pub(crate) remote: Option<&'a ShellCommandWords>,
    pub(crate) clock_offsets: Option<Span>,
    pub(crate) key: &'a ClusterKey,
    pub(crate) progress: &'a Arc<dyn ClusterRunObserver>,
}

/// A command's words, as a shell would have them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellCommandWords {
    text: String,
    words: Vec<String>,
}

impl LaunchedAgents {
    /// In the order in which their machines were named; those of Slurm last.
    #[must_use]
    pub fn agents(&self) -> &[StartedAgent] {
        &self.agents
    }

    /// Numbers of the agents that were started over ssh, by what their machines were called.
    pub(crate) fn answers(&self) -> impl Iterator<Item = (String, String)> {
        let by_ssh = self.agents.iter().filter(|agent| agent.by == AgentLaunchMethod::Ssh);
        by_ssh.map(|agent| (agent.name.clone(), agent.card.agent.clone()))
    }

    /// Numbers of the agents in the Slurm allocation.
    pub(crate) fn of_slurm(&self) -> Vec<String> {
        let by_slurm = self.agents.iter().filter(|agent| agent.by == AgentLaunchMethod::Slurm);
        by_slurm.map(|agent| agent.card.agent.clone()).collect()
    }
}

/// Words for an agent's command line, of what the user knows of the machines' clocks.
fn words_of_offsets(clock_offsets: Option<Span>) -> Vec<String> {
    let words = |span: Span| ["--clock-offsets".to_owned(), format!("{}ns", span.as_nanos())];
    clock_offsets.into_iter().flat_map(words).collect()
}

impl StartedAgent {
    /// Where others reach it.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.card.address
    }
}

impl AgentLaunchSettings<'_> {
    /// Starts an agent on each of these machines, and on each of the allocation.
    pub(crate) fn start(
        &self,
        missing: &[MachineWithoutAgent],
        slurm: bool,
    ) -> Result<LaunchedAgents, LeadError> {
        let mut plans = Vec::new();
        for machine in missing {
            plans.push(ssh::plan(self.ssh, self.remote, self.clock_offsets, machine)?);
        }
        if slurm {
            plans.push(slurm::plan(self.remote, self.clock_offsets)?);
        }
        let (sessions, opened) = Sessions::open(&plans, self.key, self.progress);
        let mut agents = Vec::new();
        for (at, addresses) in opened.into_iter().enumerate() {
            let machine = missing.get(at);
            match (addresses, machine) {
                (Ok(addresses), Some(machine)) => {
                    for address in addresses {
                        agents.push(self.agent(
                            &machine.name,
                            AgentLaunchMethod::Ssh,
                            Some(&machine.name),
                            address,
                        )?);
                    }
                }
                (Ok(addresses), None) => {
                    for address in addresses {
                        agents.push(self.agent(
                            slurm::JOB,
                            AgentLaunchMethod::Slurm,
                            None,
                            address,
                        )?);
                    }
                }
                (Err(why), Some(machine)) => match ssh::is_there_now(&why) {
                    // Another process has started it in the meantime.
                    true => agents.push(self.started_elsewhere(&machine.name)?),
                    false => return Err(ssh::failed(self.ssh, machine, &why)),
                },
                (Err(why), None) => return Err(slurm::failed(&why)),
            }
        }
        // Slurm's come in whichever order they are ready.
        agents.sort_by(|a, b| (a.by, by_name(a)).cmp(&(b.by, by_name(b))));
        Ok(LaunchedAgents { agents, _sessions: sessions })
    }

    /// The agent at the address that it announced, or at its machine's name.
    fn agent(
        &self,
        name: &str,
        by: AgentLaunchMethod,
        instead: Option<&str>,
        address: SocketAddr,
    ) -> Result<StartedAgent, LeadError> {
        let client = AgentClient::connect(&address.to_string(), self.key);
        let client = client.or_else(|error| match instead {
            Some(instead) => AgentClient::connect(instead, self.key).map_err(|_| error),
            None => Err(error),
        });
        let client = client.map_err(|error| {
            let open = format!("UDP {address} has to be reached from here: see firewalls between");
            let hint = match &error {
                AgentClientError::NoAgent { .. } => open,
                other => other.hint().unwrap_or(open),
            };
            let text = format!("an agent was started on {name}, but {error}");
            LeadError::new(LeadErrorKind::Machine, text).with_hint(hint)
        })?;
        let card = agent_of(name, &client)?;
        let name = if by == AgentLaunchMethod::Slurm { card.host.clone() } else { name.to_owned() };
        Ok(StartedAgent { name, by, client, card })
    }

    fn started_elsewhere(&self, name: &str) -> Result<StartedAgent, LeadError> {
        let client = AgentClient::connect(name, self.key).map_err(|error| match error {
            AgentClientError::NoAgent { .. } => {
                let text = format!("no agent answers at {name}, and its UDP port is in use there");
                LeadError::new(LeadErrorKind::Usage, text).with_hint(
                    "where an agent runs there, let its UDP port through firewalls; else name another port: HOST:PORT",
                )
            }
            other => other.into(),
        })?;
        let card = agent_of(name, &client)?;
        Ok(StartedAgent { name: name.to_owned(), by: AgentLaunchMethod::Ssh, client, card })
    }
}

/// Only Slurm's are sorted.
fn by_name(agent: &StartedAgent) -> Option<&str> {
    (agent.by == AgentLaunchMethod::Slurm).then_some(agent.name.as_str())
}

impl FromStr for ShellCommandWords {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match shell_words::split(text) {
            Ok(words) if words.is_empty() => Err("a command has at least one word".to_owned()),
            Ok(words) => Ok(ShellCommandWords { text: text.to_owned(), words }),
            Err(_) => Err("a quotation mark has no end".to_owned()),
        }
    }
}

impl fmt::Display for ShellCommandWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_read_as_a_shell_reads_it() {
        let words: ShellCommandWords = "ssh -o 'ProxyCommand nc %h %p' -p 2222".parse().unwrap();
        assert_eq!(words.words, ["ssh", "-o", "ProxyCommand nc %h %p", "-p", "2222"]);
        assert!("".parse::<ShellCommandWords>().is_err());
        assert!("ssh 'x".parse::<ShellCommandWords>().is_err());
    }
}
