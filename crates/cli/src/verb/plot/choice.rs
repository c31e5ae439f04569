//! Which link directions are drawn.

use std::str::FromStr;

use windtunnel_scenario::nearest;

use super::document::{PlotDirectedLink, PlotRun};
use crate::exit::ExitCategory;
use crate::failure::VerbFailure;

/// A link, or one direction of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LinkChoice {
    link: String,
    direction: Option<String>,
}

impl FromStr for LinkChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (link, direction) = match text.split_once(':') {
            Some((_, "")) | Some(("", _)) => {
                return Err("write LINK or LINK:DIRECTION, such as ocean:up".to_owned());
            }
            Some((link, direction)) => (link, Some(direction.to_owned())),
            None => (text, None),
        };
        Ok(LinkChoice { link: link.to_owned(), direction })
    }
}

impl LinkChoice {
    /// Whether it is the link of this name, or a direction of it.
    pub(super) fn is_of(&self, link: &str) -> bool {
        self.link == link
    }

    /// The lanes of a run that are meant.
    pub(super) fn lanes(&self, run: &PlotRun) -> Result<Vec<usize>, VerbFailure> {
        let LinkChoice { link, direction } = self;
        let of_link: Vec<(usize, &PlotDirectedLink)> =
            run.lanes.iter().enumerate().filter(|(_, lane)| lane.link == *link).collect();
        if of_link.is_empty() {
            let mut names: Vec<&str> = run.lanes.iter().map(|lane| lane.link.as_str()).collect();
            names.dedup();
            let text = format!("the run {} has no link `{link}`", run.id);
            return Err(VerbFailure::new(ExitCategory::Usage, text).hint(hint(link, &names)));
        }
        let Some(direction) = direction else {
            return Ok(of_link.into_iter().map(|(index, _)| index).collect());
        };
        let meant = |&(position, &(_, lane)): &(usize, &(usize, &PlotDirectedLink))| match direction
            .as_str()
        {
            "up" => position % 2 == 0,
            "down" => position % 2 == 1,
            name => lane.direction == name,
        };
        let found: Vec<usize> =
            of_link.iter().enumerate().filter(meant).map(|(_, (index, _))| *index).collect();
        if found.is_empty() {
            let names = of_link.iter().map(|(_, lane)| lane.direction.as_str());
            let names: Vec<&str> = ["up", "down"].into_iter().chain(names).collect();
            let text = format!("the link `{link}` has no direction `{direction}`");
            return Err(VerbFailure::new(ExitCategory::Usage, text).hint(hint(direction, &names)));
        }
        Ok(found)
    }
}

/// The name that is meant, or those that there are.
fn hint(name: &str, names: &[&str]) -> String {
    match nearest(name, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if names.len() <= NAMES_SHOWN => format!("it has {}", names.join(", ")),
        None => {
            let more = names.len() - NAMES_SHOWN;
            format!("it has {} and {more} more", names[..NAMES_SHOWN].join(", "))
        }
    }
}

const NAMES_SHOWN: usize = 20;
