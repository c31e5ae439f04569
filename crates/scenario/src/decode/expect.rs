//! Expectations: what must hold at the end.

use std::fmt;
use std::str::FromStr;

use windtunnel_model::{Rate, Span};

use super::{At, Field, Fields};
use crate::error::Findings;
use crate::keys;

/// An expectation as the file has it.
#[derive(Debug)]
pub(crate) enum ExpectDraft {
    Exit { node: At<String>, code: Option<u8> },
    Path { ends: [At<String>; 2], rtt: Bounds<Span> },
    Link { link: At<String>, direction: At<String>, rate: Bounds<Rate> },
}

/// A least and a greatest value, one of them at the least.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds<T> {
    pub(crate) min: Option<T>,
    pub(crate) max: Option<T>,
}

/// The keys that say what is expected, each with those that go with it.
const SUBJECTS: [(&str, &[&str]); 3] = [
    ("node", &["node", "exit"]),
    ("path", &["path", "rtt"]),
    ("link", &["link", "direction", "rate"]),
];

impl Findings {
    pub(super) fn expectation(&mut self, field: Field<'_>) -> Option<ExpectDraft> {
        let fields = self.fields(field, "an expectation", keys::EXPECT)?;
        let found = SUBJECTS.iter().find_map(|(key, with)| Some((fields.find(key)?, *with)));
        let Some((subject, with)) = found else {
            if !fields.unknown {
                let message = "this expectation says not of what";
                let hint = "it needs `node` and `exit`, `path` and `rtt`, or `link` and `rate`";
                self.mistake_with_hint(fields.place, message, hint);
            }
            return None;
        };
        let known = |field: &Field<'_>| keys::EXPECT.contains(&field.key);
        let stray = fields.all().find(|field| known(field) && !with.contains(&field.key));
        if let Some(stray) = stray {
            let message = format!("`{}` does not go with `{}`", stray.key, subject.key);
            self.mistake(stray.place, message);
            return None;
        }
        match subject.key {
            "node" => self.exit(&fields, subject),
            "path" => self.path_rtt(&fields, subject),
            _ => self.link_rate(&fields, subject),
        }
    }

    fn exit(&mut self, fields: &Fields<'_>, subject: Field<'_>) -> Option<ExpectDraft> {
        let node = self.text_at(subject, "a node's name");
        let exit = self.required(fields, "exit", "this expectation")?;
        let code = match exit.scalar() {
            Some("any") => None,
            _ => {
                let code = self.integer(exit, 0..=255, "an exit code, or `any`")?;
                Some(u8::try_from(code).ok()?)
            }
        };
        Some(ExpectDraft::Exit { node: node?, code })
    }

    fn path_rtt(&mut self, fields: &Fields<'_>, subject: Field<'_>) -> Option<ExpectDraft> {
        let needed = "a list of two nodes";
        let names: Vec<_> = self.list(subject, needed)?.collect();
        let names: Vec<_> =
            names.into_iter().map(|name| self.text_at(name, "a name")).collect::<Option<_>>()?;
        let Ok(ends) = <[At<String>; 2]>::try_from(names) else {
            self.mistake(subject.wrong(), format!("`path` must be {needed}"));
            return None;
        };
        let rtt = self.required(fields, "rtt", "this expectation")?;
        Some(ExpectDraft::Path { ends, rtt: self.bounds(rtt, "a time such as 20ms")? })
    }

    fn link_rate(&mut self, fields: &Fields<'_>, subject: Field<'_>) -> Option<ExpectDraft> {
        let link = self.text_at(subject, "a link's name");
        let direction = fields.find("direction");
        if direction.is_none() && !fields.unknown {
            let hint = "write `direction: up`, `down`, or the ends as `from-to`";
            self.mistake_with_hint(fields.place, "this expectation lacks `direction`", hint);
        }
        let rate = self.required(fields, "rate", "this expectation");
        let direction = self.direction(direction?)?;
        let rate = self.bounds(rate?, "a rate such as 45mbit")?;
        Some(ExpectDraft::Link { link: link?, direction, rate })
    }

    fn bounds<T>(&mut self, field: Field<'_>, needed: &str) -> Option<Bounds<T>>
    where
        T: FromStr + PartialOrd + Copy + fmt::Display,
        T::Err: fmt::Display,
    {
        let fields = self.fields(field, "bounds", keys::BOUNDS)?;
        let mut read = |key| match fields.find(key) {
            Some(field) => self.quantity(field, needed).map(Some),
            None => Some(None),
        };
        let (min, max) = (read("min"), read("max"));
        let bounds: Bounds<T> = Bounds { min: min?, max: max? };
        match (bounds.min, bounds.max) {
            (None, None) if fields.unknown => return None,
            (None, None) => {
                self.mistake(field.wrong(), format!("`{}` needs `min`, `max` or both", field.key));
                return None;
            }
            (Some(min), Some(max)) if min > max => {
                let message = format!("`min` ({min}) is more than `max` ({max})");
                self.mistake(fields.place, message);
                return None;
            }
            _ => {}
        }
        Some(bounds)
    }
}
