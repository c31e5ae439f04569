//! Names of links.

use std::collections::BTreeMap;

use windtunnel_model::name::{LINK_LETTERS_MAX, is_link};

use crate::error::Diagnostics;
use crate::text::shorten;

/// The names that links have.
#[derive(Debug, Default)]
pub(super) struct LinkNameRegistry {
    taken: BTreeMap<String, u32>,
    /// The last number tried for each pair of ends.
    numbers: BTreeMap<String, u32>,
}

impl LinkNameRegistry {
    /// Takes a name that the file gives, and those of its members if it is a group's.
    pub(super) fn reserve(
        &mut self,
        found: &mut Diagnostics,
        name: &str,
        place: crate::position::SourceLocation,
        members: Option<usize>,
    ) {
        if !is_link(name, LINK_LETTERS_MAX) {
            let shown = shorten(name);
            let message =
                format!("`{shown}` cannot name a link: use letters, digits, `-`, `_`, `.`");
            return found.mistake(place, message);
        }
        let members = members.into_iter().flat_map(|count| 1..=count);
        let all = std::iter::once(name.to_owned()).chain(members.map(|n| format!("{name}-{n}")));
        for name in all {
            if let Some(line) = self.taken.insert(name.clone(), place.line) {
                let message = format!("`{name}` names another link already, in line {line}");
                return found.mistake(place, message);
            }
        }
    }

    /// `a--b`, or the first of `a--b-2`, `a--b-3` … that is free.
    pub(super) fn automatic(&mut self, a: &str, b: &str) -> String {
        let plain = format!("{a}--{b}");
        let number = self.numbers.entry(plain.clone()).or_default();
        let mut name = plain.clone();
        while *number > 0 || self.taken.contains_key(&name) {
            *number = (*number).max(1) + 1;
            name = format!("{plain}-{number}");
            if !self.taken.contains_key(&name) {
                break;
            }
        }
        *number = (*number).max(1);
        self.taken.insert(name.clone(), 0);
        name
    }
}
