//! Which nodes get to which through NATs.

use windtunnel_model::expect::ExpectationClaim;
use windtunnel_model::plan::Node;
use windtunnel_model::realm::AddressRealms;
use windtunnel_model::{NodeId, Plan};

use crate::decode::{ScenarioDraft, Subject};
use crate::error::{Diagnostics, ScenarioNotice};

/// Refuses to measure a path that no packet takes, and says which nodes others do not get to: that
/// two nodes are behind NATs is no mistake, as such networks are.
pub(super) fn check(found: &mut Diagnostics, draft: &ScenarioDraft, plan: &Plan) {
    let Ok(Some(realms)) = AddressRealms::of(plan) else { return };
    let realm_of = |node: NodeId| {
        let interface = plan.nodes[node.index()].interfaces.first()?;
        Some(realms.of_link(interface.link))
    };
    // Each fact of a draft has become an expectation.
    let drafts = draft.expect.iter().filter_map(|expectation| match &expectation.subject {
        Subject::Path { ends, facts, .. } => Some(std::iter::repeat_n(ends, facts.len())),
        _ => None,
    });
    let paths = plan.expectations.iter().filter_map(|expectation| match expectation.claim {
        ExpectationClaim::Path { from, to, .. } => Some((from, to)),
        _ => None,
    });
    for (ends, (from, to)) in drafts.flatten().zip(paths) {
        let (Some(here), Some(there)) = (realm_of(from), realm_of(to)) else { continue };
        let sends = plan.nodes[from.index()].interfaces.iter();
        let reaches = |link| realms.reaches(realms.of_link(link), there);
        if here != there && !sends.clone().any(|it| reaches(it.link)) {
            let [a, b] = ends;
            let message = format!(
                "`{}` is behind a NAT, where no packet of `{}` gets by its address",
                b.value, a.value
            );
            found.mistake_with_hint(b.place, message, "measure the path from inside to outside");
        }
    }
    notice(found, plan, &realms);
}

/// Says which nodes are behind which NATs, in one notice.
fn notice(found: &mut Diagnostics, plan: &Plan, realms: &AddressRealms) {
    let nats = plan.middleboxes.iter().filter(|it| it.nat.is_some());
    let mut behind = Vec::new();
    for middlebox in nats {
        let router = &plan.routers[middlebox.router.index()];
        let inside = middlebox.inside().filter_map(|at| router.interfaces.get(at));
        let Some(realm) = inside.map(|it| realms.of_link(it.link)).next() else { continue };
        let is_there = |node: &&Node| {
            let mut of_node = node.interfaces.iter().map(|it| realms.of_link(it.link)).peekable();
            of_node.peek().is_some() && of_node.all(|it| it == realm)
        };
        let mut names: Vec<&str> =
            plan.nodes.iter().filter(is_there).map(|node| node.group.as_str()).collect();
        names.dedup();
        behind.extend(names.into_iter().map(|node| format!("`{node}` ({})", router.name)));
    }
    if behind.is_empty() {
        return;
    }
    let more = behind.len().saturating_sub(SHOWN);
    behind.truncate(SHOWN);
    let others = if more == 0 { String::new() } else { format!(" and {more} more") };
    let message = format!(
        "behind NATs, and so reached from outside by their mappings only: {}{others}",
        behind.join(", ")
    );
    // It is what the file says, and no mistake.
    found.notices.push(ScenarioNotice { place: None, message });
}

/// Nodes in the notice.
const SHOWN: usize = 5;
