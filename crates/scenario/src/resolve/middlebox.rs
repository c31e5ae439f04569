//! Routers that translate or filter: their sides, the addresses that they name, and what cannot be.

mod rule;
mod side;

use std::net::Ipv4Addr;

use windtunnel_model::plan::{
    Firewall, ForwardedPort, Middlebox, MiddleboxSide, NatBehaviour, NetworkModel,
};
use windtunnel_model::realm::{AddressRealms, BypassedNat};
use windtunnel_model::{Plan, RouterId};

use super::directory::Directory;
use crate::decode::{FirewallDraft, ForwardDraft, NatDraft, RouterDraft, ScenarioDraft};
use crate::error::Diagnostics;
use crate::position::LocatedValue;
use crate::text::shorten;

/// The middleboxes of the file, once all interfaces have their addresses.
pub(super) fn resolve(
    found: &mut Diagnostics,
    draft: &ScenarioDraft,
    directory: &Directory,
    plan: &mut Plan,
) {
    if !found.is_clean() {
        return;
    }
    let mut middleboxes = Vec::new();
    for (index, router) in draft.routers.iter().enumerate() {
        if !router.is_middlebox() {
            continue;
        }
        let id = RouterId::from_index(index);
        refuse_model(found, draft, router);
        if let Some(sides) = side::resolve(found, router, id, directory, plan) {
            let mut middlebox = Middlebox { router: id, sides, nat: None, firewall: None };
            if let Some(written) = &router.nat {
                let nat = nat(found, draft, directory, plan, &middlebox, written);
                middlebox.nat = Some(nat);
            }
            if let Some(LocatedValue { value, .. }) = &router.firewall {
                middlebox.firewall = Some(firewall(found, value, directory, plan));
            }
            middleboxes.push(middlebox);
        }
    }
    plan.middleboxes = middleboxes;
    if !found.is_clean() {
        return;
    }
    if let Err(BypassedNat(router)) = AddressRealms::of(plan) {
        let router = &draft.routers[router.index()];
        let place = router.nat.as_ref().map_or(router.name.place, |nat| nat.place);
        let name = &router.name.value;
        let message = format!("nat: `{name}` is not the only way between its sides");
        let hint = "answers have to come back by the NAT that has translated what they answer: \
                    join the sides by one router";
        found.mistake_with_hint(place, message, hint);
        return;
    }
    check_forwards(found, draft, plan);
    notice_v6(found, draft, plan);
}

/// Refuses what the network's model has no place for.
fn refuse_model(found: &mut Diagnostics, draft: &ScenarioDraft, router: &RouterDraft) {
    if draft.model.settled == NetworkModel::Hops {
        return;
    }
    let why = draft.model.why;
    let nat = router.nat.as_ref().map(|nat| (nat.place, "nat"));
    let firewall = router.firewall.as_ref().map(|firewall| (firewall.place, "firewall"));
    for (place, key) in [nat, firewall].into_iter().flatten() {
        let message = format!(
            "{key}: {} packets wait at their sources, where the way behind a middlebox is not known",
            why.condition()
        );
        found.mistake_with_hint(place, message, why.remedy());
    }
}

fn nat(
    found: &mut Diagnostics,
    draft: &ScenarioDraft,
    directory: &Directory,
    plan: &Plan,
    middlebox: &Middlebox,
    written: &LocatedValue<NatDraft>,
) -> NatBehaviour {
    let LocatedValue { value: nat, place } = written;
    if draft.pools.v4.is_none() {
        let message = "nat: IPv4 is off, and nothing else is translated";
        let hint = "leave `ipv4: false` out; an IPv6 prefix is not translated (NPTv6)";
        found.mistake_with_hint(*place, message, hint);
    }
    let mut model = NatBehaviour::new(nat.kind.0, nat.kind.1);
    model.allocation = nat.allocation.unwrap_or(model.allocation);
    model.ports = nat.ports;
    (model.timeouts, model.refresh, model.hairpin) = (nat.timeouts, nat.refresh, nat.hairpin);
    if nat.forwards.len() > NatBehaviour::FORWARDS_MAX {
        let (count, most) = (nat.forwards.len(), NatBehaviour::FORWARDS_MAX);
        found.mistake(*place, format!("forward: {count} ports are more than {most}"));
        return model;
    }
    for forward in &nat.forwards {
        let known =
            |it: &ForwardedPort| (it.transport, it.port) == (forward.transport, forward.port.value);
        if model.forwards.iter().any(known) {
            let (port, transport) = (forward.port.value, forward.transport.name());
            let message = format!("forward: {port}/{transport} is forwarded twice");
            found.mistake(forward.port.place, message);
            continue;
        }
        let to = forwarded(found, forward, directory, plan);
        model.forwards.extend(to.map(|(to, to_port)| ForwardedPort {
            transport: forward.transport,
            port: forward.port.value,
            to,
            to_port,
        }));
    }
    debug_assert!(middlebox.sides.contains(&MiddleboxSide::Inside));
    model
}

