//! Whole paths, and their sums.

use alloc::vec::Vec;

use windtunnel_model::{Lane, NetworkVertex, NodeId, Plan, PortId, Probability, Rate, Span};

use crate::routes::{RouteDestination, Routes};

/// The sums over a path, for one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathSummary {
    /// Sum of the latencies.
    pub latency: Span,
    /// The smallest rate, if any link has one.
    pub bottleneck: Option<Rate>,
    /// 1 − Π(1 − p) over the independent losses, rounded to parts per billion; bursts and lists
    /// are counted with their long-run share (zero for lists).
    pub loss: Probability,
    /// Number of links; the two attachments by which a LAN is crossed are one, as for a TTL.
    pub hops: usize,
}

impl PathSummary {
    /// Adds up the properties that the plan starts with along `lanes`.
    #[must_use]
    pub fn of(plan: &Plan, lanes: &[Lane]) -> Self {
        const BILLION: u128 = 1_000_000_000;
        let profiles = || {
            lanes.iter().map(|lane| &plan.links[lane.link.index()].profiles[lane.direction.index()])
        };
        // The product is kept in parts per 10^18 so that rounding stays below one part per billion.
        let survive = profiles().fold(BILLION * BILLION, |product, profile| {
            let loss = u128::from(profile.loss.long_run().parts_per_billion());
            product * (BILLION - loss) / BILLION
        });
        let lost = (BILLION * BILLION - survive + BILLION / 2) / BILLION;
        PathSummary {
            latency: profiles().map(|profile| profile.latency).sum(),
            bottleneck: profiles().filter_map(|profile| profile.rate).min(),
            loss: u32::try_from(lost)
                .ok()
                .and_then(Probability::from_parts_per_billion)
                .unwrap_or(Probability::ALWAYS),
            hops: lanes.iter().filter(|lane| counts(plan, **lane)).count(),
        }
    }
}

/// Whether a lane is a hop: one towards a LAN is not.
fn counts(plan: &Plan, lane: Lane) -> bool {
    !matches!(plan.lane_end(lane), NetworkVertex::Lan(_))
}

/// The first `most` ways from a node to an interface, and the number of all.
pub(crate) fn paths(
    routes: &Routes,
    plan: &Plan,
    from: NodeId,
    to: NodeId,
    port: PortId,
    most: usize,
) -> (Vec<Vec<Lane>>, u64) {
    let mut search = PathEnumerator {
        routes,
        plan,
        from,
        to: NetworkVertex::Node(to),
        target: RouteDestination::Port(port),
        most,
        found: Vec::new(),
        count: 0,
        trail: Vec::new(),
    };
    search.go(NetworkVertex::Node(from));
    (search.found, search.count)
}

struct PathEnumerator<'a> {
    routes: &'a Routes,
    plan: &'a Plan,
    from: NodeId,
    to: NetworkVertex,
    target: RouteDestination,
    most: usize,
    found: Vec<Vec<Lane>>,
    count: u64,
    trail: Vec<Lane>,
}

impl PathEnumerator<'_> {
    /// Follows all ways from `at`. Shortest ways have no loops, but a fixed route and shortest ways
    /// may.
    fn go(&mut self, at: NetworkVertex) {
        if at == self.to {
            self.count += 1;
            if self.found.len() < self.most {
                self.found.push(self.trail.clone());
            }
            return;
        }
        if self.count > COUNTED_MAX || self.trail.len() > self.plan.links.len() * 2 {
            return;
        }
        for lane in self.routes.next_hops_from(at, Some(self.from), self.target) {
            // Paths that are not returned are counted as far as that is quick.
            if self.most <= 1 && !self.found.is_empty() {
                return;
            }
            self.trail.push(lane);
            self.go(self.plan.lane_end(lane));
            self.trail.pop();
        }
    }
}

/// More ways than this between two nodes are not counted.
const COUNTED_MAX: u64 = 1000;
