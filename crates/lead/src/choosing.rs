//! Which machines of a cluster names mean.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use windtunnel_cluster::client;
use windtunnel_cluster::protocol::{AgentDescription, ClusterHosts};

use crate::error::{LeadError, LeadErrorKind};
use crate::machines::{ALL, SLURM};

/// Positions of the machines that `names` mean. `answers` has the agent that answers at a name
/// which may be neither a machine's name nor its address, and `slurm` the agents of the Slurm
/// allocation.
pub(crate) fn choose(
    hosts: &ClusterHosts,
    names: &[String],
    answers: &BTreeMap<String, String>,
    slurm: &[String],
) -> Result<Vec<usize>, LeadError> {
    let at = |agent: &String| hosts.hosts.iter().position(|card| card.agent == *agent);
    let mut chosen = Vec::new();
    for name in names {
        if name == ALL {
            chosen.extend(0..hosts.hosts.len());
        } else if name == SLURM {
            chosen.extend(slurm.iter().filter_map(at));
        } else if let Some(at) = called(hosts, name)? {
            chosen.push(at);
        } else if let Some(at) = listening(hosts, name)? {
            chosen.push(at);
        } else if let Some(agent) = answers.get(name) {
            chosen.push(at(agent).ok_or_else(|| elsewhere(hosts, name))?);
        } else {
            return Err(unknown(hosts, name));
        }
    }
    Ok(chosen)
}

/// The machine of that name.
pub(crate) fn called(hosts: &ClusterHosts, name: &str) -> Result<Option<usize>, LeadError> {
    let cards = hosts.hosts.iter().enumerate();
    let called: Vec<(usize, &AgentDescription)> =
        cards.filter(|(_, card)| card.host == name).collect();
    match called[..] {
        [] => Ok(None),
        [(at, _)] => Ok(Some(at)),
        [..] => {
            let addresses: Vec<String> =
                called.iter().map(|(_, card)| card.address.to_string()).collect();
            let text = format!("{} agents are called {name}", called.len());
            let hint = format!("name them by their addresses: {}", addresses.join(", "));
            Err(LeadError::new(LeadErrorKind::Usage, text).with_hint(hint))
        }
    }
}

/// The machine whose agent listens on that address.
pub(crate) fn listening(hosts: &ClusterHosts, name: &str) -> Result<Option<usize>, LeadError> {
    let addresses = client::resolve(name).unwrap_or_default();
    let is_it =
        |address: SocketAddr| addresses.iter().any(|one| canonical(*one) == canonical(address));
    if let Some(silent) = hosts.silent.iter().find(|silent| is_it(silent.address)) {
        let text = format!("the agent at {} does not answer: {}", silent.address, silent.why);
        return Err(LeadError::new(LeadErrorKind::Usage, text));
    }
    Ok(hosts.hosts.iter().position(|card| is_it(card.address)))
}

pub(crate) fn unknown(hosts: &ClusterHosts, name: &str) -> LeadError {
    let text = format!("no agent of the cluster is called `{name}`, and it is not an address");
    LeadError::new(LeadErrorKind::Usage, text).with_hint(format!("there are {}", all_names(hosts)))
}

fn elsewhere(hosts: &ClusterHosts, name: &str) -> LeadError {
    let here =
        hosts.hosts.get(hosts.asked).map(|card| card.address.to_string()).unwrap_or_default();
    let text = format!("the agent at {name} and the one at {here} do not know each other");
    LeadError::new(LeadErrorKind::Usage, text)
        .with_hint(format!("start it with `windtunnel agent --join {here}`"))
}

/// The first of the machines that there are.
pub(crate) fn all_names(hosts: &ClusterHosts) -> String {
    let name = |card: &AgentDescription| format!("{} ({})", card.host, card.address);
    let names = hosts.hosts.iter().take(NAMES_LISTED).map(name);
    let more = hosts.hosts.len().saturating_sub(NAMES_LISTED);
    let more = (more > 0).then(|| format!("and {more} more"));
    names.chain(more).collect::<Vec<_>>().join(", ")
}

const NAMES_LISTED: usize = 12;

