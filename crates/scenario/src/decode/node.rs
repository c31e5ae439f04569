//! Nodes and their programs.

use std::collections::BTreeMap;
use std::net::IpAddr;

use windtunnel_model::Span;
use windtunnel_model::plan::{Ready, Restart, User};

use super::{At, Field, Fields, NodeMachineKeys};
use crate::error::Findings;
use crate::keys;
use crate::position::Place;
use crate::text::shorten;
use crate::tree::{Kind, Value};

/// The most nodes after every `count` is expanded.
pub(crate) const MOST_NODES: u64 = windtunnel_model::Plan::NODES_MAX as u64;

/// A node as the file has it; what `defaults.node` says is mixed in later.
#[derive(Debug, Clone)]
pub(crate) struct NodeDraft {
    pub(crate) name: At<String>,
    pub(crate) count: Option<At<u64>>,
    pub(crate) addresses: Vec<At<IpAddr>>,
    pub(crate) keys: NodeKeys,
    pub(crate) programs: Vec<ProgramDraft>,
}

/// What a node and `defaults.node` may say.
#[derive(Debug, Clone, Default)]
pub(crate) struct NodeKeys {
    pub(crate) forward: Option<bool>,
    pub(crate) user: Option<User>,
    pub(crate) private: Option<bool>,
    pub(crate) sysctl: BTreeMap<String, String>,
    pub(crate) machine: NodeMachineKeys,
    pub(crate) program: ProgramKeys,
}

/// What a program, its node and `defaults.node` may say.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProgramKeys {
    pub(crate) daemon: Option<bool>,
    pub(crate) ready: Option<ReadyDraft>,
    pub(crate) after: Vec<At<String>>,
    pub(crate) start: Option<At<Span>>,
    pub(crate) cwd: Option<At<String>>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) restart: Option<Restart>,
}

/// When a program is ready, and how long that may take.
#[derive(Debug, Clone)]
pub(crate) struct ReadyDraft {
    pub(crate) what: Ready,
    pub(crate) within: Option<Span>,
}

/// One program.
#[derive(Debug, Clone)]
pub(crate) struct ProgramDraft {
    pub(crate) argv: Vec<String>,
    /// Where the command is written, or the first word of a list of words.
    pub(crate) place: Place,
    pub(crate) keys: ProgramKeys,
}

