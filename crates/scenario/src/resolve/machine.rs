//! What is about several machines changes nothing on one, and that is said.

use crate::decode::Draft;
use crate::error::Diagnostics;
use crate::position::Place;

/// On one machine, reports which keys of the file have no effect there: one notice for all.
pub(super) fn notice(found: &mut Diagnostics, draft: &Draft) {
    if draft.machines.several {
        return;
    }
    let mut written: Vec<(&str, Place)> = Vec::new();
    let mut note = |key: &'static str, place: Option<Place>| {
        if let (Some(place), false) = (place, written.iter().any(|(known, _)| *known == key)) {
            written.push((key, place));
        }
    };
    note("placement", draft.machines.placement.as_ref().map(|it| it.place));
    note("on-host-loss", draft.machines.on_host_loss.as_ref().map(|it| it.place));
    note("delays", draft.machines.delays.as_ref().map(|it| it.place));
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
