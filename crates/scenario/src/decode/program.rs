//! Programs, and what their node and `defaults.node` may say for them.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use windtunnel_model::Span;
use windtunnel_model::plan::Restart;

use super::command::{CommandForm, word};
use super::limits::{LimitKeys, LimitTable, read_limits};
use super::ready::ReadyDraft;
use super::root;
use super::share::{LinkShareDraft, ShareTable};
use crate::grammar::{
    Decoder, Fields, ListElement, ListForm, NameListForm, RequiredKeyForm, SchemaAlternative,
    SchemaDefinitions, ValueForm, YamlMapEntry, form, map, words,
};
use crate::position::{LocatedValue, SourceLocation};
use crate::text::shorten;
use crate::tree::{YamlKey, YamlValueKind};

/// What a program, its node and `defaults.node` may say.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProgramKeys {
    pub(crate) daemon: Option<bool>,
    pub(crate) ready: Option<ReadyDraft>,
    pub(crate) after: Vec<LocatedValue<String>>,
    pub(crate) start: Option<LocatedValue<Span>>,
    pub(crate) cwd: Option<LocatedValue<String>>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) restart: Option<Restart>,
}

/// One program.
#[derive(Debug, Clone)]
pub(crate) struct ProgramDraft {
    pub(crate) argv: Vec<String>,
    /// Where the command is written, or the first word of a list of words.
    pub(crate) place: SourceLocation,
    pub(crate) keys: ProgramKeys,
    pub(crate) limits: LimitKeys,
    /// What it has of its node's link.
    pub(crate) share: Option<LocatedValue<LinkShareDraft>>,
}

impl ProgramDraft {
    /// A command for which only its node says something.
    fn new(argv: Vec<String>, place: SourceLocation) -> ProgramDraft {
        let (keys, limits) = (ProgramKeys::default(), LimitKeys::default());
        ProgramDraft { argv, place, keys, limits, share: None }
    }
}

impl ProgramKeys {
    /// What is not said here is taken from `defaults`; `env` is merged.
    pub(crate) fn or(&self, defaults: &ProgramKeys) -> ProgramKeys {
        let after = if self.after.is_empty() { &defaults.after } else { &self.after };
        ProgramKeys {
            daemon: self.daemon.or(defaults.daemon),
            ready: self.ready.clone().or_else(|| defaults.ready.clone()),
            after: after.clone(),
            start: self.start.clone().or_else(|| defaults.start.clone()),
            cwd: self.cwd.clone().or_else(|| defaults.cwd.clone()),
            env: merged(&defaults.env, &self.env),
            restart: self.restart.or(defaults.restart),
        }
    }
}

/// `under` with what `over` has.
pub(super) fn merged(
    under: &BTreeMap<String, String>,
    over: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    under.iter().chain(over).map(|(key, value)| (key.clone(), value.clone())).collect()
}

map! {
    /// What a node runs.
    RunTable {
        /// The command: a text that is split into words as a shell would (no shell runs it: write
        /// `[sh, -c, "…"]` for one), a list of words, or a list of programs `{run: …, …}`.
        "run" RUN: ProgramListForm,
        /// A workload that `windtunnel records workload` has written: the node does again what the
        /// programs of the node with its name did, as client and as server, over this network. A
        /// relative path starts at the working folder of the programs.
        "replay" REPLAY: String,
    }
}

map! {
    /// What programs, their nodes and `defaults.node` have.
    ProgramTable {
        /// Whether the run may end while this still runs; default false.
        "daemon" DAEMON: bool,
        /// It starts no earlier than this after the run began; default 0s.
        "start" START: Span,
        /// Working folder; a relative one starts at the file's folder. Default: the file's folder. In a
        /// node with files of its own (`root`, `image`), it is a folder there; default: the image's,
        /// or `/`.
        "cwd" CWD: String,
        /// Environment variables on top of windtunnel's own environment; in a node with files of its
        /// own, on top of the image's.
        "env" ENV: Environment,
        /// Whether it is started again after it exited: `never` (default, or `false`),
        /// `on-failure`, or `always` (or `true`).
        "restart" RESTART: RestartForm,
    }
}

map! {
    /// What programs and their nodes have.
    Startup {
        /// When a program counts as ready for those that come `after` it: `tcp:PORT`, `listen`,
        /// `unix:PATH`, `log:REGEX` (a line of its output matches), `exit` (it has exited with 0),
        /// `command:WORDS` (this command exits with 0) or `healthcheck` (that of its image), or a
        /// map with a `timeout`; default: as soon as it has started.
        "ready" READY: ReadyDraft,
        /// Nodes or groups whose programs must be ready first.
        "after" AFTER: NameListForm,
    }
}

map! {
    /// One of several programs of a node; what it does not say is taken from its node.
    Program, ProgramDraft, by read_program {
        /// The command: a text of words or a list of words.
        "run" RUN: RequiredKeyForm<CommandForm>,
        ..ProgramTable,
        ..Startup,
        ..LimitTable,
        ..ShareTable,
    }
}

impl ListElement for Program {
    const LIST: &'static str = "a list of programs";
}

words! {
    /// When a program is started again.
    RestartWhen: Restart {
        /// Never.
        "never" => Restart::Never,
        /// After an exit code other than 0, or a signal.
        "on-failure" => Restart::OnFailure,
        /// Always.
        "always" => Restart::Always,
    }
}

/// When a program is started again, in words or as a boolean.
struct RestartForm;

impl ValueForm for RestartForm {
    type Value = Restart;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Restart> {
        let flags = [("false", Restart::Never), ("true", Restart::Always)];
        let choices: Vec<_> = RestartWhen::WORDS.iter().copied().chain(flags).collect();
        from.choice(field, &choices)
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        definitions.any_of(
            "Restart",
            "Whether a program is started again.",
            &[
                SchemaAlternative("When.", RestartWhen::schema),
                SchemaAlternative("Always, or never.", bool::schema),
            ],
        )
    }
}

