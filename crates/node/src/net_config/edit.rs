//! What changes in a node when routes change.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use windtunnel_model::Plan;
use windtunnel_model::id::NodeId;
use windtunnel_routing::Routes;

use super::NetConfig;
use super::prefixes::Prefix;
use crate::netlink::request::{Hop, RoutingPolicyRule};

/// Routes and rules that a node's kernel gets and loses, and addresses of services that it gets.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RouteEdit {
    /// Addresses of services that it is to answer for.
    #[serde(default)]
    pub(crate) services: Vec<IpAddr>,
    /// New, or in the place of one with the same prefix and table.
    pub(crate) set: Vec<(Prefix, Hop)>,
    /// No longer wanted, and replaced by none.
    pub(crate) remove: Vec<(Prefix, Hop)>,
    pub(crate) add_rules: Vec<RoutingPolicyRule>,
    pub(crate) remove_rules: Vec<RoutingPolicyRule>,
}

impl RouteEdit {
    /// What makes a node's settings under `before` those under `after`. A node with one interface
    /// that is on no LAN never has to change anything.
    pub(crate) fn of(plan: &Plan, before: &Routes, after: &Routes, node: NodeId) -> RouteEdit {
        let interfaces = &plan.nodes[node.index()].interfaces;
        let on_lan = interfaces.iter().any(|interface| plan.lan_of(interface.link).is_some());
        if interfaces.len() < 2 && !on_lan {
            return RouteEdit::default();
        }
        let [before, after] = [before, after].map(|routes| NetConfig::of(plan, routes, node));
        RouteEdit::between(&before, &after)
    }

    /// What makes a node's settings in one plan those in another, which differ in their services
    /// only: addresses of services stay, because connections may have them.
    pub(crate) fn of_services(
        before: &Plan,
        after: &Plan,
        routes: &Routes,
        node: NodeId,
    ) -> RouteEdit {
        let [before, after] = [before, after].map(|plan| NetConfig::of(plan, routes, node));
        RouteEdit::between(&before, &after)
    }

    fn between(before: &NetConfig, after: &NetConfig) -> RouteEdit {
        let services = after.services.iter().filter(|it| !before.services.contains(it));
        let [old, new] = [before, after]
            .map(|net_config| net_config.routes.iter().copied().collect::<BTreeSet<_>>());
        let places: BTreeSet<_> = new.iter().map(|(to, hop)| (*to, hop.table)).collect();
        let gone = old.iter().filter(|(to, hop)| !places.contains(&(*to, hop.table)));
        let [old_rules, new_rules] = [before, after]
            .map(|net_config| net_config.rules.iter().copied().collect::<BTreeSet<_>>());
        RouteEdit {
            services: services.copied().collect(),
            remove: gone.copied().collect(),
            set: new.difference(&old).copied().collect(),
            add_rules: new_rules.difference(&old_rules).copied().collect(),
            remove_rules: old_rules.difference(&new_rules).copied().collect(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.services.is_empty()
            && self.set.is_empty()
            && self.remove.is_empty()
            && self.add_rules.is_empty()
            && self.remove_rules.is_empty()
    }

    /// Parts that each fit into a message: what is added comes before what is removed.
    pub(crate) fn parts(self) -> Vec<RouteEdit> {
        let mut parts = Vec::new();
        let services = self.services.chunks(PART);
        parts.extend(services.map(|part| RouteEdit { services: part.into(), ..none() }));
        parts.extend(self.set.chunks(PART).map(|part| RouteEdit { set: part.into(), ..none() }));
        let add = self.add_rules.chunks(PART);
        parts.extend(add.map(|part| RouteEdit { add_rules: part.into(), ..none() }));
        let remove = self.remove_rules.chunks(PART);
        parts.extend(remove.map(|part| RouteEdit { remove_rules: part.into(), ..none() }));
        let remove = self.remove.chunks(PART);
        parts.extend(remove.map(|part| RouteEdit { remove: part.into(), ..none() }));
        parts
    }
}

fn none() -> RouteEdit {
    RouteEdit::default()
}

/// Routes in a message: each takes less than 200 bytes of its 200 000.
const PART: usize = 500;
