//! Programs that share the link of their node: its queue then has a class for each of them.

use std::collections::BTreeMap;

use windtunnel_model::plan::{EventAction, NetworkModel};
use windtunnel_model::profile::{PropertySetting, QueueDiscipline, SendShare, Wf2qParameters};
use windtunnel_model::{Lane, LinkPatch, Plan, Rate};

use super::limits::NodeRateLimitKey;
use crate::decode::{LinkShareDraft, NodeDraft, ProgramDraft, ScenarioDraft};
use crate::error::Diagnostics;
use crate::position::LocatedValue;

/// Gives lanes their classes. The events have to be in the plan, and the rates that nodes bound.
pub(super) fn resolve(found: &mut Diagnostics, draft: &ScenarioDraft, plan: &mut Plan) {
    for node in &draft.nodes {
        let Some(first) = node.programs.iter().find_map(|program| program.share.as_ref()) else {
            continue;
        };
        if plan.model != NetworkModel::Hops {
            let why = draft.model.why.condition();
            let message =
                format!("send: {why} packets wait for their flows' shares, not for programs'");
            found.mistake_with_hint(first.place, message, "leave it out, or use `model: hops`");
            continue;
        }
        let members = plan.nodes.iter().filter(|member| member.group == node.name.value);
        let lanes: Vec<Option<Lane>> =
            members.map(|member| NodeRateLimitKey::Send.only_lane(member)).collect();
        for lane in lanes {
            if share(found, plan, node, first, lane).is_none() {
                break;
            }
        }
    }
}

/// Gives one lane the classes of a node's programs; `None` with a mistake.
fn share(
    found: &mut Diagnostics,
    plan: &mut Plan,
    node: &NodeDraft,
    first: &LocatedValue<LinkShareDraft>,
    lane: Option<Lane>,
) -> Option<()> {
    let name = &node.name.value;
    let mut refuse = |message: String, hint: &str| {
        found.mistake_with_hint(first.place, message, hint);
        None
    };
    let Some(lane) = lane else {
        let message = format!("programs of node `{name}` share one link, no more and no fewer");
        return refuse(message, "several links cannot share one budget: leave `send` out");
    };
    let link = &plan.links[lane.link.index()];
    let profile = &link.profiles[lane.direction.index()];
    let Some(rate) = profile.rate else {
        let message = format!("send: link `{}` has no rate that programs could share", link.name);
        return refuse(message, "give the link a `rate`, or the node `send: 1MB/s`");
    };
    if profile.discipline != QueueDiscipline::DropTail {
        let message = format!("send: the queue of link `{}` has another `discipline`", link.name);
        return refuse(message, "programs share by the discipline wf2q: leave the other one out");
    }
    let classes = Wf2qParameters { classes: classes(&node.programs), ..Wf2qParameters::default() };
    if let Some(message) = unfit(plan, lane, &classes) {
        return refuse(message, "leave one of the two out");
    }
    let least = least_rate(plan, lane, rate);
    if classes.reserved() > least.bits_per_second() {
        let (rate, place) = (least, last_min(&node.programs).unwrap_or(first).place);
        let asked = Rate::from_bits_per_second(classes.reserved())?;
        let message =
            format!("programs of node `{name}` have minimums of {asked}, and its link {rate}");
        found.mistake_with_hint(place, message, "lower them, or raise the rate");
        return None;
    }
    let profile = &mut plan.links[lane.link.index()].profiles[lane.direction.index()];
    profile.discipline = QueueDiscipline::Wf2q(classes);
    Some(())
}

/// One for each program, by the name of its file; of several with one name, numbered.
fn classes(programs: &[ProgramDraft]) -> Vec<SendShare> {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let class = |program: &ProgramDraft| {
        let file = program.argv.first().map_or("", String::as_str);
        let file = file.rsplit('/').next().unwrap_or(file).to_owned();
        let number = seen.entry(file.clone()).or_default();
        *number += 1;
        let name = if *number == 1 { file } else { format!("{file}-{number}") };
        program.share.as_ref().map(|share| share.value).unwrap_or_default().named(name)
    };
    programs.iter().map(class).collect()
}

fn last_min(programs: &[ProgramDraft]) -> Option<&LocatedValue<LinkShareDraft>> {
    let shares = programs.iter().rev().filter_map(|program| program.share.as_ref());
    shares.into_iter().find(|share| share.value.has_min())
}

/// Why a lane cannot have these classes: what it follows, or what events do to it.
fn unfit(plan: &Plan, lane: Lane, classes: &Wf2qParameters) -> Option<String> {
    let link = &plan.links[lane.link.index()];
    let traced = link.profiles[lane.direction.index()].traces.rate.is_some()
        || patches(plan, lane).any(|patch| patch.traces.rate.is_some());
    if traced && classes.reserved() > 0 {
        let name = &link.name;
        return Some(format!("send: link `{name}` follows a trace, which can be below any `min`"));
    }
    let replaced = patches(plan, lane).any(|patch| patch.discipline.is_some());
    replaced.then(|| format!("send: an event sets the `discipline` of link `{}`", link.name))
}

/// The least rate that a lane ever has by the file.
fn least_rate(plan: &Plan, lane: Lane, rate: Rate) -> Rate {
    let later = patches(plan, lane).filter_map(|patch| match patch.rate {
        Some(PropertySetting::To(rate)) => Some(rate),
        _ => None,
    });
    later.fold(rate, Rate::min)
}

fn patches(plan: &Plan, lane: Lane) -> impl Iterator<Item = &LinkPatch> {
    let changes = plan.events.iter().filter_map(|event| match &event.action {
        EventAction::Link(change) => Some(&change.patches),
        _ => None,
    });
    changes.flatten().filter(move |(at, _)| *at == lane).map(|(_, patch)| patch)
}