/// IPv4 as such, also where it is written as IPv6.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    use windtunnel_cluster::protocol::UnresponsiveAgent;

    use super::*;
    use crate::error::text;
    use crate::sample::card;

    fn hosts() -> ClusterHosts {
        let hosts = vec![card("a", 1), card("b", 2), card("box", 3), card("box", 4)];
        let silent = vec![UnresponsiveAgent {
            address: ([10, 0, 0, 9], 7447).into(),
            why: "it is tired".into(),
        }];
        ClusterHosts { asked: 1, hosts, silent, throughput: Vec::new() }
    }

    /// Positions, or the error. The agent at 10.1.1.3 is `box-3`, that at 10.1.1.8 is not in the
    /// cluster, and Slurm has started a and b.
    fn chosen(names: &str) -> Result<Vec<usize>, String> {
        let names: Vec<String> = names.split(',').map(str::to_owned).collect();
        let answers = [("10.1.1.3", "box-3"), ("10.1.1.8", "stranger"), ("alias", "b-2")];
        let answers = answers.map(|(name, agent)| (name.to_owned(), agent.to_owned()));
        let slurm = ["b-2".to_owned(), "a-1".to_owned()];
        choose(&hosts(), &names, &answers.into(), &slurm).map_err(|error| text(&error))
    }

    #[test]
    fn machines_are_known_by_name_by_address_and_by_the_agent_that_answers() {
        assert_eq!(chosen("b,a"), Ok(vec![1, 0]));
        assert_eq!(chosen("10.0.0.3,10.0.0.4:7447"), Ok(vec![2, 3]));
        assert_eq!(chosen("[::ffff:10.0.0.1]:7447"), Ok(vec![0]));
        assert_eq!(chosen("10.1.1.3"), Ok(vec![2]));
        assert_eq!(chosen("alias,slurm"), Ok(vec![1, 1, 0]));
        assert_eq!(chosen("all"), Ok(vec![0, 1, 2, 3]));
    }

    #[test]
    fn an_unknown_machine_is_reported_with_those_that_are_known() {
        let all = "a (10.0.0.1:7447), b (10.0.0.2:7447), box (10.0.0.3:7447), box (10.0.0.4:7447)";
        assert_eq!(
            chosen("a,not a host").unwrap_err(),
            format!(
                "error: no agent of the cluster is called `not a host`, and it is not an address\nhint: there are {all}"
            )
        );
        assert_eq!(
            chosen("box").unwrap_err(),
            "error: 2 agents are called box\nhint: name them by their addresses: 10.0.0.3:7447, 10.0.0.4:7447"
        );
        assert_eq!(
            chosen("10.0.0.9").unwrap_err(),
            "error: the agent at 10.0.0.9:7447 does not answer: it is tired"
        );
        assert_eq!(
            chosen("10.1.1.8").unwrap_err(),
            "error: the agent at 10.1.1.8 and the one at 10.0.0.2:7447 do not know each other\n\
             hint: start it with `windtunnel agent --join 10.0.0.2:7447`"
        );
    }

    #[test]
    fn of_many_machines_the_first_twelve_are_listed_with_the_number_of_the_others() {
        let hosts: Vec<AgentDescription> = (1..=15).map(|last| card("m", last)).collect();
        let mut hosts =
            ClusterHosts { asked: 0, hosts, silent: Vec::new(), throughput: Vec::new() };
        let listed = all_names(&hosts);
        assert!(listed.starts_with("m (10.0.0.1:7447), m (10.0.0.2:7447), "), "{listed}");
        assert!(listed.ends_with("m (10.0.0.12:7447), and 3 more"), "{listed}");
        hosts.hosts.truncate(12);
        assert!(all_names(&hosts).ends_with("m (10.0.0.12:7447)"));
    }

    #[test]
    fn a_machines_name_comes_before_an_address_and_an_address_before_an_answer() {
        let mut hosts = hosts();
        hosts.hosts[0].host = "10.0.0.2".to_owned();
        let choose = |name: &str, answers: &[(&str, &str)]| {
            let answers = answers.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
            choose(&hosts, &[name.to_owned()], &answers, &[]).unwrap()
        };
        assert_eq!(choose("10.0.0.2", &[("10.0.0.2", "b-2")]), [0]);
        assert_eq!(choose("10.0.0.3", &[("10.0.0.3", "b-2")]), [2]);
        // Another port is another agent.
        assert_eq!(choose("10.0.0.3:7448", &[("10.0.0.3:7448", "b-2")]), [1]);
        assert_eq!(choose("slurm", &[]), [0_usize; 0]);
    }
}
