//! `--hosts`: which machines of a cluster.

use std::net::SocketAddr;

use clap::builder::NonEmptyStringValueParser;
use windtunnel_cluster::protocol::{Answer, Ask, Card, Hosts, Silent};
use windtunnel_cluster::{Client, ClientError, ClusterKey, client};

use super::Key;
use crate::exit::Exit;
use crate::failure::Failure;

/// Machines of a cluster, and its key.
#[derive(Debug, clap::Args)]
pub(crate) struct Machines {
    /// Machines of a cluster, with commas: agents' names or addresses, or `all`
    #[arg(
        long,
        value_name = "HOST",
        env = "WINDTUNNEL_HOSTS",
        value_delimiter = ',',
        value_parser = NonEmptyStringValueParser::new()
    )]
    hosts: Vec<String>,
    #[command(flatten)]
    key: Key,
}

/// Machines that were found.
#[derive(Debug)]
pub(crate) struct Found {
    /// Each once, by name and address, in whichever order they were named.
    pub(crate) cards: Vec<Card>,
    /// With `all`: agents that are there and did not answer.
    pub(crate) silent: Vec<Silent>,
}

impl Machines {
    /// Whether any were named.
    pub(crate) fn are_named(&self) -> bool {
        !self.hosts.is_empty()
    }

    /// The key.
    pub(crate) fn key(&self) -> Result<ClusterKey, Failure> {
        self.key.read()
    }

    /// Asks an agent for all, and picks those that were named: the first named that answers, or else the one of
    /// this machine.
    pub(crate) fn find(&self) -> Result<Found, Failure> {
        let key = self.key.read()?;
        let mut known = Known { key, unreached: Vec::new() };
        let asked = known.first_of(&self.hosts)?;
        let hosts = asked.client.hosts(false)?;
        let chosen = choose(&hosts, &self.hosts, asked.name, |name| known.agent_at(name))?;
        let is_all = self.hosts.iter().any(|name| name == ALL);
        let silent = if is_all { hosts.silent } else { Vec::new() };
        let cards = hosts.hosts.into_iter().enumerate();
        let cards = cards.filter(|(at, _)| chosen.contains(at)).map(|(_, card)| card).collect();
        Ok(Found { cards, silent })
    }
}

/// An agent that answers.
struct Asked<'a> {
    client: Client,
    /// What it was called, if it was named.
    name: Option<&'a str>,
}

/// The key, and who did not answer to it.
struct Known {
    key: ClusterKey,
    unreached: Vec<(String, ClientError)>,
}

