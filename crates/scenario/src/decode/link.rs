//! Links and their properties.

use windtunnel_model::{LinkPatch, Traces};

use super::{At, Field, Fields};
use crate::error::Findings;
use crate::keys;
use crate::position::Place;
use crate::preset::Preset;

/// A link as the file has it.
#[derive(Debug)]
pub(crate) struct LinkDraft {
    pub(crate) place: Place,
    pub(crate) name: Option<At<String>>,
    pub(crate) between: [At<String>; 2],
    pub(crate) keys: LinkKeys,
}

/// Properties that were written for both directions, and for each; a preset is below both.
#[derive(Debug, Clone, Default)]
pub(crate) struct LinkKeys {
    pub(crate) preset: Option<&'static Preset>,
    pub(crate) both: LinkPatch,
    /// Up and down; they win over `both`.
    pub(crate) each: [LinkPatch; 2],
    /// Where each key of `both`, up and down was written.
    places: Vec<(&'static str, Place)>,
}

impl LinkKeys {
    /// What is changed for one direction.
    pub(crate) fn patch(&self, direction: usize) -> LinkPatch {
        let written = overlay(&self.both, &self.each[direction]);
        match self.preset {
            Some(preset) => overlay(&preset.patch(direction), &written),
            None => written,
        }
    }

    /// Where `key` was written, for whatever direction.
    pub(crate) fn place(&self, key: &str) -> Option<Place> {
        self.places.iter().find(|(known, _)| *known == key).map(|(_, place)| *place)
    }
}

impl Findings {
    pub(super) fn link(&mut self, field: Field<'_>) -> Option<LinkDraft> {
        let fields = self.fields(field, "a link", keys::LINK)?;
        let keys = self.link_keys(&fields);
        let name = fields.find("name").map(|name| self.text_at(name, "a name"));
        let between = self.required(&fields, "between", "this link")?;
        let between = self.between(between)?;
        let name = match name {
            Some(name) => Some(name?),
            None => None,
        };
        Some(LinkDraft { place: fields.place, name, between, keys })
    }

    fn between(&mut self, field: Field<'_>) -> Option<[At<String>; 2]> {
        let needed = "a list of two names of nodes, groups, routers or LANs";
        let names: Vec<_> = self.list(field, needed)?.collect();
        let names: Vec<_> =
            names.into_iter().map(|item| self.text_at(item, "names")).collect::<Option<_>>()?;
        let count = names.len();
        let pair = <[At<String>; 2]>::try_from(names).ok();
        if pair.is_none() {
            let message = format!("`between` must be {needed}, here are {count}");
            self.mistake(field.wrong(), message);
        }
        pair
    }

    /// `defaults.link` and `set`.
    pub(super) fn link_set(&mut self, field: Field<'_>, what: &str) -> LinkKeys {
        match self.fields(field, what, keys::BOTH) {
            Some(fields) => self.link_keys(&fields),
            None => LinkKeys::default(),
        }
    }

    fn link_keys(&mut self, fields: &Fields<'_>) -> LinkKeys {
        let mut found = LinkKeys::default();
        if let Some(field) = fields.find("preset") {
            found.preset = self.choice(field, &Preset::choices());
            found.places.push(("preset", field.wrong()));
        }
        self.properties(fields, &mut found.both, &mut found.places);
        for (index, key) in ["up", "down"].into_iter().enumerate() {
            let Some(field) = fields.find(key) else { continue };
            let what = format!("one direction (`{key}`)");
            if let Some(fields) = self.fields(field, &what, keys::DIRECTION) {
                self.properties(&fields, &mut found.each[index], &mut found.places);
            }
        }
        found
    }

    fn properties(
        &mut self,
        fields: &Fields<'_>,
        patch: &mut LinkPatch,
        places: &mut Vec<(&'static str, Place)>,
    ) {
        for key in keys::DIRECTION {
            if let Some(field) = fields.find(key) {
                let before = patch.clone();
                self.property(field, patch);
                if *key == "trace" {
                    self.check_trace_alone(fields, &before, patch);
                }
                places.push((key, field.wrong()));
            }
        }
    }
}

/// `under` with what `over` changes.
pub(crate) fn overlay(under: &LinkPatch, over: &LinkPatch) -> LinkPatch {
    let (under, over) = (under.clone(), over.clone());
    // A trace goes with the value that it gives.
    let traces = Traces {
        rate: if over.rate.is_some() { over.traces.rate } else { under.traces.rate },
        latency: if over.latency.is_some() { over.traces.latency } else { under.traces.latency },
        loss: if over.loss.is_some() { over.traces.loss } else { under.traces.loss },
    };
    LinkPatch {
        traces,
        latency: over.latency.or(under.latency),
        jitter: over.jitter.or(under.jitter),
        loss: over.loss.or(under.loss),
        duplicate: over.duplicate.or(under.duplicate),
        corrupt: over.corrupt.or(under.corrupt),
        reorder: over.reorder.or(under.reorder),
        rate: over.rate.or(under.rate),
        overhead: over.overhead.or(under.overhead),
        mtu: over.mtu.or(under.mtu),
        queue: over.queue.or(under.queue),
        discipline: over.discipline.or(under.discipline),
    }
}
