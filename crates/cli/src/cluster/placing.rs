//! Which node of a plan goes on which machine of a cluster.

use std::collections::BTreeMap;

use windtunnel_cluster::protocol::Card;
use windtunnel_host::Concern;
use windtunnel_model::{Plan, Span};
use windtunnel_placement::{Host, Load, Placement, Reserved, Rtts, Traffic, place};

use crate::failure::Failure;
use crate::render::quantity;

/// Machines as placement sees them: one for each card that it was made of, in the same order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Site {
    pub(crate) hosts: Vec<Host>,
    pub(crate) rtts: Rtts,
}

impl Site {
    /// What agents tell of their machines and of the round trips between them.
    pub(crate) fn of(cards: &[Card]) -> Self {
        let mut known = BTreeMap::new();
        cards.iter().for_each(|card| *known.entry(card.host.as_str()).or_insert(0) += 1);
        let hosts = cards.iter().map(|card| host(card, known[card.host.as_str()] == 1)).collect();
        let mut rtts = Rtts::default();
        for (at, a) in cards.iter().enumerate() {
            for (to, b) in cards.iter().enumerate().skip(at + 1) {
                // Each measures for itself; what one sees beyond the other is waiting, not
                // distance.
                if let Some(rtt) = [rtt(a, b), rtt(b, a)].into_iter().flatten().min() {
                    rtts.set(at, to, Span::from_nanos(rtt));
                }
            }
        }
        Site { hosts, rtts }
    }
}

/// Puts every node of `plan` on one of the machines.
///
/// # Errors
/// [`Failure::Refused`] with every reason, if they cannot carry it.
pub(crate) fn placed(plan: &Plan, site: &Site) -> Result<Placement, Failure> {
    place(plan, &site.hosts, &site.rtts).map_err(|refused| Failure::Refused(Box::new(refused)))
}

/// What may go wrong although nothing was refused: machines that are busy with something else now,
/// and uplinks that nobody has told.
pub(crate) fn concerns(cards: &[Card], site: &Site, placement: &Placement) -> Vec<Concern> {
    let all = || cards.iter().zip(&site.hosts).zip(&placement.loads);
    let used = all().filter(|(_, load)| load.nodes > 0);
    let mut concerns: Vec<Concern> =
        used.flat_map(|((card, host), load)| busy(card, host, load)).collect();
    let crossed = |load: &Load| [load.up, load.down].iter().any(|way| *way != Traffic::Bounded(0));
    let silent = all().filter(|((_, host), load)| host.uplink.is_none() && crossed(load));
    let silent: Vec<&str> = silent.map(|((_, host), _)| host.name.as_str()).collect();
    if !silent.is_empty() {
        let names = silent.join(", ");
        concerns.push(Concern {
            text: format!(
                "what the uplink of {names} carries is not known: nothing is refused for it"
            ),
            hint: Some(
                "tell it where the agent is started: `windtunnel agent --uplink RATE`".into(),
            ),
        });
    }
    concerns
}

/// Machines of the same name are told apart by their addresses; the name means any of them then, as
/// a label.
fn host(card: &Card, is_only: bool) -> Host {
    let mut labels = card.labels.clone();
    let name = if is_only {
        card.host.clone()
    } else {
        labels.insert(card.host.clone());
        format!("{}@{}", card.host, card.address)
    };
    Host {
        labels,
        cpu_millis: card.cpu_millis_max.unwrap_or(u64::MAX).min(u64::from(card.cpus) * 1000),
        memory: card.memory,
        uplink: card.uplink,
        nodes_max: card.nodes_max,
        reserved: Reserved {
            cpu_millis: card.reserved.cpu_millis,
            memory: card.reserved.memory,
            uplink_up: card.reserved.up_bit_per_s,
            uplink_down: card.reserved.down_bit_per_s,
            nodes: card.reserved.nodes,
        },
        ..Host::new(name)
    }
}

fn rtt(from: &Card, to: &Card) -> Option<u64> {
    let peer = from.peers.iter().find(|peer| peer.agent == to.agent)?;
    Some(peer.clock?.rtt_ns)
}

