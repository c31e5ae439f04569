//! From local flows to global ones.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

use windtunnel_model::record::kind::{MACHINE, NO_FLOW, RecordSource};

use super::local::{FlowCorrelator, FlowOpenerEvidence, LocalFlowDefinition, TransportAddress};
use super::{FlowEndpoint, GlobalFlow, LocalFlow, TCP};
use crate::evidence::AttributedRecord;

/// What flows with the same ends have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FlowEndpointsKey {
    protocol: u8,
    /// That of loopback addresses.
    node: u32,
    /// The two sides, in their order.
    sides: [TransportAddress; 2],
}

/// A socket that several layers know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SocketCookieKey {
    member: u16,
    node: u32,
    cookie: u64,
}

/// What a layer knows of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SocketEndpoints {
    protocol: u8,
    from: TransportAddress,
    to: TransportAddress,
}

/// Local flows that are one.
#[derive(Debug, Default)]
struct Cluster {
    locals: Vec<u32>,
    begin_ns: u64,
    end_ns: u64,
    reused: bool,
}

impl FlowCorrelator {
    /// Gives each record its global flow, and returns these.
    pub(crate) fn unify(&mut self, entries: &mut [AttributedRecord]) -> Vec<GlobalFlow> {
        self.learn_addresses();
        self.complete_by_cookie();
        self.complete_by_peer();
        let mut clusters = self.clusters();
        clusters.sort_by_key(|cluster| (cluster.begin_ns, cluster.locals.first().copied()));
        let mut global = vec![(NO_FLOW, false); self.locals.len()];
        let mut flows = Vec::with_capacity(clusters.len());
        for (number, cluster) in (0..).zip(&clusters) {
            let flow = self.flow(cluster);
            for (local, part) in cluster.locals.iter().zip(&flow.parts) {
                global[*local as usize] = (number, part.flipped);
            }
            flows.push(flow);
        }
        for entry in entries {
            if let Some(local) = entry.flow() {
                let (flow, flipped) = global[local];
                entry.bind(flow, flipped);
            }
        }
        flows
    }

    fn is_socket(&self, local: &LocalFlowDefinition) -> bool {
        let scope = &self.scopes[local.scope as usize];
        scope.layer != RecordSource::Engine as u8 && scope.node != MACHINE
    }

    /// The own address of a socket is one of its node.
    fn learn_addresses(&mut self) {
        for local in &self.locals {
            let Some(from) = local.from.filter(|from| !from.is_open() && !is_loopback(*from))
            else {
                continue;
            };
            if self.is_socket(local) {
                let node = self.scopes[local.scope as usize].node;
                self.addresses.entry(node).or_default().insert(from.address);
            }
        }
    }

    /// A socket of which one layer knows less than another.
    fn complete_by_cookie(&mut self) {
        let mut known: BTreeMap<SocketCookieKey, BTreeSet<SocketEndpoints>> = BTreeMap::new();
        let key = |flows: &FlowCorrelator, local: &LocalFlowDefinition| {
            let scope = &flows.scopes[local.scope as usize];
            local.cookie.map(|cookie| SocketCookieKey {
                member: scope.member,
                node: scope.node,
                cookie,
            })
        };
        for local in &self.locals {
            if let (Some(key), Some(from), Some(to)) = (key(self, local), local.from, local.to)
                && !from.is_open()
                && !to.is_open()
            {
                let protocol = local.protocol;
                known.entry(key).or_default().insert(SocketEndpoints { protocol, from, to });
            }
        }
        for index in 0..self.locals.len() {
            let local = self.locals[index];
            let open = |side: Option<TransportAddress>| side.is_none_or(TransportAddress::is_open);
            let Some(ends) = key(self, &local).and_then(|key| known.get(&key)) else { continue };
            let (true, Some(SocketEndpoints { protocol, from, to })) =
                (open(local.from) || open(local.to), ends.first().filter(|_| ends.len() == 1))
            else {
                continue;
            };
            let local = &mut self.locals[index];
            (local.protocol, local.from, local.to) = (*protocol, Some(*from), Some(*to));
        }
    }