impl Known {
    fn first_of<'a>(&mut self, names: &'a [String]) -> Result<Asked<'a>, Failure> {
        for name in names.iter().filter(|name| *name != ALL) {
            match Client::connect(name, &self.key) {
                Ok(client) => return Ok(Asked { client, name: Some(name) }),
                // Somebody is there, so it is meant, and nobody else can say better why it does not do.
                Err(error @ (ClientError::OtherKey { .. } | ClientError::OtherVersion { .. })) => {
                    return Err(error.into());
                }
                Err(error) => self.unreached.push((name.clone(), error)),
            }
        }
        match Client::connect(HERE, &self.key) {
            Ok(client) => Ok(Asked { client, name: None }),
            Err(here) => {
                let first = self.unreached.drain(..).next();
                Err(nobody(first.map(|(_, error)| error), here))
            }
        }
    }

    /// The number of the agent that answers to a name; `None` if there is no such address.
    fn agent_at(&mut self, name: &str) -> Result<Option<String>, Failure> {
        let tried = self.unreached.iter().position(|(tried, _)| tried == name);
        let reached = match tried {
            Some(at) => Err(self.unreached.remove(at).1),
            None => Client::connect(name, &self.key),
        };
        match reached.and_then(|client| client.ask(&Ask::Card)) {
            Ok(Answer::Card(card)) => Ok(Some(card.agent)),
            Ok(_) => Err(Failure::new(
                Exit::Usage,
                format!("the agent at {name} tells nothing of itself"),
            )),
            Err(ClientError::NoHost { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Positions of the machines that `names` mean. `asked` is what the agent was called that told of all; `agent_at`
/// tells who answers to a name that is neither a machine's name nor its address.
fn choose(
    hosts: &Hosts,
    names: &[String],
    asked: Option<&str>,
    mut agent_at: impl FnMut(&str) -> Result<Option<String>, Failure>,
) -> Result<Vec<usize>, Failure> {
    let mut chosen = Vec::new();
    for name in names {
        if name == ALL {
            chosen.extend(0..hosts.hosts.len());
        } else if let Some(at) = called(hosts, name)? {
            chosen.push(at);
        } else if asked == Some(name.as_str()) {
            chosen.push(hosts.asked);
        } else if let Some(at) = hearing(hosts, name)? {
            chosen.push(at);
        } else {
            let agent = agent_at(name)?.ok_or_else(|| unknown(hosts, name))?;
            let at = hosts.hosts.iter().position(|card| card.agent == agent);
            chosen.push(at.ok_or_else(|| elsewhere(hosts, name))?);
        }
    }
    Ok(chosen)
}

/// The machine of that name.
fn called(hosts: &Hosts, name: &str) -> Result<Option<usize>, Failure> {
    let cards = hosts.hosts.iter().enumerate();
    let called: Vec<(usize, &Card)> = cards.filter(|(_, card)| card.host == name).collect();
    match called[..] {
        [] => Ok(None),
        [(at, _)] => Ok(Some(at)),
        [..] => {
            let addresses: Vec<String> =
                called.iter().map(|(_, card)| card.address.to_string()).collect();
            let text = format!("{} agents are called {name}", called.len());
            let hint = format!("name them by their addresses: {}", addresses.join(", "));
            Err(Failure::new(Exit::Usage, text).hint(hint))
        }
    }
}

/// The machine whose agent hears at that address.
fn hearing(hosts: &Hosts, name: &str) -> Result<Option<usize>, Failure> {
    let addresses = client::resolve(name).unwrap_or_default();
    let is_it =
        |address: SocketAddr| addresses.iter().any(|one| canonical(*one) == canonical(address));
    if let Some(silent) = hosts.silent.iter().find(|silent| is_it(silent.address)) {
        let text = format!("the agent at {} does not answer: {}", silent.address, silent.why);
        return Err(Failure::new(Exit::Usage, text));
    }
    Ok(hosts.hosts.iter().position(|card| is_it(card.address)))
}

fn unknown(hosts: &Hosts, name: &str) -> Failure {
    let text = format!("no agent of the cluster is called `{name}`, and it is no address");
    Failure::new(Exit::Usage, text).hint(format!("there are {}", all_names(hosts)))
}

fn elsewhere(hosts: &Hosts, name: &str) -> Failure {
    let here =
        hosts.hosts.get(hosts.asked).map(|card| card.address.to_string()).unwrap_or_default();
    let text = format!("the agent at {name} and the one at {here} do not know each other");
    Failure::new(Exit::Usage, text).hint(format!("start it with `windtunnel agent --join {here}`"))
}

/// What to say if neither the `first` that was named answers nor the agent `here`.
fn nobody(first: Option<ClientError>, here: ClientError) -> Failure {
    match (first, here) {
        (None, here @ ClientError::NoAgent { .. }) => Failure::from(here)
            .hint("start one here with `windtunnel agent`, or name one that knows all: --hosts HOST,all"),
        (Some(first @ ClientError::NoHost { .. }), ClientError::NoAgent { .. }) => Failure::from(first)
            .hint(
                "names of agents are known where an agent is: start one on this machine, or name the address \
                 of one",
            ),
        (None | Some(ClientError::NoHost { .. }), here) => here.into(),
        (Some(first), _) => first.into(),
    }
}

fn all_names(hosts: &Hosts) -> String {
    let name = |card: &Card| format!("{} ({})", card.host, card.address);
    hosts.hosts.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// IPv4 as such, also where it is written as IPv6.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Every machine of the cluster.
const ALL: &str = "all";
/// Where to ask if nobody was named, or nobody who was named answers.
const HERE: &str = "localhost";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::sample::card;

    fn hosts() -> Hosts {
        let hosts = vec![card("a", 1), card("b", 2), card("box", 3), card("box", 4)];
        let silent =
            vec![Silent { address: ([10, 0, 0, 9], 7447).into(), why: "it is tired".into() }];
        Hosts { asked: 1, hosts, silent, throughput: Vec::new() }
    }

    /// Positions, or what is said instead; nobody else answers but who is at 10.1.1.3 (`box-3`) and 10.1.1.8.
    fn chosen(names: &str, asked: Option<&str>) -> Result<Vec<usize>, String> {
        let names: Vec<String> = names.split(',').map(str::to_owned).collect();
        let agent_at = |name: &str| {
            Ok(match name {
                "10.1.1.3" => Some("box-3".to_owned()),
                "10.1.1.8" => Some("stranger".to_owned()),
                _ => None,
            })
        };
        choose(&hosts(), &names, asked, agent_at).map_err(|failure| failure.text())
    }

    #[test]
    fn machines_are_known_by_name_by_address_and_by_who_answers() {
        assert_eq!(chosen("b,a", None), Ok(vec![1, 0]));
        assert_eq!(chosen("10.0.0.3,10.0.0.4:7447", None), Ok(vec![2, 3]));
        assert_eq!(chosen("[::ffff:10.0.0.1]:7447", None), Ok(vec![0]));
        assert_eq!(chosen("10.1.1.3", None), Ok(vec![2]));
        assert_eq!(chosen("192.0.2.1:9", Some("192.0.2.1:9")), Ok(vec![1]));
        assert_eq!(chosen("all", None), Ok(vec![0, 1, 2, 3]));
    }

    #[test]
    fn who_is_not_there_is_told_with_who_is() {
        let all = "a (10.0.0.1:7447), b (10.0.0.2:7447), box (10.0.0.3:7447), box (10.0.0.4:7447)";
        assert_eq!(
            chosen("a,not a host", None).unwrap_err(),
            format!(
                "error: no agent of the cluster is called `not a host`, and it is no address\nhint: there are {all}"
            )
        );
        assert_eq!(
            chosen("box", None).unwrap_err(),
            "error: 2 agents are called box\nhint: name them by their addresses: 10.0.0.3:7447, 10.0.0.4:7447"
        );
        assert_eq!(
            chosen("10.0.0.9", None).unwrap_err(),
            "error: the agent at 10.0.0.9:7447 does not answer: it is tired"
        );
        assert_eq!(
            chosen("10.1.1.8", None).unwrap_err(),
            "error: the agent at 10.1.1.8 and the one at 10.0.0.2:7447 do not know each other\n\
             hint: start it with `windtunnel agent --join 10.0.0.2:7447`"
        );
    }
}