/// What others use of a machine passes, so it is not refused.
fn busy(card: &Card, host: &Host, load: &Load) -> Vec<Concern> {
    let name = &host.name;
    let hint = || Some(format!("leave {name} out, or make room on it"));
    let mut concerns = Vec::new();
    if load.memory > card.memory_free {
        let (asked, free) = (quantity::bytes(load.memory.0), quantity::bytes(card.memory_free.0));
        let text = format!(
            "host {name} has {free} of memory free now, and its nodes are expected to use {asked}"
        );
        concerns.push(Concern { text, hint: hint() });
    }
    if card.load_hundredths.saturating_mul(10).saturating_add(load.cpu_millis) > host.cpu_millis {
        let (whole, rest) = (card.load_hundredths / 100, card.load_hundredths % 100);
        let cpus = quantity::count(usize::try_from(card.cpus).unwrap_or(usize::MAX), "processor");
        let asked = quantity::processors(load.cpu_millis);
        let mut text = format!("host {name} has {cpus} and a load of {whole}.{rest:02} now");
        if load.cpu_millis > 0 {
            text.push_str(&format!(", and its nodes are expected to use {asked} more"));
        }
        concerns.push(Concern { text, hint: hint() });
    }
    concerns
}

#[cfg(test)]
mod tests {
    use windtunnel_model::Bytes;

    use super::*;
    use crate::cluster::sample::{card, knows, plan};

    #[test]
    fn a_card_becomes_a_machine_with_what_its_owner_gives() {
        let mut it = card("a", 1);
        (it.uplink, it.cpus) = ("10gbit".parse().ok(), 6);
        let site = Site::of(&[it]);
        let host = &site.hosts[0];
        assert_eq!((host.name.as_str(), host.cpu_millis), ("a", 6000));
        assert_eq!((host.memory, host.uplink), (Bytes(16_000_000_000), "10gbit".parse().ok()));
        assert!(host.answers_to("ssd"));
    }

    #[test]
    fn two_machines_are_as_far_apart_as_the_lesser_of_what_both_measured() {
        let mut cards = [card("a", 1), card("b", 2), card("c", 3)];
        knows(&mut cards, 0, 1, 900_000);
        knows(&mut cards, 1, 0, 700_000);
        knows(&mut cards, 2, 0, 5_000_000);
        let rtts = Site::of(&cards).rtts;
        assert_eq!(rtts.between(0, 1), Some(Span::from_micros(700)));
        assert_eq!(rtts.between(0, 2), Some(Span::from_millis(5)));
        assert_eq!(rtts.between(1, 2), None);
    }

    #[test]
    fn machines_of_one_name_are_told_apart_and_a_pin_to_it_means_either() {
        let site = Site::of(&[card("box", 1), card("box", 2), card("c", 3)]);
        let names: Vec<&str> = site.hosts.iter().map(|host| host.name.as_str()).collect();
        assert_eq!(names, ["box@10.0.0.1:7447", "box@10.0.0.2:7447", "c"]);
        let placed = placed(&plan("nodes: {a: {pin: box, count: 2}}\n"), &site).unwrap();
        assert_eq!(placed.loads[2].nodes, 0);
    }

    #[test]
    fn a_machine_that_is_busy_now_is_a_concern_and_one_without_nodes_is_none() {
        let plan = plan("nodes: {a: {pin: a, cpu: 2, memory: 13GB}}\n");
        let mut cards = [card("a", 1), card("b", 2)];
        cards.iter_mut().for_each(|card| card.load_hundredths = 605);
        let site = Site::of(&cards);
        let placed = placed(&plan, &site).unwrap();
        let told: Vec<String> =
            concerns(&cards, &site, &placed).into_iter().map(|concern| concern.text).collect();
        assert_eq!(
            told,
            [
                "host a has 12GB of memory free now, and its nodes are expected to use 13GB",
                "host a has 8 processors and a load of 6.05 now, and its nodes are expected to use 2 more",
            ]
        );
    }

    #[test]
    fn uplinks_that_nobody_told_are_a_concern_where_something_crosses_them() {
        let plan = plan(
            "placement: spread\nnodes: {a: {}, b: {}}\nlinks: [{between: [a, b], rate: 1mbit, latency: 1s}]\n",
        );
        let mut cards = [card("a", 1), card("b", 2)];
        knows(&mut cards, 0, 1, 1000);
        cards[0].uplink = "1gbit".parse().ok();
        let site = Site::of(&cards);
        let told = concerns(&cards, &site, &placed(&plan, &site).unwrap());
        let text = "what the uplink of b carries is not known: nothing is refused for it";
        assert_eq!(told.iter().map(|concern| concern.text.as_str()).collect::<Vec<_>>(), [text]);
        let alone = Site::of(&cards[1..]);
        assert_eq!(concerns(&cards[1..], &alone, &placed(&plan, &alone).unwrap()), []);
    }

    #[test]
    fn what_cannot_be_carried_is_a_failure_of_the_scenario() {
        let failure =
            placed(&plan("nodes: {a: {pin: z}}\n"), &Site::of(&[card("a", 1)])).unwrap_err();
        assert!(matches!(failure, Failure::Refused(_)));
        assert_eq!(
            failure.text(),
            "error: node a is pinned to `z`, which is no name or label of a machine\nhint: the machines are a"
        );
    }
}
