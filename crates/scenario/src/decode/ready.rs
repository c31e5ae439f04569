//! When a program counts as ready.

use serde_json::{Value as Json, json};
use windtunnel_model::Span;
use windtunnel_model::plan::{ReadinessCheck, ReadinessCheckSettings, ReadinessCondition};

use super::command::{CommandForm, split_words};
use super::service::Period;
use crate::grammar::{
    BoundedInteger, Decoder, Fields, SchemaAlternative, SchemaDefinitions, ValueForm, YamlMapEntry,
    check_regex, form, map,
};
use crate::position::SourceLocation;
use crate::text::shorten;
use crate::tree::YamlValueKind;

/// When a program is ready, and how long that may take.
#[derive(Debug, Clone)]
pub(crate) struct ReadyDraft {
    pub(crate) what: ReadinessCondition,
    pub(crate) within: Option<Span>,
    /// Where it is written.
    pub(crate) place: SourceLocation,
}

map! {
    /// When a program counts as ready, by one condition, and how long that may take.
    ReadyForm {
        /// Something in the node listens on this TCP port.
        "tcp" TCP: TcpPortForm,
        /// `true`: something in the node listens on some TCP port, or has bound some UDP port.
        "listen" LISTEN: True,
        /// Something in the node listens on the Unix socket with this path.
        "unix" UNIX: SocketPath,
        /// A line of its output matches this regular expression.
        "log" LOG: Pattern,
        /// `true`: it has exited with 0.
        "exit" EXIT: True,
        /// This command exits with 0. It runs in the node, as the program does: as the same user,
        /// with the same files, variables and limits; first as soon as the program has started, and
        /// then `every` so often until it is ready.
        "command" COMMAND: CommandForm,
        /// `true`: the same with the command that the node's image says (`HEALTHCHECK`); a command: that
        /// in its place. Times that are not said here are the image's, or else Docker's.
        "healthcheck" HEALTHCHECK: Healthcheck,
        /// From the end of a check to the next; default 1s, with `healthcheck` 30s.
        "every" EVERY: Period,
        /// A check that takes longer is killed, and has failed; default 10s, with `healthcheck` 30s.
        "check-timeout" CHECK_TIMEOUT: Period,
        /// After so many checks one after the other that fail, the run ends as failed; that of the
        /// first one, made at once, does not count. Default: it ends after `timeout` only, with
        /// `healthcheck` 3.
        "fall" FALL: BoundedInteger<1, { ReadinessCheck::FALL_MAX as u64 }>,
        /// Failures of checks that begin within this time after the program's start do not count for
        /// `fall`; default 0s.
        "start-period" START_PERIOD: Span,
        /// In place of `every` within `start-period`; default: as `every`, with `healthcheck` 5s.
        "start-every" START_EVERY: Period,
        /// How long after its start; then the run ends as failed. Default: 1min; for `exit`, and for
        /// checks with `fall`, as long as it takes.
        "timeout" TIMEOUT: Timeout,
    }
}

impl ValueForm for ReadyDraft {
    type Value = ReadyDraft;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<ReadyDraft> {
        if let YamlValueKind::Map(_) = field.value.kind {
            let fields = from.table::<ReadyForm>(field, "`ready`")?;
            return read_map(from, field, &fields);
        }
        let text = from.text(field, &format!("{FORMS}, or a map"))?;
        Some(ReadyDraft { what: read_short(from, field, text)?, within: None, place: field.place })
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        let short = |definitions: &mut SchemaDefinitions| {
            let description = "`tcp:PORT`, `listen` (some TCP or UDP port), `unix:PATH`, `log:REGEX`, `exit`, \
                 `command:WORDS` or `healthcheck`.";
            let pattern = "^(exit|listen|healthcheck|tcp:[0-9]+|unix:.+|log:.+|command:.+)$";
            definitions.text("Ready", description, pattern, "tcp:80")
        };
        definitions.any_of(
            "ReadyCondition",
            "When a program counts as ready.",
            &[
                SchemaAlternative("The condition.", short),
                SchemaAlternative(
                    "The condition, and how long it may take.",
                    ReadyForm::definition,
                ),
            ],
        )
    }
}

fn read_short(
    from: &mut Decoder<'_>,
    field: YamlMapEntry<'_>,
    text: &str,
) -> Option<ReadinessCondition> {
    match text.split_once(':') {
        None if text == "exit" => Some(ReadinessCondition::Exit),
        None if text == "listen" => Some(ReadinessCondition::Listen),
        None if text == "healthcheck" => {
            Some(ReadinessCondition::OfImage(ReadinessCheckSettings::default()))
        }
        Some(("tcp", port)) => read_port(from, field, port).map(ReadinessCondition::Tcp),
        Some(("unix", path)) if !path.is_empty() => Some(ReadinessCondition::Unix(path.to_owned())),
        Some(("log", pattern)) if !pattern.is_empty() => {
            check_regex(from, field, pattern).then(|| ReadinessCondition::Log(pattern.to_owned()))
        }
        Some(("command", text)) if !text.trim().is_empty() => {
            let argv = split_words(from, field, text)?;
            Some(ReadinessCondition::Command(
                ReadinessCheckSettings { argv, ..ReadinessCheckSettings::default() }.of_file(),
            ))
        }
        _ => {
            from.mistake(field.wrong(), format!("ready: `{}` is not {FORMS}", shorten(text)));
            None
        }
    }
}

