//! When a program counts as ready.

use windtunnel_model::Span;
use windtunnel_model::plan::Ready;

use super::node::ReadyDraft;
use super::{Field, Fields};
use crate::error::Findings;
use crate::keys;
use crate::text::shorten;
use crate::tree::Kind;

impl Findings {
    /// `ready`: a text, or a map that also says how long it may take.
    pub(super) fn ready(&mut self, field: Field<'_>) -> Option<ReadyDraft> {
        if let Kind::Map(_) = field.value.kind {
            let fields = self.fields(field, "`ready`", keys::READY)?;
            return self.ready_form(field, &fields);
        }
        Some(ReadyDraft { what: self.ready_text(field)?, within: None })
    }

    fn ready_text(&mut self, field: Field<'_>) -> Option<Ready> {
        let text = self.text(field, &format!("{FORMS}, or a map"))?;
        match text.split_once(':') {
            None if text == "exit" => Some(Ready::Exit),
            None if text == "listen" => Some(Ready::Listen),
            Some(("tcp", port)) => self.ready_port(field, port),
            Some(("unix", path)) if !path.is_empty() => Some(Ready::Unix(path.to_owned())),
            Some(("log", pattern)) if !pattern.is_empty() => self.ready_log(field, pattern),
            _ => {
                self.mistake(field.wrong(), format!("ready: `{}` is not {FORMS}", shorten(text)));
                None
            }
        }
    }

    /// `{tcp: 80, timeout: 5s}`.
    fn ready_form(&mut self, field: Field<'_>, fields: &Fields<'_>) -> Option<ReadyDraft> {
        let within = match fields.find("timeout") {
            Some(timeout) => Some(self.ready_timeout(timeout)?),
            None => None,
        };
        let known = |field: &Field<'_>| field.key != "timeout" && keys::READY.contains(&field.key);
        let conditions: Vec<Field<'_>> = fields.all().filter(known).collect();
        let what = match conditions.as_slice() {
            [condition] => self.ready_condition(*condition)?,
            _ if fields.unknown => return None,
            [] => {
                let message = "`ready` has no condition";
                let hint = "it has one of tcp, listen, unix, log, exit: {tcp: 80, timeout: 5s}";
                self.mistake_with_hint(field.place, message, hint);
                return None;
            }
            [_, second, ..] => {
                self.mistake(second.place, "`ready` has more than one condition");
                return None;
            }
        };
        Some(ReadyDraft { what, within })
    }

    fn ready_condition(&mut self, field: Field<'_>) -> Option<Ready> {
        match field.key {
            "listen" | "exit" => {
                if !self.flag(field)? {
                    let message = format!("`{}: false` is no condition", field.key);
                    self.mistake(field.wrong(), message);
                    return None;
                }
                Some(if field.key == "exit" { Ready::Exit } else { Ready::Listen })
            }
            "tcp" => {
                let port = self.text(field, "a TCP port")?;
                self.ready_port(field, port)
            }
            "unix" => {
                let path = self.text(field, "the path of a socket")?;
                Some(Ready::Unix(path.to_owned()))
            }
            _ => {
                let pattern = self.text(field, "a regular expression")?;
                self.ready_log(field, pattern)
            }
        }
    }

    fn ready_timeout(&mut self, field: Field<'_>) -> Option<Span> {
        let within: Span = self.quantity(field, "a time such as 5s")?;
        if within.is_zero() {
            self.mistake(field.wrong(), "timeout: nothing is ready in no time");
            return None;
        }
        Some(within)
    }

    fn ready_port(&mut self, field: Field<'_>, port: &str) -> Option<Ready> {
        let parsed = port.parse().ok().filter(|port| *port != 0);
        if parsed.is_none() {
            let message = format!("ready: `{}` is no TCP port from 1 to 65535", shorten(port));
            self.mistake(field.wrong(), message);
        }
        parsed.map(Ready::Tcp)
    }

    fn ready_log(&mut self, field: Field<'_>, pattern: &str) -> Option<Ready> {
        self.check_regex(field, pattern).then(|| Ready::Log(pattern.to_owned()))
    }
}

const FORMS: &str = "`tcp:PORT`, `listen`, `unix:PATH`, `log:REGEX` or `exit`";
