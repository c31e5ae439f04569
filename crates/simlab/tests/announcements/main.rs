//! Machines know enough of each other's flows: from its own flows and those that were
//! announced to it, each machine finds for its own ones the rates of the weighted max-min
//! allocation of all flows.
//!
//! The networks, placements, flows, cuts and the conditions between the machines are random. The
//! audiences are the engine's, the announcements the mesh's, the shares those of `sharing`; the
//! allocation of all flows is found by [`reference`](reference::allocation), which shares nothing
//! with them.

mod network;
mod play;
mod reference;

use proptest::prelude::*;
use windtunnel_model::Span;

use network::{Network, network};
use play::{Play, Step, steps};
use windtunnel_simlab::LinkConditions;

fn conditions() -> impl Strategy<Value = LinkConditions> {
    let (delay, jitter) = (Span::from_micros(200), Span::from_micros(6000));
    let rough = LinkConditions { delay, jitter, loss: 10_000, twice: 50_000 };
    prop_oneof![
        2 => Just(LinkConditions::LAN),
        1 => Just(LinkConditions::LAN.losing(50_000)),
        1 => Just(rough),
    ]
}

fn played(network: Network, conditions: LinkConditions, rounds: &[Vec<Step>]) {
    let mut play = Play::new(network, conditions);
    for steps in rounds {
        steps.iter().for_each(|step| play.take(step));
        play.settle();
        play.check();
    }
}

/// From the machine where a flow begins to that of its destination, from there to the others that
/// have flows to it, and from them: three trips, and each may wait for a batch. Clocks differ by
/// 100 ppm from the world's.
const THREE_TRIPS: Span = Span::from_nanos(3 * (60_000 + 2_000_000) * 10_001 / 10_000);

fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_machine_gives_its_flows_their_rates_of_the_global_allocation(
        network in network(),
        conditions in conditions(),
        rounds in prop::collection::vec(steps(), 1..4),
    ) {
        played(network, conditions, &rounds);
    }

    #[test]
    fn machines_with_flows_on_a_shared_link_know_it_within_three_trips(
        network in network(),
        steps in steps(),
    ) {
        let mut play = Play::new(network, LinkConditions::LAN);
        for step in &steps {
            play.take(step);
            play.run_for(THREE_TRIPS);
            play.check_sharing();
        }
    }
}
