//! The maximum flow between two vertices (Dinic 1970).

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

/// A network of arcs with capacities.
#[derive(Debug)]
pub(crate) struct MaxFlowNetwork {
    /// An arc and its reverse are neighbours.
    arcs: Vec<Arc>,
    out: Vec<Vec<usize>>,
}

#[derive(Debug)]
struct Arc {
    to: usize,
    left: u128,
}

impl MaxFlowNetwork {
    pub(crate) fn new(vertices: usize) -> Self {
        MaxFlowNetwork { arcs: Vec::new(), out: vec![Vec::new(); vertices] }
    }

    pub(crate) fn arc(&mut self, from: usize, to: usize, capacity: u128) {
        self.out[from].push(self.arcs.len());
        self.arcs.push(Arc { to, left: capacity });
        self.out[to].push(self.arcs.len());
        self.arcs.push(Arc { to: from, left: 0 });
    }

    /// The most that gets from `source` to `sink`; uses the network up.
    pub(crate) fn most(&mut self, source: usize, sink: usize) -> u128 {
        let mut total = 0;
        while let Some(levels) = self.levels(source, sink) {
            let mut tried = vec![0; self.out.len()];
            loop {
                let pushed = self.push(source, sink, &levels, &mut tried);
                if pushed == 0 {
                    break;
                }
                total += pushed;
            }
        }
        total
    }

    /// The distance of each vertex from the source, if the sink can be reached.
    fn levels(&self, source: usize, sink: usize) -> Option<Vec<usize>> {
        let mut levels = vec![usize::MAX; self.out.len()];
        levels[source] = 0;
        let mut open = VecDeque::from([source]);
        while let Some(at) = open.pop_front() {
            for arc in self.out[at].iter().map(|arc| &self.arcs[*arc]) {
                if arc.left > 0 && levels[arc.to] == usize::MAX {
                    levels[arc.to] = levels[at] + 1;
                    open.push_back(arc.to);
                }
            }
        }
        (levels[sink] != usize::MAX).then_some(levels)
    }

    /// Pushes along one way that goes up in levels. A long chain needs no deep stack.
    fn push(&mut self, source: usize, sink: usize, levels: &[usize], tried: &mut [usize]) -> u128 {
        let mut way: Vec<usize> = Vec::new();
        let mut at = source;
        while at != sink {
            match self.out[at].get(tried[at]) {
                Some(&id) => {
                    let arc = &self.arcs[id];
                    if arc.left > 0 && levels[arc.to] == levels[at] + 1 {
                        way.push(id);
                        at = arc.to;
                    } else {
                        tried[at] += 1;
                    }
                }
                None => {
                    let Some(back) = way.pop() else { return 0 };
                    at = self.arcs[back ^ 1].to;
                    tried[at] += 1;
                }
            }
        }
        let pushed = way.iter().map(|arc| self.arcs[*arc].left).min().unwrap_or(0);
        for arc in way {
            self.arcs[arc].left -= pushed;
            self.arcs[arc ^ 1].left += pushed;
        }
        pushed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maximum_flow_equals_the_narrowest_cut() {
        // Two ways of 10 and 4 join before a last arc of 9.
        let mut flow = MaxFlowNetwork::new(5);
        flow.arc(0, 1, 10);
        flow.arc(0, 2, 4);
        flow.arc(1, 3, 7);
        flow.arc(2, 3, 5);
        flow.arc(3, 4, 9);
        assert_eq!(flow.most(0, 4), 9);
    }

    #[test]
    fn a_way_that_was_taken_too_early_is_given_back() {
        let mut flow = MaxFlowNetwork::new(4);
        for (from, to) in [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)] {
            flow.arc(from, to, 1);
        }
        assert_eq!(flow.most(0, 3), 2);
    }

    #[test]
    fn a_chain_of_a_hundred_thousand_needs_no_deep_stack() {
        let mut flow = MaxFlowNetwork::new(100_000);
        for at in 1..100_000 {
            flow.arc(at - 1, at, 3);
        }
        assert_eq!(flow.most(0, 99_999), 3);
    }
}
