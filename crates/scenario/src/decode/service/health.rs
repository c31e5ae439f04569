//! Probes of replicas.

use serde_json::Value as Json;
use windtunnel_model::Span;
use windtunnel_model::plan::{Health, Probe};

use super::super::program::Words;
use super::super::{Decoder, Field};
use crate::grammar::{Definitions, Form, form, map};
use crate::text::{list, shorten};

map! {
    /// A probe: one of `tcp`, `http`, `command`.
    HealthKeys as "Health" {
        /// Opens a connection to the first TCP port, each time that this has passed.
        "tcp" TCP: Period,
        /// Asks the first TCP port for this path over HTTP; a status below 400 is healthy.
        "http" HTTP: HttpPath,
        /// Runs this command in the node of the replica; an exit code of 0 is healthy.
        "command" COMMAND: Words,
        /// With `http` and `command`: from one probe to the next; default 1s.
        "every" EVERY: Period,
        /// A probe that takes longer has failed; default 1s.
        "timeout" TIMEOUT: Period,
    }
}

/// A probe.
pub(super) struct HealthForm;

impl Form for HealthForm {
    type Value = Health;

    fn read(from: &mut Decoder<'_>, field: Field<'_>) -> Option<Health> {
        let fields = from.table::<HealthKeys>(field, "health")?;
        const PROBES: [&str; 3] = ["tcp", "http", "command"];
        let mut probes = fields.all().filter(|field| PROBES.contains(&field.key));
        let Some(first) = probes.next() else {
            if !fields.unknown {
                let message = format!("health lacks one of {}", list(&PROBES));
                from.mistake(fields.place, message);
            }
            return None;
        };
        if let Some(second) = probes.next() {
            let message = format!("`{}` does not go with `{}`", second.key, first.key);
            from.mistake_with_hint(second.place, message, "a service has one probe");
            return None;
        }
        if let (Some(every), "tcp") = (fields.get(HealthKeys::EVERY), first.key) {
            let message = "`every` does not go with `tcp`, which says it itself";
            from.mistake(every.place, message);
            return None;
        }
        let period = from.read(&fields, HealthKeys::TCP)?;
        let every = from.read_or(&fields, HealthKeys::EVERY, PERIOD)?;
        let http = from.read(&fields, HealthKeys::HTTP)?.map(Probe::Http);
        let command = from.read(&fields, HealthKeys::COMMAND)?;
        let command = command.map(|(words, _)| Probe::Command(words));
        Some(Health {
            probe: http.or(command).unwrap_or(Probe::Tcp),
            every: period.unwrap_or(every),
            timeout: from.read_or(&fields, HealthKeys::TIMEOUT, PERIOD)?,
        })
    }

    fn schema(definitions: &mut Definitions) -> Json {
        HealthKeys::definition(definitions)
    }
}

form! {
    /// A time that is not none.
    Period: Span, by read_period, like Span::schema
}

fn read_period(from: &mut Decoder<'_>, field: Field<'_>) -> Option<Span> {
    let period = Span::read(from, field)?;
    if period < Span::from_millis(1) {
        let message = format!("{}: `{period}` is less than 1ms", field.key);
        from.mistake(field.wrong(), message);
        return None;
    }
    Some(period)
}

form! {
    /// The path of an URL.
    HttpPath: String, by read_path, like String::schema
}

fn read_path(from: &mut Decoder<'_>, field: Field<'_>) -> Option<String> {
    let path = from.text(field, "a path such as /ready")?;
    if !path.starts_with('/') || path.contains(|c: char| c.is_control() || c == ' ') {
        let message = format!("http: `{}` is not a path such as /ready", shorten(path));
        from.mistake(field.wrong(), message);
        return None;
    }
    Some(path.to_owned())
}

/// From one probe to the next, and the longest that one may take.
const PERIOD: Span = Span::from_secs(1);