/// Reads the keys of a node, a program or `defaults.node`.
pub(super) fn read_program_keys(from: &mut Decoder<'_>, fields: &Fields<'_>) -> ProgramKeys {
    ProgramKeys {
        daemon: from.read(fields, ProgramTable::DAEMON).flatten(),
        ready: from.read(fields, Startup::READY).flatten(),
        after: from.read(fields, Startup::AFTER).flatten().unwrap_or_default(),
        start: from.read_at(fields, ProgramTable::START),
        cwd: from.read(fields, ProgramTable::CWD).flatten(),
        env: from.read(fields, ProgramTable::ENV).flatten().unwrap_or_default(),
        restart: from.read(fields, ProgramTable::RESTART).flatten(),
    }
}

/// Reads `run` of a node.
pub(super) fn read_programs(
    from: &mut Decoder<'_>,
    fields: &Fields<'_>,
) -> Option<Vec<ProgramDraft>> {
    let replay = from.read_at(fields, RunTable::REPLAY).map(|file| replaying(&file.value));
    let Some(run) = fields.get(RunTable::RUN) else {
        if replay.is_some() {
            return Some(replay.into_iter().collect());
        }
        if let Some(place) = root::image_place(fields) {
            // The image's own command.
            return Some(vec![ProgramDraft::new(Vec::new(), place)]);
        }
        for key in ["ready", "after", "start", "daemon", "restart", "cwd", "env"] {
            if let (Some(field), false) = (fields.find(key), fields.unknown) {
                let message = format!("`{key}` has no effect on a node that has no `run`");
                from.notice(field.place, message);
            }
        }
        return Some(Vec::new());
    };
    if ProgramListForm::is_several(run)
        && let Some(ready) = fields.get(Startup::READY)
    {
        let message = "`ready` of a node with a list of programs belongs to one of them";
        from.mistake_with_hint(ready.place, message, "write it beside that program's `run`");
    }
    let mut programs = ProgramListForm::read(from, run)?;
    programs.extend(replay);
    Some(programs)
}

/// The program behind `replay` is windtunnel itself: what forks a node's programs has it as its
/// executable.
fn replaying(file: &LocatedValue<String>) -> ProgramDraft {
    let argv = ["/proc/self/exe", "play", &file.value].map(str::to_owned).to_vec();
    ProgramDraft::new(argv, file.place)
}

fn read_program(from: &mut Decoder<'_>, item: YamlMapEntry<'_>) -> Option<ProgramDraft> {
    let fields = from.table::<Program>(item, "a program")?;
    let (keys, limits) = (read_program_keys(from, &fields), read_limits(from, &fields));
    let share = from.read_at_key(&fields, ShareTable::SEND);
    let (argv, place) = from.need(&fields, Program::RUN, "this program")?;
    Some(ProgramDraft { argv, place, keys, limits, share })
}

/// What a node runs: a command, or a list of programs.
pub(super) struct ProgramListForm;

impl ProgramListForm {
    fn is_several(field: YamlMapEntry<'_>) -> bool {
        match &field.value.kind {
            YamlValueKind::List(items) => {
                items.iter().any(|item| matches!(item.kind, YamlValueKind::Map(_)))
            }
            _ => false,
        }
    }
}

impl ValueForm for ProgramListForm {
    type Value = Vec<ProgramDraft>;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Vec<ProgramDraft>> {
        if !ProgramListForm::is_several(field) {
            let (argv, place) = CommandForm::read(from, field)?;
            return Some(vec![ProgramDraft::new(argv, place)]);
        }
        let items = from.list(field, Program::LIST)?;
        let programs: Vec<_> = items.map(|item| read_program(from, item)).collect();
        programs.into_iter().collect()
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        definitions.any_of(
            "Run",
            "What a node runs.",
            &[
                SchemaAlternative("One program.", CommandForm::schema),
                SchemaAlternative("Several programs.", <ListForm<Program>>::schema),
            ],
        )
    }
}

form! {
    /// Environment variables.
    Environment: BTreeMap<String, String>, by read_environment, like TextMapForm::schema
}

fn read_environment(
    from: &mut Decoder<'_>,
    field: YamlMapEntry<'_>,
) -> Option<BTreeMap<String, String>> {
    TextMapForm::read(from, field, "a map of variables and their values", |from, key| {
        if key.text.is_empty() || key.text.contains(['=', '\0']) {
            let message = format!("env: `{}` cannot name a variable", shorten(&key.text));
            from.mistake(key.place, message);
        }
    })
}

/// A map of texts with any keys.
pub(super) struct TextMapForm;

impl TextMapForm {
    /// Reads such a map; `check` judges each key.
    pub(super) fn read(
        from: &mut Decoder<'_>,
        field: YamlMapEntry<'_>,
        needed: &str,
        check: fn(&mut Decoder<'_>, &YamlKey),
    ) -> Option<BTreeMap<String, String>> {
        let fields = from.map(field, needed)?;
        let mut found = BTreeMap::new();
        for entry in fields.all() {
            if let Some(text) = from.text(entry, "a text (write '' for an empty one)") {
                found.insert(entry.key.to_owned(), text.to_owned());
            }
        }
        if let YamlValueKind::Map(entries) = &field.value.kind {
            entries.iter().for_each(|(key, _)| check(from, key));
        }
        Some(found)
    }

    pub(super) fn schema(definitions: &mut SchemaDefinitions) -> Json {
        json!({"type": "object", "additionalProperties": word(definitions)})
    }
}
