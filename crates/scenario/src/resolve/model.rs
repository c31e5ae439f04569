//! What a network model cannot emulate is refused, not left out.

use windtunnel_model::expect::LinkFact;
use windtunnel_model::plan::NetworkModel;
use windtunnel_model::profile::{PropertySetting, QueueDiscipline};
use windtunnel_model::{LinkPatch, Plan};

use crate::decode::{LinkKeys, PathModelReason, ScenarioDraft, Subject};
use crate::error::Diagnostics;

/// Shares are exact below this many bits a second
/// (`windtunnel_sharing::SharesError::CapacityTooLarge`).
const RATE_END: u64 = 1 << 48;

/// Refuses what the file's network model has no place for.
pub(super) fn check(found: &mut Diagnostics, draft: &ScenarioDraft) {
    if draft.model.settled == NetworkModel::Hops {
        return;
    }
    let why = draft.model.why;
    for lan in &draft.lans {
        let message = format!("{} has no LANs, and `{}` is one", why.subject(), lan.name.value);
        found.mistake_with_hint(lan.name.place, message, why.remedy());
    }
    let links = draft.links.iter().map(|link| &link.keys);
    for keys in std::iter::once(&draft.link_defaults).chain(links) {
        refuse(found, why, keys);
    }
    for expectation in &draft.expect {
        let Subject::Link { link, facts, .. } = &expectation.subject else { continue };
        if facts.iter().any(|fact| matches!(fact, LinkFact::Queue(..))) {
            let message = format!("queue: {} packets wait at their sources", why.condition());
            let hint = format!("expect the path's round-trip time, or {}", why.remedy());
            found.mistake_with_hint(link.place, message, hint);
        }
    }
}

/// Refuses properties in an event that the plan's network model has no place for.
pub(super) fn check_keys(
    found: &mut Diagnostics,
    plan: &Plan,
    why: PathModelReason,
    keys: &LinkKeys,
) {
    if plan.model != NetworkModel::Hops {
        refuse(found, why, keys);
    }
}

fn refuse(found: &mut Diagnostics, why: PathModelReason, keys: &LinkKeys) {
    let refused = [0, 1].into_iter().find_map(|direction| unfit(&keys.patch(direction)));
    let Some((key, message)) = refused else { return };
    if let Some(place) = keys.place(key).or_else(|| keys.place("preset")) {
        let message = format!("{key}: {} {message}", why.condition());
        found.mistake_with_hint(place, message, format!("leave it out, or {}", why.remedy()));
    }
}

/// What of a patch the model of paths has no place for: its key, and why.
pub(crate) fn unfit(patch: &LinkPatch) -> Option<(&'static str, &'static str)> {
    if patch.discipline.as_ref().is_some_and(|it| *it != QueueDiscipline::DropTail) {
        return Some(("discipline", "packets wait at their sources, not at this link"));
    }
    if let Some(PropertySetting::To(rate)) = patch.rate
        && rate.bits_per_second() >= RATE_END
    {
        return Some(("rate", "a link has less than 281 tbit, or no rate at all"));
    }
    patch.traces.rate.is_some().then_some(("rate", "a link's rate follows no trace"))
}

impl PathModelReason {
    fn subject(self) -> &'static str {
        match self {
            PathModelReason::Asked => "`model: paths`",
            PathModelReason::SeveralMachines => {
                "over several machines the model of paths is used, which"
            }
        }
    }

    pub(crate) fn condition(self) -> &'static str {
        match self {
            PathModelReason::Asked => "with `model: paths`",
            PathModelReason::SeveralMachines => {
                "over several machines the model of paths is used, where"
            }
        }
    }

    pub(crate) fn remedy(self) -> &'static str {
        match self {
            PathModelReason::Asked => "use `model: hops`",
            PathModelReason::SeveralMachines => "run it on one machine",
        }
    }
}
