//! Whether every two nodes with links can reach each other.
//!
//! Vertices that forward (routers, LANs, and nodes with `forward`) fall into connected components.
//! A node reaches another if both touch one component, or if a link joins them. Nodes that touch
//! the same components are alike, so that kinds of nodes are compared and not all pairs.

mod realm;

use std::collections::{BTreeMap, BTreeSet};

use windtunnel_model::expect::ExpectationClaim;
use windtunnel_model::{NetworkVertex, NodeId, Plan, RouterId};

use crate::decode::{ScenarioDraft, Subject};
use crate::error::Diagnostics;
use crate::position::SourceLocation;

pub(super) fn check(found: &mut Diagnostics, draft: &ScenarioDraft, plan: &Plan) {
    realm::check(found, draft, plan);
    let touched = ConnectedComponents::of(plan, |id| plan.nodes[id.index()].forward).touched;
    if draft.allow_unreachable {
        return check_paths(found, draft, plan, &touched);
    }
    let linked: Vec<usize> =
        (0..plan.nodes.len()).filter(|id| !plan.nodes[*id].interfaces.is_empty()).collect();
    let direct = direct(plan);
    let mut kinds: BTreeMap<&BTreeSet<usize>, u64> = BTreeMap::new();
    for id in &linked {
        *kinds.entry(&touched[*id]).or_default() += 1;
    }
    let kinds: Vec<_> = kinds.into_iter().collect();
    let mut separate = 0u64;
    for (index, (components, count)) in kinds.iter().enumerate() {
        if components.is_empty() {
            separate += count * (count - 1) / 2;
        }
        let others = kinds[index + 1..].iter();
        let disjoint = others.filter(|(other, _)| components.is_disjoint(other));
        separate += disjoint.map(|(_, other)| count * other).sum::<u64>();
    }
    let is_separate = |a: usize, b: usize| touched[a].is_disjoint(&touched[b]);
    let joined = direct.iter().filter(|(a, b)| is_separate(*a, *b)).count();
    separate -= u64::try_from(joined).unwrap_or(0);
    if separate == 0 {
        return;
    }
    let pairs =
        linked.iter().enumerate().flat_map(|(at, a)| linked[at + 1..].iter().map(|b| (*a, *b)));
    let mut pairs = pairs.filter(|(a, b)| is_separate(*a, *b) && !direct.contains(&(*a, *b)));
    if let Some((a, b)) = pairs.next() {
        report(found, draft, plan, NodeId::from_index(a), NodeId::from_index(b), separate);
    }
}

/// Even where nodes may be unreachable, a path that is to be measured must exist.
fn check_paths(
    found: &mut Diagnostics,
    draft: &ScenarioDraft,
    plan: &Plan,
    touched: &[BTreeSet<usize>],
) {
    let direct = direct(plan);
    check_published(found, draft, plan, touched, &direct);
    // Each fact of a draft has become an expectation.
    let drafts = draft.expect.iter().filter_map(|expectation| match &expectation.subject {
        Subject::Path { ends, facts, .. } => Some(std::iter::repeat_n(ends, facts.len())),
        _ => None,
    });
    let paths = plan.expectations.iter().filter_map(|expectation| match expectation.claim {
        ExpectationClaim::Path { from, to, .. } => Some((from.index(), to.index())),
        _ => None,
    });
    for (ends, (from, to)) in drafts.flatten().zip(paths) {
        let joined = direct.contains(&(from.min(to), from.max(to)));
        if !joined && touched[from].is_disjoint(&touched[to]) {
            let message = format!("no path joins `{}` and `{}`", ends[0].value, ends[1].value);
            found.mistake(ends[0].place, message);
        }
    }
}

/// What comes by a published port comes from the machine's outside.
fn check_published(
    found: &mut Diagnostics,
    draft: &ScenarioDraft,
    plan: &Plan,
    touched: &[BTreeSet<usize>],
    direct: &BTreeSet<(usize, usize)>,
) {
    let Some(outside) = plan.internet().map(NodeId::index) else { return };
    for (node, name) in draft.nodes.iter().filter_map(|it| Some((it.publish.as_ref()?, &it.name))) {
        let Some(id) = plan.node_named(&name.value).map(NodeId::index) else { continue };
        let joined = direct.contains(&(id.min(outside), id.max(outside)));
        if !joined && touched[id].is_disjoint(&touched[outside]) {
            let message = format!("publish: no path joins `internet` and `{}`", name.value);
            found.mistake(node.place, message);
        }
    }
}

