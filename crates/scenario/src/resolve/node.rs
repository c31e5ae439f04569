//! Nodes: groups expanded, defaults applied, programs complete.

use std::collections::BTreeMap;

use windtunnel_model::Lan;
use windtunnel_model::plan::{
    Node, Program, ProgramUser, ReadinessCondition, Restart, RootSource, Router,
};
use windtunnel_model::{NodeId, Plan, Span};

use super::directory::Directory;
use super::expansion::ExpansionBudget;
use super::{internet, limits, root};
use crate::decode::{NodeDraft, NodeKeys, ReadyDraft, ScenarioDraft};
use crate::error::Diagnostics;
use crate::source::ScenarioSource;
use crate::written::WrittenProgram;

pub(super) fn resolve(
    found: &mut Diagnostics,
    draft: &ScenarioDraft,
    source: &ScenarioSource<'_>,
    directory: &Directory,
    budget: &mut ExpansionBudget,
    plan: &mut Plan,
) {
    for node in &draft.nodes {
        let keys = node.keys.or(&draft.node_defaults);
        let root = root::resolve(&node.root, source.base_dir);
        let programs = programs(found, draft, node, &keys, source, directory);
        limits::within(found, node, &keys.limits.demand(), &programs);
        let count = node.count.as_ref().map_or(1, |count| count.value);
        let publish = node.publish.as_ref().map(|publish| &publish.value[..]).unwrap_or_default();
        let publish: Vec<_> = publish.iter().map(|port| port.value).collect();
        let each = programs.iter().map(weight).sum::<usize>() + 1;
        let all = each.saturating_mul(usize::try_from(count).unwrap_or(usize::MAX));
        if !budget.spend(found, all, node.name.place) {
            return;
        }
        if internet::is_outside(node) {
            plan.nodes.extend((0..count).map(|_| internet::node(node, &keys)));
            continue;
        }
        for member in 1..=count {
            let name = match node.count {
                Some(_) => format!("{}-{member}", node.name.value),
                None => node.name.value.clone(),
            };
            plan.nodes.push(Node {
                name,
                group: node.name.value.clone(),
                aliases: node.aliases.iter().map(|alias| alias.value.clone()).collect(),
                forward: keys.forward.unwrap_or(false),
                user: match &root {
                    Some(root) if root.is_unread_image() => {
                        node.keys.user.unwrap_or(ProgramUser::Image)
                    }
                    _ => keys.user.unwrap_or_default(),
                },
                private: keys.private.unwrap_or(false),
                // What has files of its own does not see the run folder.
                results: keys.results.unwrap_or(false) && root.is_none(),
                root: root.clone(),
                sysctl: keys.sysctl.clone(),
                pin: keys.pin.as_ref().map(|pin| pin.value.clone()),
                demand: keys.limits.demand(),
                reservation: None,
                receive_queue: keys.receive_queue,
                internet: None,
                publish: publish.clone(),
                interfaces: Vec::new(),
                programs: programs.clone(),
            });
        }
    }
    let routers = draft.routers.iter();
    let routers =
        routers.map(|router| Router { name: router.name.value.clone(), interfaces: Vec::new() });
    plan.routers.extend(routers);
    plan.lans.extend(draft.lans.iter().map(|lan| Lan {
        name: lan.name.value.clone(),
        v4: None,
        v6: None,
        attachments: Vec::new(),
    }));
}

fn programs(
    found: &mut Diagnostics,
    draft: &ScenarioDraft,
    node: &NodeDraft,
    keys: &NodeKeys,
    source: &ScenarioSource<'_>,
    directory: &Directory,
) -> Vec<Program> {
    let mut programs = Vec::new();
    let base = if node.root.source.is_some() { "/" } else { source.base_dir };
    for program in &node.programs {
        let keys = program.keys.or(&keys.program);
        let mut after: Vec<NodeId> = Vec::new();
        for name in &keys.after {
            let Some(nodes) = directory.nodes(found, name) else { continue };
            let entry = nodes.first().map(|node| &draft.nodes[directory.entry(*node)]);
            if entry.is_some_and(|entry| entry.programs.is_empty()) {
                let message = format!("`{}` has no program that could be ready", name.value);
                found.mistake(name.place, message);
            }
            after.extend(nodes);
        }
        after.sort_unstable();
        after.dedup();
        let start = keys.start.as_ref().map_or(Span::ZERO, |start| start.value);
        if let (Some(at), Some(duration)) = (&keys.start, draft.duration)
            && start >= duration
        {
            let message = format!("this program starts at {start}, when the run has ended");
            found.notice(at.place, message);
        }
        refuse_check_without_image(found, node, keys.ready.as_ref());
        let daemon = keys.daemon.unwrap_or(false);
        let restart = keys.restart.unwrap_or_default();
        if draft.duration.is_none() && !daemon && restart == Restart::Always {
            let message = format!(
                "`{}` is always restarted and is not a daemon: without `duration` this never ends",
                node.name.value
            );
            found.notice(node.name.place, message);
        }
        programs.push(Program {
            argv: program.argv.clone(),
            daemon,
            ready_within: keys.ready.as_ref().and_then(|ready| ready.within),
            ready: keys.ready.map(|ready| ready.what),
            after,
            start,
            cwd: keys.cwd.as_ref().map(|cwd| root::absolute(base, &cwd.value)),
            env: keys.env,
            restart,
            demand: program.limits.demand(),
        });
    }
    programs
}

/// The check of an image needs one.
fn refuse_check_without_image(
    found: &mut Diagnostics,
    node: &NodeDraft,
    ready: Option<&ReadyDraft>,
) {
    let source = node.root.source.as_ref();
    let is_image = source.is_some_and(|it| matches!(it.value, RootSource::Image { .. }));
    if let Some(ready) =
        ready.filter(|it| !is_image && matches!(it.what, ReadinessCondition::OfImage(_)))
    {
        let message = "ready: `healthcheck` is that of an `image`, which this node has not";
        found.mistake_with_hint(ready.place, message, "write `ready: command:WORDS`");
    }
}

/// Where programs are written, by the name of their node in the file.
pub(super) fn written(draft: &ScenarioDraft) -> BTreeMap<String, Vec<WrittenProgram>> {
    let of_node = |node: &NodeDraft| {
        let common = node.keys.or(&draft.node_defaults).program;
        let programs = node.programs.iter().map(|program| {
            let cwd = program.keys.cwd.as_ref().or(common.cwd.as_ref());
            let ready = program.keys.ready.as_ref().or(common.ready.as_ref());
            WrittenProgram {
                run: program.place,
                cwd: cwd.map(|cwd| cwd.place),
                ready: ready.map(|ready| ready.place),
            }
        });
        (node.name.value.clone(), programs.collect())
    };
    draft.nodes.iter().filter(|node| !node.programs.is_empty()).map(of_node).collect()
}

/// What a copy of a program takes, in things of some 64 bytes.
fn weight(program: &Program) -> usize {
    let texts = program.argv.iter().chain(program.env.keys()).chain(program.env.values());
    1 + texts.map(|text| 1 + text.len() / 64).sum::<usize>() + program.after.len() / 16
}
