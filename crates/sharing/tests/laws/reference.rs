//! Weighted max-min in exact fractions, as in a textbook: all flows rise together until a lane is
//! full or a flow has reached its ceiling. Slow, and independent of the crate.

use num_rational::BigRational;

type Number = BigRational;

/// A flow: its lanes, its weight, and the most that it may have, in bit/s.
pub(crate) struct Flow {
    pub(crate) lanes: Vec<usize>,
    pub(crate) weight: Number,
    pub(crate) ceiling: Option<Number>,
}

/// A number of bits a second, or anything else that is whole.
pub(crate) fn whole(value: u64) -> Number {
    Number::from_integer(value.into())
}

/// The shares in bit/s; `None` for those that nothing limits.
pub(crate) fn shares(capacities: &[Option<u64>], flows: &[Flow]) -> Vec<Option<Number>> {
    let mut shares: Vec<Option<Number>> = vec![None; flows.len()];
    loop {
        let rising = |flow: usize| shares[flow].is_none();
        let Some(level) = next_level(capacities, flows, &shares) else { return shares };
        let mut stays: Vec<usize> = Vec::new();
        for (index, flow) in flows.iter().enumerate().filter(|(index, _)| rising(*index)) {
            let at_level = &flow.weight * &level;
            let full = |lane: &usize| {
                lane_level(*lane, capacities, flows, &shares).as_ref() == Some(&level)
            };
            if flow.ceiling.as_ref() == Some(&at_level) || flow.lanes.iter().any(full) {
                stays.push(index);
            }
        }
        assert!(!stays.is_empty(), "a flow is held back at each level");
        for index in stays {
            shares[index] = Some(&flows[index].weight * &level);
        }
    }
}

/// The level at which the next lane is full or the next flow has enough.
fn next_level(
    capacities: &[Option<u64>],
    flows: &[Flow],
    shares: &[Option<Number>],
) -> Option<Number> {
    let lanes =
        (0..capacities.len()).filter_map(|lane| lane_level(lane, capacities, flows, shares));
    let rising = flows.iter().zip(shares).filter(|(_, share)| share.is_none());
    let ceilings = rising.filter_map(|(flow, _)| Some(flow.ceiling.as_ref()? / &flow.weight));
    lanes.chain(ceilings).min()
}

/// The level at which the flows that still rise fill a lane.
fn lane_level(
    lane: usize,
    capacities: &[Option<u64>],
    flows: &[Flow],
    shares: &[Option<Number>],
) -> Option<Number> {
    let mut left = whole(capacities[lane]?);
    let mut weights = whole(0);
    for (flow, share) in flows.iter().zip(shares).filter(|(flow, _)| flow.lanes.contains(&lane)) {
        match share {
            Some(share) => left -= share,
            None => weights += &flow.weight,
        }
    }
    (weights != whole(0)).then(|| left / weights)
}
