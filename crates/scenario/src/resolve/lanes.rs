//! Lanes: which directions of which links a name means.

use windtunnel_model::{Lane, LinkDirection, LinkId, Plan};

use super::directory::{Directory, file_name};
use crate::error::Diagnostics;
use crate::position::LocatedValue;
use crate::text::shorten;

/// The lanes of the links called `name`, of one direction if that is given.
pub(super) fn lanes(
    found: &mut Diagnostics,
    directory: &Directory,
    plan: &Plan,
    name: &LocatedValue<String>,
    direction: Option<&LocatedValue<String>>,
) -> Option<Vec<Lane>> {
    let links = directory.links(found, name)?;
    let mut lanes = Vec::new();
    for link in links {
        let both = LinkDirection::BOTH.map(|direction| Lane { link: *link, direction });
        match direction {
            None => lanes.extend(both),
            Some(asked) => lanes.push(one_way(found, plan, *link, both, asked)?),
        }
    }
    Some(lanes)
}

fn one_way(
    found: &mut Diagnostics,
    plan: &Plan,
    link: LinkId,
    both: [Lane; 2],
    asked: &LocatedValue<String>,
) -> Option<Lane> {
    let ways = both.map(|lane| {
        let (from, to) = (plan.lane_start(lane), plan.lane_end(lane));
        let common = format!("{}-{}", file_name(plan, from), file_name(plan, to));
        (lane, plan.lane_name(lane), common)
    });
    let matches = |(lane, name, common): &&(Lane, String, String)| {
        [lane.direction.name(), name, common].contains(&asked.value.as_str())
    };
    let fitting: Vec<Lane> = ways.iter().filter(matches).map(|(lane, ..)| *lane).collect();
    let name = &plan.links[link.index()].name;
    let hint = format!("write `up` (`{}`) or `down` (`{}`)", ways[0].1, ways[1].1);
    let message = match fitting.as_slice() {
        [lane] => return Some(*lane),
        [] => format!("`{}` is not a direction of `{name}`", shorten(&asked.value)),
        _ => format!("`{}` may be either direction of `{name}`", shorten(&asked.value)),
    };
    found.mistake_with_hint(asked.place, message, hint);
    None
}