/// The address and port that a forwarded port is for.
fn forwarded(
    found: &mut Diagnostics,
    forward: &ForwardDraft,
    directory: &Directory,
    plan: &Plan,
) -> Option<(Ipv4Addr, u16)> {
    let LocatedValue { value, place } = &forward.to;
    let (name, port) = match value.split_once(':') {
        None => (value.as_str(), Some(forward.port.value)),
        Some((name, port)) => (name, port.parse::<u16>().ok().filter(|port| *port > 0)),
    };
    let Some(port) = port else {
        let message = format!("to: `{}` has no port behind the colon", shorten(value));
        found.mistake_with_hint(*place, message, "write a node and a port, such as `web:80`");
        return None;
    };
    let named = LocatedValue { value: name.to_owned(), place: *place };
    let node = directory.node(found, &named)?;
    let address = plan.nodes[node.index()].interfaces.iter().find_map(|it| it.v4);
    if address.is_none() {
        found.mistake(*place, format!("to: `{name}` has no IPv4 address"));
    }
    Some((address?, port))
}

/// Forwarded ports lead inside.
fn check_forwards(found: &mut Diagnostics, draft: &ScenarioDraft, plan: &Plan) {
    let Ok(Some(realms)) = AddressRealms::of(plan) else { return };
    for middlebox in &plan.middleboxes {
        let (Some(nat), Some(draft)) =
            (&middlebox.nat, &draft.routers[middlebox.router.index()].nat)
        else {
            continue;
        };
        let router = &plan.routers[middlebox.router.index()];
        let inside = middlebox.sides.iter().position(|side| *side == MiddleboxSide::Inside);
        let inside = inside.and_then(|at| router.interfaces.get(at));
        let realm = inside.map(|it| realms.of_link(it.link));
        for (forward, draft) in nat.forwards.iter().zip(&draft.value.forwards) {
            let owner = plan.ports().find(|(_, it)| it.v4 == Some(forward.to));
            let there = owner.map(|(_, it)| realms.of_link(it.link));
            if there != realm {
                let (name, router) = (shorten(&draft.to.value), &router.name);
                let message = format!("to: `{name}` is not inside of the NAT of `{router}`");
                found.mistake(draft.to.place, message);
            }
        }
    }
}

/// Nothing hides what has an IPv6 address.
fn notice_v6(found: &mut Diagnostics, draft: &ScenarioDraft, plan: &Plan) {
    if draft.pools.v6.is_none() {
        return;
    }
    for middlebox in &plan.middleboxes {
        let router = &draft.routers[middlebox.router.index()];
        if let (Some(nat), None) = (&router.nat, &router.firewall) {
            let message = format!(
                "the NAT of `{}` translates IPv4 only: nodes inside are reached from outside by \
                 IPv6 (`ipv6: false` turns it off, `firewall: {{}}` keeps it out)",
                router.name.value
            );
            found.notice(nat.place, message);
        }
    }
}

fn firewall(
    found: &mut Diagnostics,
    draft: &FirewallDraft,
    directory: &Directory,
    plan: &Plan,
) -> Firewall {
    if draft.rules.len() > Firewall::RULES_MAX {
        let (count, most) = (draft.rules.len(), Firewall::RULES_MAX);
        let place = draft.rules[most].place;
        found.mistake(place, format!("rules: {count} rules are more than {most}"));
        return Firewall::default();
    }
    let rules = draft.rules.iter();
    Firewall {
        inbound: draft.inbound,
        outbound: draft.outbound,
        stateful: draft.stateful,
        timeouts: draft.timeouts,
        rules: rules.map(|it| rule::resolve(found, it, directory, plan)).collect(),
    }
}
