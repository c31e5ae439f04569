//! Random networks, and random things that happen to a table.

use std::collections::BTreeMap;

use proptest::prelude::*;
use windtunnel_model::flow::FlowTerms;
use windtunnel_model::{Bytes, Rate, Span};
use windtunnel_sharing::{FlowId, MaxMinShares, SharingModel, SharingModelKind};

use crate::reference;

#[derive(Debug, Clone)]
pub(crate) struct Path {
    pub(crate) lanes: Vec<u32>,
    pub(crate) terms: FlowTerms,
}

/// Lanes with capacities in bit/s, and flows over them.
#[derive(Debug, Clone)]
pub(crate) struct Network {
    pub(crate) capacities: Vec<Option<u64>>,
    pub(crate) paths: Vec<Path>,
}

/// One call of a table. Numbers choose among existing items.
#[derive(Debug, Clone)]
pub(crate) enum Call {
    Start(u64, Path),
    Stop(u64),
    Change(u64, FlowTerms),
    Capacity(u32, Option<u64>),
}

impl Network {
    pub(crate) fn table<M: SharingModel>(&self, model: M) -> MaxMinShares<M> {
        self.table_of(model, &(0..).zip(self.paths.clone()).collect())
    }

    /// A new table with these flows, with shares found from nothing.
    pub(crate) fn table_of<M: SharingModel>(
        &self,
        model: M,
        running: &BTreeMap<u64, Path>,
    ) -> MaxMinShares<M> {
        let mut shares = MaxMinShares::new(model, &self.rates()).unwrap();
        for (id, path) in running {
            shares.start(FlowId(*id), &path.lanes, path.terms).unwrap();
        }
        shares.settle_from_nothing();
        shares
    }

    pub(crate) fn rates(&self) -> Vec<Option<Rate>> {
        self.capacities
            .iter()
            .map(|capacity| capacity.and_then(Rate::from_bits_per_second))
            .collect()
    }

    pub(crate) fn on(&self, lane: u32) -> impl Iterator<Item = (u64, &Path)> {
        (0..).zip(&self.paths).filter(move |(_, path)| path.lanes.contains(&lane))
    }

    /// The same for the solver in fractions. Weights are 1/RTT in themselves, not those of the
    /// crate.
    pub(crate) fn reference(&self, model: SharingModelKind) -> Vec<reference::Flow> {
        let flow = |path: &Path| reference::Flow {
            lanes: path.lanes.iter().map(|lane| *lane as usize).collect(),
            weight: match model {
                SharingModelKind::RttAware => reference::whole(path.terms.rtt.as_nanos()).recip(),
                SharingModelKind::Equal => reference::whole(1),
            },
            ceiling: model
                .ceiling(&path.terms)
                .map(|rate| reference::whole(rate.bits_per_second())),
        };
        self.paths.iter().map(flow).collect()
    }
}

impl Call {
    /// The flow that is meant: a running one, or for a start one that does not run.
    pub(crate) fn flow(&self, running: &BTreeMap<u64, Path>) -> u64 {
        let nth = |number: u64| {
            let nth = usize::try_from(number).unwrap() % running.len().max(1);
            running.keys().nth(nth).copied().unwrap_or(0)
        };
        match self {
            Call::Start(number, _) => (*number..).find(|id| !running.contains_key(id)).unwrap(),
            Call::Stop(number) | Call::Change(number, _) => nth(*number),
            Call::Capacity(..) => 0,
        }
    }

    pub(crate) fn make<M: SharingModel>(
        self,
        network: &mut Network,
        running: &mut BTreeMap<u64, Path>,
        table: &mut MaxMinShares<M>,
    ) {
        let flow = self.flow(running);
        let lanes = u32::try_from(network.capacities.len()).unwrap();
        match self {
            Call::Start(_, mut path) => {
                path.lanes.iter_mut().for_each(|lane| *lane %= lanes);
                table.start(FlowId(flow), &path.lanes, path.terms).unwrap();
                running.insert(flow, path);
            }
            Call::Stop(_) => {
                assert_eq!(table.stop(FlowId(flow)).is_ok(), running.remove(&flow).is_some());
            }
            Call::Change(_, terms) => {
                let path = running.get_mut(&flow);
                assert_eq!(table.change(FlowId(flow), terms).is_ok(), path.is_some());
                path.into_iter().for_each(|path| path.terms = terms);
            }
            Call::Capacity(lane, capacity) => {
                let rate = capacity.and_then(Rate::from_bits_per_second);
                table.set_capacity(lane % lanes, rate).unwrap();
                network.capacities[(lane % lanes) as usize] = capacity;
            }
        }
    }
}

pub(crate) fn model() -> impl Strategy<Value = SharingModelKind> {
    prop_oneof![2 => Just(SharingModelKind::RttAware), 1 => Just(SharingModelKind::Equal)]
}

/// Few different ones, so that lanes tie; some odd ones; some without limit; some narrower than a
/// bit for each flow.
fn capacity() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![
        6 => prop::sample::select(vec![1_000_000, 2_000_000, 10_000_000]).prop_map(Some),
        3 => (1u64..5_000_000_000).prop_map(Some),
        1 => (1u64..8).prop_map(Some),
        1 => Just(None),
    ]
}

/// Round trips with exact weights: the solver has 1/RTT itself.
fn terms() -> impl Strategy<Value = FlowTerms> {
    let rtt = prop::sample::select(vec![1u64, 10, 20, 20, 30, 40, 100, 100, 300])
        .prop_map(Span::from_millis);
    let window =
        prop_oneof![3 => Just(None), 1 => (1u64..200_000).prop_map(|bytes| Some(Bytes(bytes)))];
    let demand = prop_oneof![
        3 => Just(None),
        1 => (1u64..20_000_000).prop_map(Rate::from_bits_per_second),
        1 => Just(Rate::from_bits_per_second(500_000)),
    ];
    (rtt, window, demand).prop_map(|(rtt, window, demand)| FlowTerms { rtt, window, demand })
}

fn path(lanes: u32) -> impl Strategy<Value = Path> {
    let lanes = prop::collection::vec(0..lanes, 0..5);
    (lanes, terms()).prop_map(|(lanes, terms)| Path { lanes, terms })
}

pub(crate) fn network() -> impl Strategy<Value = Network> {
    prop::collection::vec(capacity(), 1..8).prop_flat_map(|capacities| {
        let lanes = u32::try_from(capacities.len()).unwrap();
        let paths = prop::collection::vec(path(lanes), 0..24);
        paths.prop_map(move |paths| Network { capacities: capacities.clone(), paths })
    })
}

/// Batches of calls.
pub(crate) fn calls() -> impl Strategy<Value = Vec<Vec<Call>>> {
    let call = prop_oneof![
        3 => (0u64..40, path(8)).prop_map(|(flow, path)| Call::Start(flow, path)),
        2 => (0u64..40).prop_map(Call::Stop),
        2 => (0u64..40, terms()).prop_map(|(flow, terms)| Call::Change(flow, terms)),
        1 => (0u32..8, capacity()).prop_map(|(lane, capacity)| Call::Capacity(lane, capacity)),
    ];
    prop::collection::vec(prop::collection::vec(call, 1..4), 1..12)
}
