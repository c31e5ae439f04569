//! Reservations: what is part of which, and whether it fits.

use windtunnel_model::plan::ResourceReservation;
use windtunnel_model::{Bytes, Plan, ReservationId};

use super::directory::Directory;
use super::limits::cores;
use crate::decode::{ReservationDraft, ScenarioDraft};
use crate::error::Diagnostics;
use crate::position::LocatedValue;

/// The nodes have to be in the plan.
pub(super) fn resolve(
    found: &mut Diagnostics,
    draft: &ScenarioDraft,
    directory: &Directory,
    plan: &mut Plan,
) {
    let reservations = draft.reserve.iter().map(|it| ResourceReservation {
        name: it.name.value.clone(),
        parent: None,
        demand: it.limits.demand(),
    });
    plan.reservations = reservations.collect();
    for (index, reservation) in draft.reserve.iter().enumerate() {
        let id = ReservationId::from_index(index);
        if reservation.of.is_empty() {
            let message = format!("reservation `{}` is `of` nothing", reservation.name.value);
            found.mistake(reservation.name.place, message);
        }
        for part in &reservation.of {
            match plan.reservation_named(&part.value) {
                Some(inner) => put_within(found, part, inner, id, plan),
                None => put_nodes(found, part, directory, id, plan),
            }
        }
    }
    if found.is_clean() {
        let drafts = draft.reserve.iter().enumerate();
        drafts.for_each(|(index, it)| fits(found, it, ReservationId::from_index(index), plan));
    }
}

fn put_nodes(
    found: &mut Diagnostics,
    part: &LocatedValue<String>,
    directory: &Directory,
    id: ReservationId,
    plan: &mut Plan,
) {
    for node in directory.nodes(found, part).unwrap_or_default() {
        let own = &mut plan.nodes[node.index()].reservation;
        if let Some(other) = own.replace(id) {
            return again(found, part, other, plan);
        }
    }
}

fn put_within(
    found: &mut Diagnostics,
    part: &LocatedValue<String>,
    inner: ReservationId,
    id: ReservationId,
    plan: &mut Plan,
) {
    if let Some(other) = plan.reservations[inner.index()].parent {
        return again(found, part, other, plan);
    }
    let parent = |it: &ReservationId| plan.reservations[it.index()].parent;
    let mut around = std::iter::successors(Some(id), parent);
    if around.any(|it| it == inner) {
        let message = format!("reservation `{}` would be within itself", part.value);
        return found.mistake(part.place, message);
    }
    plan.reservations[inner.index()].parent = Some(id);
}

fn again(found: &mut Diagnostics, part: &LocatedValue<String>, other: ReservationId, plan: &Plan) {
    let other = &plan.reservations[other.index()].name;
    let message = format!("`{}` is part of reservation `{other}` already", part.value);
    found.mistake(part.place, message);
}

/// What is reserved within it is no more than it has.
fn fits(found: &mut Diagnostics, draft: &ReservationDraft, id: ReservationId, plan: &Plan) {
    let [cpu, memory] = plan.reserved_within(id);
    let demand = &plan.reservations[id.index()].demand;
    let name = &draft.name.value;
    let mut refuse = |key: &str, asked: String, has: String| {
        let message =
            format!("parts of reservation `{name}` reserve {asked} of its {has} of `{key}`");
        let hint = "`{limit: ...}` limits a part and reserves nothing for it";
        found.mistake_with_hint(draft.name.place, message, hint);
    };
    let has = demand.cpu_reserved_millis.or(demand.cpu_millis).map(u64::from);
    if let Some(has) = has.filter(|has| cpu > *has) {
        refuse("cpu", cores(cpu), cores(has));
    }
    if let Some(has) = demand.memory_reserved.or(demand.memory).filter(|has| memory > has.0) {
        refuse("memory", Bytes(memory).to_string(), has.to_string());
    }
}
