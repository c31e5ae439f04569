//! Laws of shares over random networks, and the table against a solver in exact fractions.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod network;
mod reference;

use std::collections::BTreeMap;

use network::{Call, Path, calls, network};
use proptest::prelude::*;
use windtunnel_model::Rate;
use windtunnel_sharing::{
    EqualFlowSharing, FlowId, MaxMinShares, RttAware, ShareConstraint, SharingModel,
    SharingModelKind,
};

/// All shares of a table, by flow.
fn all<M: SharingModel>(shares: &MaxMinShares<M>) -> BTreeMap<FlowId, Option<Rate>> {
    shares.flows().map(|id| (id, shares.share(id).unwrap())).collect()
}

fn bits(share: Option<Rate>) -> u64 {
    share.map_or(u64::MAX, Rate::bits_per_second)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// The exact shares, rounded down, or one bit more or less where the exact one is that near to a whole number.
    #[test]
    fn shares_are_those_of_exact_fractions(network in network(), model in network::model()) {
        let table = network.table(model);
        let exact = reference::shares(&network.capacities, &network.reference(model));
        for (id, exact) in (0..).zip(exact) {
            let share = table.share(FlowId(id)).unwrap();
            let Some(exact) = exact else {
                prop_assert_eq!(share, None);
                continue;
            };
            let exact = exact.max(reference::whole(1));
            let share = reference::whole(share.unwrap().bits_per_second());
            let bit = reference::whole(1);
            prop_assert!(share <= &exact + &bit / reference::whole(1000), "{} of {}", share, exact);
            prop_assert!(share > exact - &bit - &bit / reference::whole(1000), "{} of", share);
        }
    }

    #[test]
    fn no_lane_gives_more_than_it_has(network in network(), model in network::model()) {
        let table = network.table(model);
        for (lane, capacity) in (0..).zip(&network.capacities) {
            // A share is never less than 1 bit/s, with any capacity.
            let shares = network.on(lane).map(|(id, _)| bits(table.share(FlowId(id)).unwrap()));
            let least = shares.filter(|share| *share == 1).count() as u64;
            prop_assert!(capacity.is_none_or(|most| table.given(lane) <= most + least));
        }
    }

    /// Every flow has its ceiling, or a full lane on which no flow has more for its weight.
    #[test]
    fn no_flow_has_less_than_its_share(network in network(), model in network::model()) {
        let table = network.table(model);
        for (id, path) in (0..).zip(&network.paths) {
            let share = table.share(FlowId(id)).unwrap();
            let ceiling = model.ceiling(&path.terms);
            match table.limit(FlowId(id)).unwrap() {
                ShareConstraint::Nothing => prop_assert_eq!((share, ceiling), (None, None)),
                ShareConstraint::Ceiling => prop_assert_eq!(share, ceiling),
                ShareConstraint::Lane(lane) => {
                    prop_assert!(path.lanes.contains(&lane));
                    let most = network.capacities[lane as usize].unwrap();
                    let flows = network.on(lane).count() as u64;
                    prop_assert!(table.given(lane) + flows > most, "lane {} is not full", lane);
                    prop_assert!(ceiling.is_none_or(|ceiling| share.unwrap() <= ceiling));
                    let weight = u128::from(model.weight(&path.terms).value());
                    for (other, its) in network.on(lane) {
                        let more = u128::from(bits(table.share(FlowId(other)).unwrap()) - 1) * weight;
                        let its_weight = u128::from(model.weight(&its.terms).value());
                        prop_assert!(more <= u128::from(bits(share) + 1) * its_weight);
                    }
                }
            }
        }
    }

    /// Work-conserving: a flow could have less than 1 bit/s more for each flow that it meets.
    #[test]
    fn nothing_is_left_that_a_flow_wants(network in network(), model in network::model()) {
        let table = network.table(model);
        for (id, path) in (0..).zip(&network.paths) {
            let Some(share) = table.share(FlowId(id)).unwrap() else { continue };
            let room = path.lanes.iter().filter_map(|lane| {
                let most = network.capacities[*lane as usize]?;
                let flows = network.on(*lane).count() as u64;
                Some(most.saturating_sub(table.given(*lane)).saturating_sub(flows - 1))
            });
            let wants = model.ceiling(&path.terms).map(|most| bits(Some(most)) - bits(Some(share)));
            prop_assert!(room.chain(wants).min().unwrap() == 0, "flow {} could have more", id);
        }
    }

    /// After every batch, the table's shares are those of a new table, and the changes are those
    /// shares that changed.
    #[test]
    fn a_table_that_lived_long_equals_a_new_one(network in network(), calls in calls(), model in network::model()) {
        let (mut network, mut table) = (network.clone(), network.table(model));
        let mut running: BTreeMap<u64, Path> = (0..).zip(network.paths.clone()).collect();
        let mut before = all(&table);
        for batch in calls {
            for call in batch {
                if let Call::Start(..) | Call::Stop(_) = &call {
                    before.remove(&FlowId(call.flow(&running)));
                }
                call.make(&mut network, &mut running, &mut table);
            }
            let changes: Vec<_> = table.settle().iter().map(|change| (change.flow, change.share)).collect();
            let now = all(&table);
            let differ = now.iter().filter(|(id, share)| before.get(id) != Some(share));
            prop_assert_eq!(changes, differ.map(|(id, share)| (*id, *share)).collect::<Vec<_>>());
            prop_assert_eq!(&now, &all(&network.table_of(model, &running)));
            before = now;
        }
    }

    #[test]
    fn the_order_of_announcements_is_irrelevant(network in network(), model in network::model(), order in prop::collection::vec(0u64..1000, 24)) {
        let straight = network.table(model);
        let mut ids: Vec<usize> = (0..network.paths.len()).collect();
        ids.sort_by_key(|id| order[*id % order.len()]);
        let mut table = MaxMinShares::new(model, &network.rates()).unwrap();
        for (turn, id) in ids.iter().enumerate() {
            let path = &network.paths[*id];
            table.start(FlowId(*id as u64), &path.lanes, path.terms).unwrap();
            if order[turn % order.len()].is_multiple_of(3) {
                table.settle();
            }
        }
        table.settle();
        prop_assert_eq!(all(&table), all(&straight));
    }

    #[test]
    fn a_model_chosen_by_value_is_that_model(network in network()) {
        prop_assert_eq!(all(&network.table(SharingModelKind::RttAware)), all(&network.table(RttAware)));
        prop_assert_eq!(all(&network.table(SharingModelKind::Equal)), all(&network.table(EqualFlowSharing)));
    }
}
