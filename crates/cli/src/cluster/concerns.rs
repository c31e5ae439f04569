//! Warnings about a run over machines that was not refused.

use windtunnel_cluster::protocol::AgentDescription;
use windtunnel_host::PlanFitConcern;
use windtunnel_lead::PlacementHostSet;
use windtunnel_placement::{NodePlacement, PlacedRunLoad, PlacementHost, UplinkTrafficBound};

use crate::render::quantity;

/// Machines that are busy with other work now, and uplinks of unknown rate.
pub(crate) fn concerns(
    cards: &[AgentDescription],
    site: &PlacementHostSet,
    placement: &NodePlacement,
) -> Vec<PlanFitConcern> {
    let all = || cards.iter().zip(&site.hosts).zip(&placement.loads);
    let used = all().filter(|(_, load)| load.nodes > 0);
    let mut concerns: Vec<PlanFitConcern> =
        used.flat_map(|((card, host), load)| busy(card, host, load)).collect();
    let crossed = |load: &PlacedRunLoad| {
        [load.up, load.down].iter().any(|way| *way != UplinkTrafficBound::Bounded(0))
    };
    let unknown = all().filter(|((_, host), load)| host.uplink.is_none() && crossed(load));
    let unknown: Vec<&str> = unknown.map(|((_, host), _)| host.name.as_str()).collect();
    if !unknown.is_empty() {
        let names = unknown.join(", ");
        concerns.push(PlanFitConcern {
            text: format!(
                "what the uplink of {names} carries is not known: nothing is refused for it"
            ),
            hint: Some(
                "set it where the agent is started: `windtunnel agent --uplink RATE`".into(),
            ),
        });
    }
    concerns
}

/// Load from other work is temporary, so the run is not refused.
fn busy(
    card: &AgentDescription,
    host: &PlacementHost,
    load: &PlacedRunLoad,
) -> Vec<PlanFitConcern> {
    let name = &host.name;
    let hint = || Some(format!("leave {name} out, or make room on it"));
    let mut concerns = Vec::new();
    if load.memory > card.memory_free {
        let (asked, free) = (quantity::bytes(load.memory.0), quantity::bytes(card.memory_free.0));
        let text = format!(
            "host {name} has {free} of memory free now, and its nodes are expected to use {asked}"
        );
        concerns.push(PlanFitConcern { text, hint: hint() });
    }
    if card.load_hundredths.saturating_mul(10).saturating_add(load.cpu_millis) > host.cpu_millis {
        let (whole, rest) = (card.load_hundredths / 100, card.load_hundredths % 100);
        let cpus = quantity::count(usize::try_from(card.cpus).unwrap_or(usize::MAX), "processor");
        let asked = quantity::processors(load.cpu_millis);
        let mut text = format!("host {name} has {cpus} and a load of {whole}.{rest:02} now");
        if load.cpu_millis > 0 {
            text.push_str(&format!(", and its nodes are expected to use {asked} more"));
        }
        concerns.push(PlanFitConcern { text, hint: hint() });
    }
    concerns
}

#[cfg(test)]
mod tests {
    use windtunnel_lead::sample::{card, knows, plan};

    use super::*;

    #[test]
    fn a_machine_that_is_busy_now_is_a_concern_and_one_without_nodes_is_none() {
        let plan = plan("nodes: {a: {pin: a, cpu: 2, memory: 13GB}}\n");
        let mut cards = [card("a", 1), card("b", 2)];
        cards.iter_mut().for_each(|card| card.load_hundredths = 605);
        let site = PlacementHostSet::of(&cards);
        let placed = site.place(&plan).unwrap();
        let texts: Vec<String> =
            concerns(&cards, &site, &placed).into_iter().map(|concern| concern.text).collect();
        assert_eq!(
            texts,
            [
                "host a has 12GB of memory free now, and its nodes are expected to use 13GB",
                "host a has 8 processors and a load of 6.05 now, and its nodes are expected to use 2 more",
            ]
        );
    }

    #[test]
    fn uplinks_of_unknown_rate_are_a_concern_where_traffic_crosses_them() {
        let plan = plan(
            "placement: spread\nnodes: {a: {}, b: {}}\nlinks: [{between: [a, b], rate: 1mbit, latency: 1s}]\n",
        );
        let mut cards = [card("a", 1), card("b", 2)];
        knows(&mut cards, 0, 1, 1000);
        cards[0].uplink = "1gbit".parse().ok();
        let site = PlacementHostSet::of(&cards);
        let found = concerns(&cards, &site, &site.place(&plan).unwrap());
        let text = "what the uplink of b carries is not known: nothing is refused for it";
        assert_eq!(found.iter().map(|concern| concern.text.as_str()).collect::<Vec<_>>(), [text]);
        let alone = PlacementHostSet::of(&cards[1..]);
        assert_eq!(concerns(&cards[1..], &alone, &alone.place(&plan).unwrap()), []);
    }
}
