//! Middleboxes.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeSet;
use alloc::format;

use crate::plan::{
    Firewall, FirewallRule, IpTransport, Middlebox, MiddleboxSide, NatBehaviour, NetworkModel,
    Plan, PortRange, Timeouts,
};
use crate::realm::{AddressRealms, BypassedNat};

use crate::message::{PlanValidationError, ensure};

pub(super) fn validate(plan: &Plan) -> Result<(), PlanValidationError> {
    let ordered = plan.middleboxes.windows(2).all(|pair| pair[0].router < pair[1].router);
    ensure(ordered, || "middleboxes are not in the order of their routers".to_owned())?;
    for middlebox in &plan.middleboxes {
        let router = plan.routers.get(middlebox.router.index());
        let router =
            router.ok_or_else(|| PlanValidationError::new("a middlebox is at no router"))?;
        validate_one(router.interfaces.len(), middlebox).map_err(|error| {
            PlanValidationError::new(format!("router `{}`: {error}", router.name))
        })?;
    }
    ensure(plan.middleboxes.is_empty() || plan.model == NetworkModel::Hops, || {
        "middleboxes need the model of hops".to_owned()
    })?;
    AddressRealms::of(plan).map(|_| ()).map_err(|BypassedNat(router)| {
        let name = &plan.routers[router.index()].name;
        PlanValidationError::new(format!(
            "the NAT of `{name}` is not the only way between its sides"
        ))
    })
}

fn validate_one(interfaces: usize, middlebox: &Middlebox) -> Result<(), PlanValidationError> {
    let sides = &middlebox.sides;
    let both = sides.contains(&MiddleboxSide::Inside) && sides.contains(&MiddleboxSide::Outside);
    ensure(sides.len() == interfaces && both, || "its sides are not known".to_owned())?;
    let does = middlebox.nat.is_some() || middlebox.firewall.is_some();
    ensure(does, || "it is no middlebox".to_owned())?;
    middlebox.nat.iter().try_for_each(nat)?;
    middlebox.firewall.iter().try_for_each(firewall)
}

fn nat(nat: &NatBehaviour) -> Result<(), PlanValidationError> {
    timeouts(&nat.timeouts)?;
    nat.ports.iter().try_for_each(range)?;
    let count = nat.forwards.len();
    ensure(count <= NatBehaviour::FORWARDS_MAX, || format!("{count} forwarded ports"))?;
    let mut seen = BTreeSet::new();
    for forward in &nat.forwards {
        let fits = forward.transport != IpTransport::Icmp
            && forward.port != 0
            && forward.to_port != 0
            && seen.insert((forward.transport, forward.port));
        ensure(fits, || format!("port {} is not forwarded so", forward.port))?;
    }
    Ok(())
}

fn firewall(firewall: &Firewall) -> Result<(), PlanValidationError> {
    timeouts(&firewall.timeouts)?;
    let count = firewall.rules.len();
    ensure(count <= Firewall::RULES_MAX, || format!("{count} rules"))?;
    firewall.rules.iter().try_for_each(rule)
}

fn rule(rule: &FirewallRule) -> Result<(), PlanValidationError> {
    ensure(!rule.traffic.is_empty(), || "a rule is about nothing".to_owned())?;
    rule.traffic.iter().filter_map(|it| it.ports.as_ref()).try_for_each(range)?;
    let mut subnets = rule.from.subnets.iter().chain(&rule.to.subnets);
    let fits = subnets.all(|it| it.prefix <= if it.network.is_ipv4() { 32 } else { 128 });
    ensure(fits, || "a rule has a subnet that is none".to_owned())
}

fn range(range: &PortRange) -> Result<(), PlanValidationError> {
    ensure(range.first > 0 && range.first <= range.last, || {
        format!("ports {} to {} are none", range.first, range.last)
    })
}

fn timeouts(timeouts: &Timeouts) -> Result<(), PlanValidationError> {
    let fits = timeouts.all().all(|it| (Timeouts::LEAST..=Timeouts::MOST).contains(&it));
    ensure(fits, || "a time-out is too short or too long".to_owned())
}
