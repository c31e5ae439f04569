//! What is about several machines changes nothing on one, and that is said; and the other way round.

use windtunnel_model::plan::OnOverload;

use crate::decode::ScenarioDraft;
use crate::error::Diagnostics;
use crate::position::SourceLocation;

/// On one machine, reports which keys of the file have no effect there: one notice for all.
pub(super) fn notice(found: &mut Diagnostics, draft: &ScenarioDraft) {
    if draft.machines.several {
        return notice_of_freeze(found, draft);
    }
    let mut written: Vec<(&str, SourceLocation)> = Vec::new();
    let mut note = |key: &'static str, place: Option<SourceLocation>| {
        if let (Some(place), false) = (place, written.iter().any(|(known, _)| *known == key)) {
            written.push((key, place));
        }
    };
    note("placement", draft.machines.placement.as_ref().map(|it| it.place));
    note("on-host-loss", draft.machines.on_host_loss.as_ref().map(|it| it.place));
    note("delays", draft.machines.delays.as_ref().map(|it| it.place));
    note("host-timeout", draft.machines.host_timeout.as_ref().map(|it| it.place));
    let nodes = draft.nodes.iter().map(|node| &node.keys);
    for keys in std::iter::once(&draft.node_defaults).chain(nodes) {
        note("pin", keys.pin.as_ref().map(|it| it.place));
    }
    let Some(first) = written.iter().map(|(_, place)| *place).min() else { return };
    let keys: Vec<String> = written.iter().map(|(key, _)| format!("`{key}`")).collect();
    let (verb, what) = if keys.len() == 1 { ("is", "it does") } else { ("are", "they do") };
    let keys = keys.join(", ");
    found.notice(first, format!("{keys} {verb} for several machines: on one {what} nothing"));
}

/// No machine waits for another.
fn notice_of_freeze(found: &mut Diagnostics, draft: &ScenarioDraft) {
    if let Some(policy) = &draft.on_overload
        && policy.value == OnOverload::Freeze
    {
        let text = "on-overload: over several machines `freeze` pauses the programs of the machine \
                    that is behind, and no other: to the programs elsewhere they stand still";
        found.notice(policy.place, text.to_owned());
    }
}