/// `{tcp: 80, timeout: 5s}`.
fn read_map(
    from: &mut Decoder<'_>,
    field: YamlMapEntry<'_>,
    fields: &Fields<'_>,
) -> Option<ReadyDraft> {
    let within = from.read(fields, ReadyForm::TIMEOUT)?;
    let is_condition = |field: &YamlMapEntry<'_>| CONDITIONS.contains(&field.key);
    let mut conditions = fields.all().filter(is_condition);
    let first = conditions.next();
    if let Some(second) = conditions.next().filter(|_| !fields.unknown) {
        from.mistake(second.place, "`ready` has more than one condition");
        return None;
    }
    let checks = first.is_some_and(|first| ["command", "healthcheck"].contains(&first.key));
    let others = |field: &YamlMapEntry<'_>| CHECKING.contains(&field.key);
    if let (Some(first), Some(field), false) = (first, fields.all().find(others), checks) {
        let message = format!("`{}` does not go with `{}`", field.key, first.key);
        from.mistake_with_hint(field.place, message, "it is for `command` and `healthcheck`");
        return None;
    }
    let said = read_checking(from, fields)?;
    let tcp = from.read(fields, ReadyForm::TCP)?.map(ReadinessCondition::Tcp);
    let listen = from.read(fields, ReadyForm::LISTEN)?.map(|()| ReadinessCondition::Listen);
    let unix = from.read(fields, ReadyForm::UNIX)?.map(ReadinessCondition::Unix);
    let log = from.read(fields, ReadyForm::LOG)?.map(ReadinessCondition::Log);
    let exit = from.read(fields, ReadyForm::EXIT)?.map(|()| ReadinessCondition::Exit);
    let command = from.read(fields, ReadyForm::COMMAND)?;
    let of_image = from.read(fields, ReadyForm::HEALTHCHECK)?;
    let with = |argv| ReadinessCheckSettings { argv, ..said.clone() };
    let command = command.map(|(argv, _)| ReadinessCondition::Command(with(argv).of_file()));
    let of_image = of_image.map(|argv| ReadinessCondition::OfImage(with(argv)));
    let what = tcp.or(listen).or(unix).or(log).or(exit).or(command).or(of_image);
    if what.is_none() && !fields.unknown {
        let message = "`ready` has no condition";
        let hint = format!("it has one of {}: {{tcp: 80, timeout: 5s}}", CONDITIONS.join(", "));
        from.mistake_with_hint(field.place, message, hint);
    }
    Some(ReadyDraft { what: what?, within, place: field.place })
}

/// The times of checks; `None`: one of them is wrong.
fn read_checking(from: &mut Decoder<'_>, fields: &Fields<'_>) -> Option<ReadinessCheckSettings> {
    let fall = from.read(fields, ReadyForm::FALL)?;
    Some(ReadinessCheckSettings {
        argv: Vec::new(),
        every: from.read(fields, ReadyForm::EVERY)?,
        timeout: from.read(fields, ReadyForm::CHECK_TIMEOUT)?,
        fall: fall.map(|fall| u32::try_from(fall).unwrap_or(u32::MAX)),
        start_period: from.read(fields, ReadyForm::START_PERIOD)?,
        start_every: from.read(fields, ReadyForm::START_EVERY)?,
    })
}

/// A TCP port.
struct TcpPortForm;

impl ValueForm for TcpPortForm {
    type Value = u16;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<u16> {
        let port = from.text(field, "a TCP port")?;
        read_port(from, field, port)
    }

    fn schema(_: &mut SchemaDefinitions) -> Json {
        json!({"type": "integer", "minimum": 1, "maximum": 65535})
    }
}

fn read_port(from: &mut Decoder<'_>, field: YamlMapEntry<'_>, port: &str) -> Option<u16> {
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

fn read_true(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<()> {
    if !from.flag(field)? {
        from.mistake(field.wrong(), format!("`{}: false` is not a condition", field.key));
        return None;
    }
    Some(())
}

/// `true`, or a command in place of that of an image.
struct Healthcheck;

impl ValueForm for Healthcheck {
    type Value = Vec<String>;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Vec<String>> {
        match &field.value.kind {
            YamlValueKind::Text(text) if ["true", "false"].contains(&text.as_str()) => {
                read_true(from, field).map(|()| Vec::new())
            }
            _ => CommandForm::read(from, field).map(|(argv, _)| argv),
        }
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        definitions.any_of(
            "Healthcheck",
            "The check of an image.",
            &[
                SchemaAlternative("`true`: its own.", bool::schema),
                SchemaAlternative("A command in its place.", CommandForm::schema),
            ],
        )
    }
}

form! {
    /// The path of a Unix socket.
    SocketPath: String, by read_socket_path, like String::schema
}

fn read_socket_path(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<String> {
    from.text(field, "the path of a socket").map(str::to_owned)
}

form! {
    /// A regular expression.
    Pattern: String, by read_pattern, like String::schema
}

fn read_pattern(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<String> {
    let pattern = from.text(field, "a regular expression")?;
    check_regex(from, field, pattern).then(|| pattern.to_owned())
}

form! {
    /// How long it may take.
    Timeout: Span, by read_timeout, like Span::schema
}

fn read_timeout(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Span> {
    let within = Span::read(from, field)?;
    if within.is_zero() {
        from.mistake(field.wrong(), "timeout: nothing is ready in no time");
        return None;
    }
    Some(within)
}

const FORMS: &str = "`tcp:PORT`, `listen`, `unix:PATH`, `log:REGEX`, `exit`, `command:WORDS` or \
                     `healthcheck`";
/// Of which one makes a program ready.
const CONDITIONS: [&str; 7] = ["tcp", "listen", "unix", "log", "exit", "command", "healthcheck"];
/// What is said of checks.
const CHECKING: [&str; 5] = ["every", "check-timeout", "fall", "start-period", "start-every"];
