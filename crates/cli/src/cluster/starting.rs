//! Agents that a command starts for itself, where none answers: over ssh, or in a Slurm allocation.
//! The agents get the key through standard input, and end when that closes.

mod lines;
mod session;
mod slurm;
mod ssh;

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use windtunnel_cluster::protocol::Card;
use windtunnel_cluster::{Client, ClusterKey};

use super::machines::{Missing, agent_of};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use session::Sessions;

/// Agents that were started for this command; they end when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Started {
    pub(super) agents: Vec<StartedAgent>,
    /// After the agents: connections close first.
    _sessions: Sessions,
}

/// One of them.
#[derive(Debug)]
pub(super) struct StartedAgent {
    /// What its machine was called.
    pub(super) name: String,
    by: By,
    pub(super) client: Client,
    pub(super) card: Card,
}

/// How an agent was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum By {
    Ssh,
    Slurm,
}

/// What is needed to start agents.
pub(super) struct Starter<'a> {
    pub(super) ssh: &'a Words,
    pub(super) remote: Option<&'a Words>,
    pub(super) key: &'a ClusterKey,
}

/// A command's words, as a shell would have them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Words {
    text: String,
    words: Vec<String>,
}

impl Started {
    /// Says what was started, and for how long.
    pub(crate) fn tell(&self) {
        for agent in &self.agents {
            let by = if agent.by == By::Ssh { "over ssh" } else { "by Slurm" };
            let address = agent.card.address;
            output::talk(&format!(
                "agent on {}: started {by}, at {address}, until this command ends",
                agent.name
            ));
        }
    }

    /// The agents do not outlast this command, so nothing else may.
    pub(crate) fn refuse_to_detach(&self) -> Result<(), Failure> {
        let Some(first) = self.agents.first() else { return Ok(()) };
        let text = format!(
            "--detach: the run would end with this command, because the agent on {} was started by it",
            first.name
        );
        let hint =
            "start agents that stay with `windtunnel agent` on each machine, or leave --detach out";
        Err(Failure::new(Exit::Usage, text).hint(hint))
    }

    /// Numbers of the agents that were started over ssh, by what their machines were called.
    pub(super) fn answers(&self) -> impl Iterator<Item = (String, String)> {
        let by_ssh = self.agents.iter().filter(|agent| agent.by == By::Ssh);
        by_ssh.map(|agent| (agent.name.clone(), agent.card.agent.clone()))
    }

    /// Numbers of the agents in the Slurm allocation.
    pub(super) fn of_slurm(&self) -> Vec<String> {
        let by_slurm = self.agents.iter().filter(|agent| agent.by == By::Slurm);
        by_slurm.map(|agent| agent.card.agent.clone()).collect()
    }
}

impl Starter<'_> {
    /// Starts an agent on each of these machines, and on each of the allocation.
    pub(super) fn start(&self, missing: &[Missing], slurm: bool) -> Result<Started, Failure> {
        let mut plans = Vec::new();
        for machine in missing {
            plans.push(ssh::plan(self.ssh, self.remote, machine)?);
        }
        if slurm {
            plans.push(slurm::plan(self.remote)?);
        }
        let (sessions, told) = Sessions::open(&plans, self.key);
        let mut agents = Vec::new();
        for (at, told) in told.into_iter().enumerate() {
            let machine = missing.get(at);
            match (told, machine) {
                (Ok(addresses), Some(machine)) => {
                    for address in addresses {
                        agents.push(self.agent(
                            &machine.name,
                            By::Ssh,
                            Some(&machine.name),
                            address,
                        )?);
                    }
                }
                (Ok(addresses), None) => {
                    for address in addresses {
                        agents.push(self.agent(slurm::JOB, By::Slurm, None, address)?);
                    }
                }
                (Err(why), Some(machine)) => match ssh::is_there_now(&why) {
                    // Somebody else has started it in the meantime.
                    true => agents.push(self.somebodys(&machine.name)?),
                    false => return Err(ssh::failed(self.ssh, machine, &why)),
                },
                (Err(why), None) => return Err(slurm::failed(&why)),
            }
        }
        // Slurm's come in whichever order they are ready.
        agents.sort_by(|a, b| (a.by, by_name(a)).cmp(&(b.by, by_name(b))));
        Ok(Started { agents, _sessions: sessions })
    }

    /// The agent at an address that it told itself, or at its machine's name.
    fn agent(
        &self,
        name: &str,
        by: By,
        instead: Option<&str>,
        address: SocketAddr,
    ) -> Result<StartedAgent, Failure> {
        let client = Client::connect(&address.to_string(), self.key);
        let client = client.or_else(|error| match instead {
            Some(instead) => Client::connect(instead, self.key).map_err(|_| error),
            None => Err(error),
        });
        let client = client.map_err(|error| {
            let hint = format!("UDP {address} has to be reached from here: see firewalls between");
            let text = format!("an agent was started on {name}, but {error}");
            Failure::new(Exit::Machine, text).hint(error.hint().map_or(hint.clone(), |told| {
                if matches!(error, windtunnel_cluster::ClientError::NoAgent { .. }) {
                    hint
                } else {
                    told
                }
            }))
        })?;
        let card = agent_of(name, &client)?;
        let name = if by == By::Slurm { card.host.clone() } else { name.to_owned() };
        Ok(StartedAgent { name, by, client, card })
    }

    fn somebodys(&self, name: &str) -> Result<StartedAgent, Failure> {
        let client = Client::connect(name, self.key)?;
        let card = agent_of(name, &client)?;
        Ok(StartedAgent { name: name.to_owned(), by: By::Ssh, client, card })
    }
}

/// Only Slurm's are sorted.
fn by_name(agent: &StartedAgent) -> Option<&str> {
    (agent.by == By::Slurm).then_some(agent.name.as_str())
}

impl FromStr for Words {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match shell_words::split(text) {
            Ok(words) if words.is_empty() => Err("a command has at least one word".to_owned()),
            Ok(words) => Ok(Words { text: text.to_owned(), words }),
            Err(_) => Err("a quotation mark has no end".to_owned()),
        }
    }
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_read_as_a_shell_reads_it() {
        let words: Words = "ssh -o 'ProxyCommand nc %h %p' -p 2222".parse().unwrap();
        assert_eq!(words.words, ["ssh", "-o", "ProxyCommand nc %h %p", "-p", "2222"]);
        assert!("".parse::<Words>().is_err());
        assert!("ssh 'x".parse::<Words>().is_err());
    }
}
