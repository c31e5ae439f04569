//! Completing a command line in a shell: verbs, options and their values, and the names of live
//! runs.

mod names;
mod script;

use clap::{Arg, Command};

pub(crate) use script::script;

/// A completion of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CompletionCandidate {
    /// The whole word.
    pub(crate) value: String,
    /// Its description; may be empty.
    pub(crate) help: String,
}

impl CompletionCandidate {
    fn new(value: impl Into<String>, help: impl Into<String>) -> Self {
        CompletionCandidate { value: value.into(), help: help.into() }
    }
}

/// Completions of the last of `words`. None: the shell completes names of files and commands.
pub(crate) fn candidates(command: &Command, words: &[String]) -> Vec<CompletionCandidate> {
    let Some((current, before)) = words.split_last() else { return Vec::new() };
    let Some(point) = CompletionContext::find(command, before.get(1..).unwrap_or_default()) else {
        return Vec::new();
    };
    let mut candidates = point.candidates(command, current);
    candidates.retain(|candidate| candidate.value.starts_with(current.as_str()));
    candidates
}

/// The place of a word on the command line.
#[derive(Debug, Default)]
struct CompletionContext<'c> {
    verb: Option<&'c Command>,
    /// The option that takes the word as its value.
    option: Option<&'c Arg>,
    /// How many words stand before it that belong to no option.
    position: usize,
    /// The folder of the run that is named.
    run: Option<String>,
}

impl<'c> CompletionContext<'c> {
    /// After these words. `None`: in a command of the user's own, or behind a verb that is not
    /// known.
    fn find(command: &'c Command, words: &[String]) -> Option<Self> {
        let mut point = CompletionContext::default();
        for word in words {
            if let Some(option) = point.option.take() {
                point.given(option, word);
            } else if word == "--" {
                return None;
            } else if word.starts_with('-') && word.len() > 1 {
                let (name, value) = word.split_once('=').unzip();
                let option = point.verb.and_then(|verb| option(verb, name.unwrap_or(word)));
                match (option.filter(|option| option.get_action().takes_values()), value) {
                    (Some(option), Some(value)) => point.given(option, value),
                    (option, _) => point.option = option,
                }
            } else if point.verb.is_none_or(Command::has_subcommands) {
                point.verb = Some(point.verb.unwrap_or(command).find_subcommand(word)?);
            } else {
                let positional =
                    point.verb.and_then(|verb| verb.get_positionals().nth(point.position));
                if positional.is_some_and(Arg::is_trailing_var_arg_set) {
                    return None;
                }
                point.position += 1;
            }
        }
        Some(point)
    }

    fn given(&mut self, option: &Arg, value: &str) {
        if names::is_run(option) {
            self.run = Some(value.to_owned());
        }
    }

    fn candidates(&self, command: &Command, current: &str) -> Vec<CompletionCandidate> {
        if let Some(option) = self.option {
            return self.values(option);
        }
        let verb = self.verb.unwrap_or(command);
        if let Some((name, _)) = current.split_once('=').filter(|_| current.starts_with("--")) {
            let values = option(verb, name).map(|option| self.values(option)).unwrap_or_default();
            let whole = |value: CompletionCandidate| {
                CompletionCandidate::new(format!("{name}={}", value.value), value.help)
            };
            return values.into_iter().map(whole).collect();
        }
        if current.starts_with('-') {
            return options(verb);
        }
        if self.verb.is_none_or(Command::has_subcommands) {
            return verbs(verb);
        }
        let positionals: Vec<&Arg> =
            verb.get_positionals().filter(|arg| !arg.is_last_set()).collect();
        let many = |arg: &&&Arg| arg.get_num_args().is_some_and(|range| range.max_values() > 1);
        let positional = positionals.get(self.position).or(positionals.last().filter(many));
        positional.map(|positional| self.values(positional)).unwrap_or_default()
    }

    fn values(&self, of: &Arg) -> Vec<CompletionCandidate> {
        let possible = of.get_possible_values();
        if possible.is_empty() || !of.get_action().takes_values() {
            return names::of(self.verb, of, self.run.as_deref());
        }
        let shown = possible.iter().filter(|value| !value.is_hide_set());
        let help = |value: &clap::builder::PossibleValue| first_line(value.get_help());
        shown.map(|value| CompletionCandidate::new(value.get_name(), help(value))).collect()
    }
}

/// The option with this name, `--latency` or `-o`.
fn option<'c>(verb: &'c Command, name: &str) -> Option<&'c Arg> {
    verb.get_arguments().find(|argument| match name.strip_prefix("--") {
        Some(long) => argument.get_long() == Some(long),
        None => argument.get_short().is_some_and(|short| name == format!("-{short}")),
    })
}

fn options(verb: &Command) -> Vec<CompletionCandidate> {
    let shown = verb.get_arguments().filter(|argument| !argument.is_hide_set());
    shown
        .filter_map(|option| {
            Some(CompletionCandidate::new(
                format!("--{}", option.get_long()?),
                first_line(option.get_help()),
            ))
        })
        .collect()
}

fn verbs(command: &Command) -> Vec<CompletionCandidate> {
    let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    shown
        .map(|verb| CompletionCandidate::new(verb.get_name(), first_line(verb.get_about())))
        .collect()
}

fn first_line(help: Option<&clap::builder::StyledStr>) -> String {
    help.map(|help| help.to_string().lines().next().unwrap_or_default().to_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(words: &[&str]) -> Vec<String> {
        let words: Vec<String> =
            std::iter::once("windtunnel").chain(words.iter().copied()).map(str::to_owned).collect();
        let mut command = crate::command();
        command.build();
        candidates(&command, &words).into_iter().map(|candidate| candidate.value).collect()
    }

    #[test]
    fn verbs_options_and_fixed_values_are_completed() {
        assert_eq!(values(&["ke"]), ["keygen"]);
        assert_eq!(values(&["generate", "--access-la"]), ["--access-latency"]);
        assert_eq!(values(&["generate", "to"]), ["torus"]);
        assert_eq!(values(&["generate", "--nodes", "3", "st"]), ["star"]);
        assert_eq!(values(&["completions", "z"]), ["zsh"]);
        assert_eq!(values(&["records", "st"]), ["stats"]);
        assert_eq!(values(&["records", "export", "--format", "pc"]), ["pcapng"]);
        assert_eq!(values(&["records", "show", "--layer=engine", "--k"]), ["--kind"]);
        assert_eq!(values(&["run", "--on-overload=fr"]), ["--on-overload=freeze"]);
        // Hidden ones are for programs.
        assert_eq!(values(&["par"]), [""; 0]);
    }

    #[test]
    fn presets_disciplines_and_keys_of_links_are_completed() {
        assert_eq!(values(&["link", "--preset", "l"]), ["lan", "leo", "lte"]);
        assert_eq!(values(&["link", "--discipline=fq"]), ["--discipline=fq-codel"]);
        assert_eq!(values(&["set", "a--b", "lat"]), ["latency="]);
        assert_eq!(values(&["set", "a--b", "loss=1%", "ra"]), ["rate="]);
    }

    #[test]
    fn files_and_commands_are_left_to_the_shell() {
        assert_eq!(values(&["check", "net"]), [""; 0]);
        assert_eq!(values(&["exec", "a", "--", "--he"]), [""; 0]);
        assert_eq!(values(&["run", "--out", ""]), [""; 0]);
        assert_eq!(values(&["nonsense", ""]), [""; 0]);
    }
}
