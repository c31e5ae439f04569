//! When a program counts as ready.

use serde_json::{Value as Json, json};
use windtunnel_model::Span;
use windtunnel_model::plan::Ready;

use super::{Decoder, Field, Fields};
use crate::grammar::{Definitions, Form, Map, check_regex, form, map};
use crate::text::shorten;
use crate::tree::Kind;

/// When a program is ready, and how long that may take.
#[derive(Debug, Clone)]
pub(crate) struct ReadyDraft {
    pub(crate) what: Ready,
    pub(crate) within: Option<Span>,
}

map! {
    /// When a program counts as ready, by one condition, and how long that may take.
    ReadyForm {
        /// Something in the node listens on this TCP port.
        "tcp" TCP: Port,
        /// `true`: something in the node listens on some TCP port, or has bound some UDP port.
        "listen" LISTEN: True,
        /// Something in the node listens on the Unix socket with this path.
        "unix" UNIX: SocketPath,
        /// A line of its output matches this regular expression.
        "log" LOG: Pattern,
        /// `true`: it has exited with 0.
        "exit" EXIT: True,
        /// How long after its start; then the run ends as failed. Default: 1min, for `exit` as long
        /// as it takes.
        "timeout" TIMEOUT: Timeout,
    }
}

impl Form for ReadyDraft {
    type Value = ReadyDraft;

    fn read(from: &mut Decoder<'_>, field: Field<'_>) -> Option<ReadyDraft> {
        if let Kind::Map(_) = field.value.kind {
            let fields = from.table::<ReadyForm>(field, "`ready`")?;
            return read_map(from, field, &fields);
        }
        let text = from.text(field, &format!("{FORMS}, or a map"))?;
        Some(ReadyDraft { what: read_short(from, field, text)?, within: None })
    }

    fn schema(definitions: &mut Definitions) -> Json {
        let short = |definitions: &mut Definitions| {
            let description =
                "`tcp:PORT`, `listen` (some TCP or UDP port), `unix:PATH`, `log:REGEX` or `exit`.";
            let pattern = "^(exit|listen|tcp:[0-9]+|unix:.+|log:.+)$";
            definitions.text("Ready", description, pattern, "tcp:80")
        };
        definitions.any_of(
            "ReadyCondition",
            "When a program counts as ready.",
            &[
                ("The condition.", short),
                ("The condition, and how long it may take.", ReadyForm::definition),
            ],
        )
    }
}

fn read_short(from: &mut Decoder<'_>, field: Field<'_>, text: &str) -> Option<Ready> {
    match text.split_once(':') {
        None if text == "exit" => Some(Ready::Exit),
        None if text == "listen" => Some(Ready::Listen),
        Some(("tcp", port)) => read_port(from, field, port).map(Ready::Tcp),
        Some(("unix", path)) if !path.is_empty() => Some(Ready::Unix(path.to_owned())),
        Some(("log", pattern)) if !pattern.is_empty() => {
            check_regex(from, field, pattern).then(|| Ready::Log(pattern.to_owned()))
        }
        _ => {
            from.mistake(field.wrong(), format!("ready: `{}` is not {FORMS}", shorten(text)));
            None
        }
    }
}

/// `{tcp: 80, timeout: 5s}`.
fn read_map(from: &mut Decoder<'_>, field: Field<'_>, fields: &Fields<'_>) -> Option<ReadyDraft> {
    let within = from.read(fields, ReadyForm::TIMEOUT)?;
    let known = ReadyForm::list();
    let is_condition =
        |field: &Field<'_>| field.key != ReadyForm::TIMEOUT.name && known.contains(&field.key);
    let mut conditions = fields.all().filter(is_condition);
    if let Some(second) = conditions.nth(1).filter(|_| !fields.unknown) {
        from.mistake(second.place, "`ready` has more than one condition");
        return None;
    }
    let tcp = from.read(fields, ReadyForm::TCP)?.map(Ready::Tcp);
    let listen = from.read(fields, ReadyForm::LISTEN)?.map(|()| Ready::Listen);
    let unix = from.read(fields, ReadyForm::UNIX)?.map(Ready::Unix);
    let log = from.read(fields, ReadyForm::LOG)?.map(Ready::Log);
    let exit = from.read(fields, ReadyForm::EXIT)?.map(|()| Ready::Exit);
    let what = tcp.or(listen).or(unix).or(log).or(exit);
    if what.is_none() && !fields.unknown {
        let message = "`ready` has no condition";
        let hint = "it has one of tcp, listen, unix, log, exit: {tcp: 80, timeout: 5s}";
        from.mistake_with_hint(field.place, message, hint);
    }
    Some(ReadyDraft { what: what?, within })
}

/// A TCP port.
struct Port;

impl Form for Port {
    type Value = u16;

    fn read(from: &mut Decoder<'_>, field: Field<'_>) -> Option<u16> {
        let port = from.text(field, "a TCP port")?;
        read_port(from, field, port)
    }

    fn schema(_: &mut Definitions) -> Json {
        json!({"type": "integer", "minimum": 1, "maximum": 65535})
    }
}

fn read_port(from: &mut Decoder<'_>, field: Field<'_>, port: &str) -> Option<u16> {
    let parsed = port.parse().ok().filter(|port| *port != 0);
    if parsed.is_none() {
        let message = format!("ready: `{}` is not a TCP port from 1 to 65535", shorten(port));
        from.mistake(field.wrong(), message);
    }
    parsed
}

form! {
    /// `true`: the key stands there to say that this is the condition.
    True: (), by read_true, like bool::schema
}

fn read_true(from: &mut Decoder<'_>, field: Field<'_>) -> Option<()> {
    if !from.flag(field)? {
        from.mistake(field.wrong(), format!("`{}: false` is not a condition", field.key));
        return None;
    }
    Some(())
}

form! {
    /// The path of a Unix socket.
    SocketPath: String, by read_socket_path, like String::schema
}

fn read_socket_path(from: &mut Decoder<'_>, field: Field<'_>) -> Option<String> {
    from.text(field, "the path of a socket").map(str::to_owned)
}

form! {
    /// A regular expression.
    Pattern: String, by read_pattern, like String::schema
}

fn read_pattern(from: &mut Decoder<'_>, field: Field<'_>) -> Option<String> {
    let pattern = from.text(field, "a regular expression")?;
    check_regex(from, field, pattern).then(|| pattern.to_owned())
}

form! {
    /// How long it may take.
    Timeout: Span, by read_timeout, like Span::schema
}

fn read_timeout(from: &mut Decoder<'_>, field: Field<'_>) -> Option<Span> {
    let within = Span::read(from, field)?;
    if within.is_zero() {
        from.mistake(field.wrong(), "timeout: nothing is ready in no time");
        return None;
    }
    Some(within)
}

const FORMS: &str = "`tcp:PORT`, `listen`, `unix:PATH`, `log:REGEX` or `exit`";
