//! What a network model cannot emulate is refused, not left out.

use windtunnel_model::plan::NetworkModel;
use windtunnel_model::profile::{Discipline, Setting};
use windtunnel_model::{LinkPatch, Plan};

use crate::decode::{Draft, LinkKeys};
use crate::error::Findings;

/// Shares are exact below this many bits a second (`windtunnel_sharing::SharesError::CapacityTooLarge`).
const RATE_END: u64 = 1 << 48;

const HINT: &str = "leave it out, or use `model: hops`";

/// Refuses what the file's network model has no place for.
pub(super) fn check(found: &mut Findings, draft: &Draft, plan: &Plan) {
    if plan.model == NetworkModel::Hops {
        return;
    }
    for lan in &draft.lans {
        let message = format!("`model: paths` has no LANs, and `{}` is one", lan.name.value);
        found.mistake_with_hint(lan.name.place, message, "use `model: hops`");
    }
    let links = draft.links.iter().map(|link| &link.keys);
    for keys in std::iter::once(&draft.link_defaults).chain(links) {
        check_keys(found, plan, keys);
    }
}

/// Refuses properties that the plan's network model has no place for.
pub(super) fn check_keys(found: &mut Findings, plan: &Plan, keys: &LinkKeys) {
    if plan.model == NetworkModel::Hops {
        return;
    }
    let refused = [0, 1].into_iter().find_map(|direction| unfit(&keys.patch(direction)));
    let Some((key, message)) = refused else { return };
    if let Some(place) = keys.place(key).or_else(|| keys.place("preset")) {
        found.mistake_with_hint(place, message, HINT);
    }
}

/// What of a patch the model of paths has no place for: its key, and why.
pub(crate) fn unfit(patch: &LinkPatch) -> Option<(&'static str, &'static str)> {
    if patch.discipline.as_ref().is_some_and(|it| *it != Discipline::DropTail) {
        let why = "discipline: with `model: paths` packets wait at their sources, not at this link";
        return Some(("discipline", why));
    }
    if let Some(Setting::To(rate)) = patch.rate
        && rate.bits_per_second() >= RATE_END
    {
        let why = "rate: with `model: paths` a link has less than 281 tbit, or no rate at all";
        return Some(("rate", why));
    }
    let why = "rate: with `model: paths` a link's rate follows no trace";
    patch.traces.rate.is_some().then_some(("rate", why))
}