    /// A socket whose own address is not known: what another saw with this peer and port.
    fn complete_by_peer(&mut self) {
        let mut seen: BTreeMap<(u8, TransportAddress, u16), BTreeSet<Ipv6Addr>> = BTreeMap::new();
        for local in &self.locals {
            if let (Some(from), Some(to)) = (local.from, local.to)
                && !from.is_open()
                && !to.is_open()
            {
                seen.entry((local.protocol, from, to.port)).or_default().insert(to.address);
                seen.entry((local.protocol, to, from.port)).or_default().insert(from.address);
            }
        }
        for index in 0..self.locals.len() {
            let local = self.locals[index];
            let (Some(from), Some(to)) = (local.from, local.to) else { continue };
            let own = self.addresses.get(&self.scopes[local.scope as usize].node);
            let Some(candidates) = seen.get(&(local.protocol, to, from.port)) else { continue };
            let mut candidates = candidates
                .iter()
                .filter(|address| own.is_none_or(|own| own.contains(address) || own.is_empty()));
            if let (true, Some(address), None) =
                (from.is_open(), candidates.next(), candidates.next())
            {
                self.locals[index].from =
                    Some(TransportAddress { address: *address, port: from.port });
            }
        }
    }

    fn clusters(&self) -> Vec<Cluster> {
        let mut groups: BTreeMap<FlowEndpointsKey, Vec<u32>> = BTreeMap::new();
        let mut clusters = Vec::new();
        for (index, local) in (0..).zip(&self.locals) {
            match self.ends(local) {
                Some(ends) => groups.entry(ends).or_default().push(index),
                None if local.records > 0 => clusters.push(Cluster::of(index, local)),
                None => {}
            }
        }
        for mut group in groups.into_values() {
            group.sort_by_key(|index| self.locals[*index as usize].begin_ns);
            let first = clusters.len();
            for index in group {
                self.join(&mut clusters, first, index);
            }
            self.mark_reused(&mut clusters[first..]);
        }
        clusters
    }

    fn ends(&self, local: &LocalFlowDefinition) -> Option<FlowEndpointsKey> {
        let (from, to) = (local.from?, local.to?);
        let of_node = is_loopback(from) || is_loopback(to) || from.is_open();
        let node = if of_node { self.scopes[local.scope as usize].node } else { MACHINE };
        let sides = [from.min(to), from.max(to)];
        Some(FlowEndpointsKey { protocol: local.protocol, node, sides })
    }

    /// Adds a local flow to the cluster of the same ends that it fits best, or makes one.
    fn join(&self, clusters: &mut Vec<Cluster>, first: usize, index: u32) {
        let local = &self.locals[index as usize];
        let possible = clusters[first..].iter_mut().filter(|cluster| {
            let mut others = cluster.locals.iter().map(|other| &self.locals[*other as usize]);
            !others.any(|other| self.differ(other, local))
        });
        match possible.max_by_key(|cluster| cluster.nearness(local)) {
            Some(cluster) => cluster.add(index, local),
            None => clusters.push(Cluster::of(index, local)),
        }
    }

    /// Whether two local flows with the same ends cannot be one; `other` begins first.
    fn differ(&self, other: &LocalFlowDefinition, local: &LocalFlowDefinition) -> bool {
        let same_side = other.from == local.from;
        let (a, b) = (&self.scopes[other.scope as usize], &self.scopes[local.scope as usize]);
        if same_side
            && (a.member, a.node) == (b.member, b.node)
            && let (Some(a), Some(b)) = (other.cookie, local.cookie)
        {
            return a != b;
        }
        for bit in 0..2 {
            let mine = local.sequence[if same_side { bit } else { 1 - bit }];
            if let (Some(a), Some(b)) = (other.sequence[bit], mine) {
                return a != b;
            }
        }
        // The SYN of the later one was seen: it is no continuation.
        let scopes_are_same = other.scope == local.scope && same_side;
        scopes_are_same && other.protocol == TCP && local.opener.strength == 4
    }

