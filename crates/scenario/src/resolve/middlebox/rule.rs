//! Where packets come from and go that a rule is about.

use std::net::IpAddr;

use windtunnel_model::plan::{FirewallRule, MiddleboxSide, RuleEnd};
use windtunnel_model::{Plan, Subnet};

use super::super::directory::{Directory, NamedEntity};
use crate::decode::RuleDraft;
use crate::error::Diagnostics;
use crate::position::LocatedValue;
use crate::text::shorten;

pub(super) fn resolve(
    found: &mut Diagnostics,
    draft: &RuleDraft,
    directory: &Directory,
    plan: &Plan,
) -> FirewallRule {
    let [from, to] = [&draft.from, &draft.to].map(|names| end(found, names, directory, plan));
    FirewallRule { policy: draft.policy, traffic: draft.traffic.clone(), from, to }
}

fn end(
    found: &mut Diagnostics,
    names: &[LocatedValue<String>],
    directory: &Directory,
    plan: &Plan,
) -> RuleEnd {
    let mut end = RuleEnd::default();
    for name in names {
        match name.value.as_str() {
            "inside" => end.sides.push(MiddleboxSide::Inside),
            "outside" => end.sides.push(MiddleboxSide::Outside),
            text if text.contains(['/', ':', '.']) => end.subnets.extend(subnet(found, name, text)),
            _ => end.subnets.extend(named(found, name, directory, plan)),
        }
    }
    end
}

/// An address, or a subnet.
fn subnet(found: &mut Diagnostics, name: &LocatedValue<String>, text: &str) -> Option<Subnet> {
    let (address, prefix) = text.split_once('/').map_or((text, None), |(a, p)| (a, Some(p)));
    let parsed = address.parse::<IpAddr>().ok().and_then(|network| {
        let most = if network.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.map_or(Some(most), |prefix| prefix.parse().ok());
        Some(Subnet { network, prefix: prefix.filter(|prefix| *prefix <= most)? })
    });
    if parsed.is_none() {
        let shown = shorten(text);
        let message = format!("`{shown}` is not an address or a subnet such as 10.0.0.0/8");
        found.mistake(name.place, message);
    }
    parsed
}

/// The addresses of what has a name.
fn named(
    found: &mut Diagnostics,
    name: &LocatedValue<String>,
    directory: &Directory,
    plan: &Plan,
) -> Vec<Subnet> {
    let single = |address: IpAddr| Subnet {
        network: address,
        prefix: if address.is_ipv4() { 32 } else { 128 },
    };
    match directory.named(found, name) {
        None => Vec::new(),
        Some(NamedEntity::Lan(id)) => {
            let lan = &plan.lans[id.index()];
            lan.v4.into_iter().chain(lan.v6).collect()
        }
        Some(NamedEntity::Router(id)) => {
            let interfaces = plan.routers[id.index()].interfaces.iter();
            let v4 = |it: &windtunnel_model::plan::RouterInterface| it.v4.map(IpAddr::V4);
            let v6 = |it: &windtunnel_model::plan::RouterInterface| it.v6.map(IpAddr::V6);
            interfaces.flat_map(|it| v4(it).into_iter().chain(v6(it))).map(single).collect()
        }
        Some(other) => {
            let nodes = other.nodes().unwrap_or_default();
            let interfaces = nodes.iter().flat_map(|node| &plan.nodes[node.index()].interfaces);
            interfaces
                .flat_map(windtunnel_model::plan::NodeInterface::addresses)
                .map(single)
                .collect()
        }
    }
}