/// Connected components of what forwards.
pub(super) struct ConnectedComponents {
    /// By node: the components that it is in or linked to.
    touched: Vec<BTreeSet<usize>>,
    /// By router: its component.
    routers: Vec<usize>,
}

impl ConnectedComponents {
    /// Those of routers, LANs and the nodes that forward.
    pub(super) fn of(plan: &Plan, node_forwards: impl Fn(NodeId) -> bool) -> ConnectedComponents {
        components(plan, node_forwards)
    }

    /// Whether packets of a router get to a node.
    pub(super) fn reaches(&self, router: RouterId, node: NodeId) -> bool {
        self.touched[node.index()].contains(&self.routers[router.index()])
    }
}

fn components(plan: &Plan, node_forwards: impl Fn(NodeId) -> bool) -> ConnectedComponents {
    let nodes = plan.nodes.len();
    let number = |vertex: NetworkVertex| match vertex {
        NetworkVertex::Node(id) => id.index(),
        NetworkVertex::Router(id) => nodes + id.index(),
        NetworkVertex::Lan(id) => nodes + plan.routers.len() + id.index(),
    };
    let forwards = |vertex: NetworkVertex| match vertex {
        NetworkVertex::Node(id) => node_forwards(id),
        NetworkVertex::Router(_) | NetworkVertex::Lan(_) => true,
    };
    let mut sets = DisjointSetForest::new(nodes + plan.routers.len() + plan.lans.len());
    for link in &plan.links {
        let [a, b] = [link.ends[0].vertex, link.ends[1].vertex];
        if forwards(a) && forwards(b) {
            sets.join(number(a), number(b));
        }
    }
    let mut touched = vec![BTreeSet::new(); nodes];
    for (id, touched) in touched.iter_mut().enumerate() {
        if node_forwards(NodeId::from_index(id)) {
            touched.insert(sets.root(id));
        }
    }
    for link in &plan.links {
        let [a, b] = [link.ends[0].vertex, link.ends[1].vertex];
        for (at, other) in [(a, b), (b, a)] {
            if let (NetworkVertex::Node(id), true) = (at, forwards(other)) {
                touched[id.index()].insert(sets.root(number(other)));
            }
        }
    }
    let routers = (0..plan.routers.len()).map(|id| sets.root(nodes + id)).collect();
    ConnectedComponents { touched, routers }
}

/// Pairs of nodes that a link joins, the lower number first.
fn direct(plan: &Plan) -> BTreeSet<(usize, usize)> {
    let ends = plan.links.iter().map(|link| (link.ends[0].vertex, link.ends[1].vertex));
    ends.filter_map(|pair| match pair {
        (NetworkVertex::Node(a), NetworkVertex::Node(b)) => {
            Some((a.index().min(b.index()), a.index().max(b.index())))
        }
        _ => None,
    })
    .collect()
}

fn report(
    found: &mut Diagnostics,
    draft: &ScenarioDraft,
    plan: &Plan,
    a: NodeId,
    b: NodeId,
    separate: u64,
) {
    let [from, to] = [a, b].map(|id| &plan.nodes[id.index()]);
    let entry = draft.nodes.iter().find(|node| node.name.value == from.group);
    let place = entry.map_or(SourceLocation::START, |node| node.name.place);
    let more = match separate {
        1 => String::new(),
        separate => format!(" ({separate} pairs of nodes in all)"),
    };
    let message = format!("no path joins `{}` and `{}`{more}", from.name, to.name);
    let hint = "only routers and nodes with `forward: true` pass on; add a link, or write \
                `allow-unreachable: true` at the top";
    found.mistake_with_hint(place, message, hint);
}

/// Disjoint sets of numbers (union by size with path halving; Tarjan, van Leeuwen 1984).
struct DisjointSetForest {
    parents: Vec<usize>,
    sizes: Vec<usize>,
}

impl DisjointSetForest {
    fn new(count: usize) -> Self {
        DisjointSetForest { parents: (0..count).collect(), sizes: vec![1; count] }
    }

    fn root(&mut self, mut at: usize) -> usize {
        while self.parents[at] != at {
            self.parents[at] = self.parents[self.parents[at]];
            at = self.parents[at];
        }
        at
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        if a == b {
            return;
        }
        let (small, large) = if self.sizes[a] < self.sizes[b] { (a, b) } else { (b, a) };
        self.parents[small] = large;
        self.sizes[large] += self.sizes[small];
    }
}