    /// Of sockets one after the other, the first has what the engine saw as one flow.
    fn mark_reused(&self, clusters: &mut [Cluster]) {
        let end = |cluster: &Cluster| {
            let locals = cluster.locals.iter().map(|index| &self.locals[*index as usize]);
            locals.filter(|local| !self.is_socket(local)).map(|local| local.end_ns).max()
        };
        let later = clusters.iter().map(|cluster| cluster.begin_ns).max().unwrap_or(0);
        let reused = |cluster: &Cluster| {
            later > cluster.begin_ns && end(cluster).is_some_and(|end_ns| end_ns >= later)
        };
        clusters.iter_mut().for_each(|cluster| cluster.reused = reused(cluster));
    }

    fn flow(&self, cluster: &Cluster) -> GlobalFlow {
        let locals: Vec<&LocalFlowDefinition> =
            cluster.locals.iter().map(|index| &self.locals[*index as usize]).collect();
        // The first of the best: `max_by_key` would take the last.
        let best = locals.iter().reduce(|best, local| {
            if local.opener.strength > best.opener.strength { local } else { best }
        });
        let Some(best) = best else { unreachable!("a cluster has a local flow") };
        let FlowOpenerEvidence { reverse, .. } = best.opener;
        let (from, to) = if reverse { (best.to, best.from) } else { (best.from, best.to) };
        let parts = locals.iter().map(|local| local.part(local.from != from)).collect();
        GlobalFlow {
            protocol: best.protocol,
            from: from.map(|side| self.end(side, &locals)),
            to: to.map(|side| self.end(side, &locals)),
            begin_ns: cluster.begin_ns,
            end_ns: cluster.end_ns,
            parts,
            reused: cluster.reused,
        }
    }

    fn end(&self, side: TransportAddress, locals: &[&LocalFlowDefinition]) -> FlowEndpoint {
        // The other side of a socket without a peer is not its own.
        let is_peer = side.is_open() && locals.iter().any(|local| local.to == Some(side));
        let of_socket =
            |local: &&&LocalFlowDefinition| local.from == Some(side) && self.is_socket(local);
        let socket = locals.iter().find(of_socket).filter(|_| !is_peer);
        let node = socket.map(|local| self.scopes[local.scope as usize].node).or_else(|| {
            let mut nodes = self.addresses.iter();
            nodes.find(|(_, addresses)| addresses.contains(&side.address)).map(|(node, _)| *node)
        });
        FlowEndpoint { address: side.address, port: side.port, node }
    }
}

impl Cluster {
    fn of(index: u32, local: &LocalFlowDefinition) -> Cluster {
        let (begin_ns, end_ns) = (local.begin_ns, local.end_ns);
        Cluster { locals: vec![index], begin_ns, end_ns, reused: false }
    }

    fn add(&mut self, index: u32, local: &LocalFlowDefinition) {
        self.locals.push(index);
        self.begin_ns = self.begin_ns.min(local.begin_ns);
        self.end_ns = self.end_ns.max(local.end_ns);
    }

    /// The greater, the more of the time is common; negative: the gap.
    fn nearness(&self, local: &LocalFlowDefinition) -> i128 {
        let (begin, end) = (self.begin_ns.max(local.begin_ns), self.end_ns.min(local.end_ns));
        i128::from(end) - i128::from(begin)
    }
}

impl LocalFlowDefinition {
    fn part(&self, flipped: bool) -> LocalFlow {
        let [a, b] = self.sequence;
        LocalFlow {
            origin: self.origin,
            number: self.number,
            flipped,
            cookie: self.cookie,
            process: self.process,
            sequence: if flipped { [b, a] } else { [a, b] },
            records: self.records,
        }
    }
}

fn is_loopback(side: TransportAddress) -> bool {
    side.address.to_canonical().is_loopback()
}