impl NodeKeys {
    /// What is not said here is taken from `defaults`; maps are merged.
    pub(crate) fn or(&self, defaults: &NodeKeys) -> NodeKeys {
        NodeKeys {
            forward: self.forward.or(defaults.forward),
            user: self.user.or(defaults.user),
            private: self.private.or(defaults.private),
            sysctl: merged(&defaults.sysctl, &self.sysctl),
            machine: self.machine.or(&defaults.machine),
            program: self.program.or(&defaults.program),
        }
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

impl Findings {
    /// `defaults.node`.
    pub(super) fn node_defaults(&mut self, field: Field<'_>) -> NodeKeys {
        match self.fields(field, "the defaults of nodes", keys::NODE_DEFAULTS) {
            Some(fields) => self.node_keys(&fields),
            None => NodeKeys::default(),
        }
    }

    pub(super) fn node(&mut self, field: Field<'_>) -> Option<NodeDraft> {
        let name = At { value: field.key.to_owned(), place: field.place };
        // `box:` with nothing after it is a node without properties.
        let empty = Value { place: field.place, kind: Kind::Map(Vec::new()) };
        let null = matches!(field.value.kind, Kind::Null);
        let field = if null { Field { value: &empty, ..field } } else { field };
        let fields = self.fields(field, "a node", keys::NODE)?;
        let count = fields.find("count").map(|field| {
            let count = self.integer(field, 1..=MOST_NODES, "a number of nodes");
            count.map(|value| At { value, place: field.value.place })
        });
        let addresses = fields.find("address").map(|field| self.addresses(field));
        let keys = self.node_keys(&fields);
        let programs = self.programs(&fields);
        let count = match count {
            Some(count) => Some(count?),
            None => None,
        };
        let addresses = match addresses {
            Some(addresses) => addresses?,
            None => Vec::new(),
        };
        Some(NodeDraft { name, count, addresses, keys, programs: programs? })
    }

    fn addresses(&mut self, field: Field<'_>) -> Option<Vec<At<IpAddr>>> {
        let needed = "an address, or a list of an IPv4 and an IPv6 address";
        let texts = self.names(field, needed)?;
        let parsed: Vec<_> = texts
            .into_iter()
            .map(|text| match text.value.parse::<IpAddr>() {
                Ok(value) => Some(At { value, place: text.place }),
                Err(_) => {
                    let shown = shorten(&text.value);
                    let message = format!("address: `{shown}` is no IPv4 or IPv6 address");
                    let hint = "a node has plain addresses without `/`: the pools are at the top";
                    match shown.contains('/') {
                        true => self.mistake_with_hint(text.place, message, hint),
                        false => self.mistake(text.place, message),
                    }
                    None
                }
            })
            .collect::<Option<_>>()?;
        let one_each = parsed.iter().filter(|a| a.value.is_ipv4()).count() <= 1
            && parsed.iter().filter(|a| a.value.is_ipv6()).count() <= 1;
        if !one_each || parsed.is_empty() {
            self.mistake(field.wrong(), format!("`address` must be {needed}"));
            return None;
        }
        Some(parsed)
    }

    fn node_keys(&mut self, fields: &Fields<'_>) -> NodeKeys {
        let mut found = NodeKeys { program: self.program_keys(fields), ..NodeKeys::default() };
        if let Some(field) = fields.find("forward") {
            found.forward = self.flag(field);
        }
        if let Some(field) = fields.find("private") {
            found.private = self.flag(field);
        }
        if let Some(field) = fields.find("user") {
            let users = [("invoker", User::Invoker), ("root", User::Root)];
            found.user = self.choice(field, &users);
        }
        if let Some(field) = fields.find("sysctl") {
            found.sysctl = self.texts(field, "a map of `net.*` settings and their values");
            self.check_sysctl(field);
        }
        found.machine = self.node_machine(fields);
        found
    }

    fn check_sysctl(&mut self, field: Field<'_>) {
        let Kind::Map(entries) = &field.value.kind else { return };
        for (key, _) in entries {
            if !windtunnel_model::name::is_sysctl(&key.text) {
                let message = format!("sysctl: `{}` is no `net.*` setting", shorten(&key.text));
                let hint = "a node has a network of its own, so only `net.*` can be set for it";
                self.mistake_with_hint(key.place, message, hint);
            }
        }
    }

    fn program_keys(&mut self, fields: &Fields<'_>) -> ProgramKeys {
        let mut found = ProgramKeys::default();
        if let Some(field) = fields.find("daemon") {
            found.daemon = self.flag(field);
        }
        if let Some(field) = fields.find("ready") {
            found.ready = self.ready(field);
        }
        if let Some(field) = fields.find("after") {
            found.after = self.names(field, "a node's name or a list of them").unwrap_or_default();
        }
        if let Some(field) = fields.find("start") {
            let start = self.quantity(field, "a time such as 2s");
            found.start = start.map(|value| At { value, place: field.value.place });
        }
        if let Some(field) = fields.find("cwd") {
            found.cwd = self.text_at(field, "a folder");
        }
        if let Some(field) = fields.find("env") {
            found.env = self.texts(field, "a map of variables and their values");
            self.check_env(field);
        }
        if let Some(field) = fields.find("restart") {
            let choices = [
                ("never", Restart::Never),
                ("on-failure", Restart::OnFailure),
                ("always", Restart::Always),
                ("false", Restart::Never),
                ("true", Restart::Always),
            ];
            found.restart = self.choice(field, &choices);
        }
        found
    }

    fn check_env(&mut self, field: Field<'_>) {
        let Kind::Map(entries) = &field.value.kind else { return };
        for (key, _) in entries {
            if key.text.is_empty() || key.text.contains(['=', '\0']) {
                let message = format!("env: `{}` cannot name a variable", shorten(&key.text));
                self.mistake(key.place, message);
            }
        }
    }

    fn texts(&mut self, field: Field<'_>, needed: &str) -> BTreeMap<String, String> {
        let Some(fields) = self.map(field, needed) else { return BTreeMap::new() };
        let mut found = BTreeMap::new();
        for entry in fields.all() {
            if let Some(text) = self.text(entry, "a text (write '' for an empty one)") {
                found.insert(entry.key.to_owned(), text.to_owned());
            }
        }
        found
    }

    /// Whether a pattern can be used; that it cannot is told.
    pub(super) fn check_regex(&mut self, field: Field<'_>, pattern: &str) -> bool {
        let built = regex::RegexBuilder::new(pattern).size_limit(1 << 20).build();
        if let Err(error) = &built {
            // The library draws the pattern over several lines; its last line is the reason.
            let reason = error.to_string();
            let reason = reason.lines().last().unwrap_or("").trim_start_matches("error: ");
            let (key, shown) = (field.key, shorten(pattern));
            let message = format!("{key}: `{shown}` is no regular expression: {reason}");
            self.mistake(field.wrong(), message);
        }
        built.is_ok()
    }

    fn programs(&mut self, fields: &Fields<'_>) -> Option<Vec<ProgramDraft>> {
        let Some(run) = fields.find("run") else {
            for key in ["ready", "after", "start", "daemon", "restart", "cwd", "env"] {
                if let (Some(field), false) = (fields.find(key), fields.unknown) {
                    let message = format!("`{key}` has no effect on a node that has no `run`");
                    self.notice(field.place, message);
                }
            }
            return Some(Vec::new());
        };
        let several = match &run.value.kind {
            Kind::List(items) => items.iter().any(|item| matches!(item.kind, Kind::Map(_))),
            _ => false,
        };
        if !several {
            let (argv, place) = (self.argv(run)?, place_of(run));
            return Some(vec![ProgramDraft { argv, place, keys: ProgramKeys::default() }]);
        }
        if let Some(ready) = fields.find("ready") {
            let message = "`ready` of a node with a list of programs belongs to one of them";
            self.mistake_with_hint(ready.place, message, "write it beside that program's `run`");
        }
        let items: Vec<_> = self.list(run, "a list of programs")?.collect();
        let programs: Vec<_> = items.into_iter().map(|item| self.program(item)).collect();
        programs.into_iter().collect()
    }

    fn program(&mut self, item: Field<'_>) -> Option<ProgramDraft> {
        let fields = self.fields(item, "a program", keys::PROGRAM)?;
        let keys = self.program_keys(&fields);
        let run = self.required(&fields, "run", "this program")?;
        Some(ProgramDraft { argv: self.argv(run)?, place: place_of(run), keys })
    }

    fn argv(&mut self, run: Field<'_>) -> Option<Vec<String>> {
        let needed = "a command: a text of words, a list of words, or a list of {run: …}";
        let argv = match &run.value.kind {
            Kind::List(items) => {
                items.iter().map(|item| self.word(run.with(item))).collect::<Option<Vec<_>>>()?
            }
            _ => self.words(run, needed)?,
        };
        match argv.first().map(String::is_empty) {
            Some(false) => Some(argv),
            Some(true) => {
                self.mistake(run.wrong(), "run: the name of the program is empty");
                None
            }
            None => {
                self.mistake(run.wrong(), "run: no command; leave `run` out for no program");
                None
            }
        }
    }

    fn word(&mut self, item: Field<'_>) -> Option<String> {
        if matches!(item.value.kind, Kind::Null) {
            self.mistake(item.value.place, "run: a word is missing; write '' for an empty one");
            return None;
        }
        self.text(item, "a word of the command").map(str::to_owned)
    }

    /// Splits a text as a shell would, without being one.
    fn words(&mut self, run: Field<'_>, needed: &str) -> Option<Vec<String>> {
        const SHELL: [&str; 9] = ["|", "||", "&&", "&", ";", ">", ">>", "<", "2>&1"];
        let text = self.text(run, needed)?;
        let Ok(words) = shell_words::split(text) else {
            let message = format!("run: a quote in `{}` is not closed", shorten(text));
            self.mistake(run.wrong(), message);
            return None;
        };
        if let Some(word) = words.iter().find(|word| SHELL.contains(&word.as_str())) {
            let message = format!(
                "`{word}` is passed to the program as it is, for no shell reads this: write \
                 [sh, -c, \"…\"] where one should"
            );
            self.notice(run.value.place, message);
        }
        Some(words)
    }
}

/// Where a command, or the first word of a list of words, is written.
fn place_of(run: Field<'_>) -> Place {
    match &run.value.kind {
        Kind::List(items) => items.first().map_or(run.value.place, |word| word.place),
        _ => run.value.place,
    }
}

fn merged(
    under: &BTreeMap<String, String>,
    over: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    under.iter().chain(over).map(|(key, value)| (key.clone(), value.clone())).collect()
}
