//! The allocation of all flows, by progressive filling: all flows rise together, each as fast as
//! its weight, until a lane is full or a flow has all that it wants.

/// A flow as the reference knows it.
#[derive(Debug, Clone)]
pub(crate) struct Flow {
    /// Numbers of lanes.
    pub(crate) lanes: Vec<usize>,
    pub(crate) weight: f64,
    /// Bit/s; infinite if it wants all.
    pub(crate) demand: f64,
}

/// The rate of each flow in bit/s, infinite where nothing limits it; an infinite capacity is a lane
/// without a rate.
pub(crate) fn allocation(capacities: &[f64], flows: &[Flow]) -> Vec<f64> {
    let mut rates = vec![f64::INFINITY; flows.len()];
    let mut rising: Vec<usize> = (0..flows.len()).collect();
    while !rising.is_empty() {
        let full = |lane: usize| {
            let over = |flow: &usize| flows[*flow].lanes.contains(&lane);
            let rest = (0..flows.len()).filter(|flow| !rising.contains(flow) && over(flow));
            let rest = capacities[lane] - rest.map(|flow| rates[flow]).sum::<f64>();
            rest / rising
                .iter()
                .filter(|flow| over(flow))
                .map(|flow| flows[*flow].weight)
                .sum::<f64>()
        };
        let limit = |flow: usize| {
            let lanes = flows[flow].lanes.iter().filter(|lane| capacities[**lane].is_finite());
            lanes.map(|lane| full(*lane)).fold(flows[flow].demand / flows[flow].weight, f64::min)
        };
        let limits: Vec<(usize, f64)> = rising.iter().map(|flow| (*flow, limit(*flow))).collect();
        let level = limits.iter().map(|(_, limit)| *limit).fold(f64::INFINITY, f64::min);
        if level.is_infinite() {
            break;
        }
        for (flow, limit) in limits {
            // Two lanes that fill at one level may differ in their last bits.
            if limit <= level * (1.0 + 1e-12) {
                rates[flow] = flows[flow].weight * level;
                rising.retain(|other| *other != flow);
            }
        }
    }
    rates
}

#[test]
fn the_reference_finds_the_allocations_that_are_known() {
    let flow =
        |lanes: &[usize], weight| Flow { lanes: lanes.to_vec(), weight, demand: f64::INFINITY };
    // SplayNet, figure 3.5: round trips of 100, 300 and 300 ms, two lanes of 2 Mbit/s.
    let flows = [flow(&[0], 3.0), flow(&[0, 1], 1.0), flow(&[1], 1.0)];
    assert_eq!(allocation(&[2e6, 2e6], &flows), [1.5e6, 0.5e6, 1.5e6]);
    // One long flow over three lanes, a short one on each; one wants little, one lane has no rate.
    let mut flows = [flow(&[0, 1, 2], 1.0), flow(&[0], 1.0), flow(&[1], 1.0), flow(&[2], 1.0)];
    flows[1].demand = 1e6;
    let rates = allocation(&[8e6, 6e6, f64::INFINITY], &flows);
    assert_eq!(rates, [3e6, 1e6, 3e6, f64::INFINITY]);
}
