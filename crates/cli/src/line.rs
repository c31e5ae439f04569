//! The command line that was given, and how its failures are printed.

mod near;

use std::ffi::{OsStr, OsString};

use clap::error::Error;
use clap::{Arg, ArgMatches, Command, CommandFactory, FromArgMatches, Parser};

use crate::failure::{FailureOutput, VerbFailure};
use crate::verb::CommandLineVerb;

/// Runs unmodified programs on an emulated network: one file, one machine, no root.
///
/// A scenario file describes nodes with their programs, routers, and links with latency, loss, rate
/// and queue. `windtunnel run` builds that network out of namespaces, runs the programs on it, and
/// leaves a folder that says what happened and how faithful the emulation was.
#[derive(Debug, Parser)]
#[command(name = "windtunnel", version, max_term_width = 100, arg_required_else_help = true)]
#[command(disable_help_subcommand = true)]
pub(crate) struct CommandLineArguments {
    #[command(subcommand)]
    pub(crate) verb: CommandLineVerb,
}

/// A command line that is right.
#[derive(Debug)]
pub(crate) struct ParsedCommandLine {
    pub(crate) arguments: CommandLineArguments,
    failures: FailureFormat,
}

/// A command line that is wrong, or asks for help.
#[derive(Debug)]
pub(crate) struct CommandLineError {
    error: Error,
    json: bool,
}

/// How failures are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FailureFormat {
    /// As text on standard error.
    Words,
    /// As JSON on standard output.
    Json,
    /// As JSON on standard error: standard output is that of the user's own command.
    JsonBesides,
}

impl ParsedCommandLine {
    /// Reads the words of a command line, the program's name first.
    pub(crate) fn read(
        words: impl IntoIterator<Item = OsString>,
    ) -> Result<Self, Box<CommandLineError>> {
        let words: Vec<OsString> = words.into_iter().collect();
        let mut command = command();
        let read = command.try_get_matches_from_mut(&words).and_then(|matches| {
            let failures = FailureFormat::of(&matches);
            Ok(ParsedCommandLine {
                arguments: CommandLineArguments::from_arg_matches(&matches)?,
                failures,
            })
        });
        read.map_err(|mut error| {
            near::suggest(&mut error, &command, &words);
            Box::new(CommandLineError { error, json: asks_for_json(&words) })
        })
    }

    /// Prints a failure and returns the exit code.
    pub(crate) fn print(&self, failure: &VerbFailure) -> u8 {
        match self.failures {
            FailureFormat::Words => failure.print(),
            FailureFormat::Json => failure.print_json(false),
            FailureFormat::JsonBesides => failure.print_json(true),
        }
    }
}

/// Prints a failure before the command line is read, and returns the exit code.
pub(crate) fn print_unread(failure: &VerbFailure) -> u8 {
    let words: Vec<OsString> = std::env::args_os().collect();
    if asks_for_json(&words) { failure.print_json(false) } else { failure.print() }
}

impl CommandLineError {
    /// Prints the error, or the requested help, and returns the exit code.
    pub(crate) fn print(&self) -> u8 {
        let code = u8::try_from(self.error.exit_code()).unwrap_or(u8::MAX);
        if self.json && self.error.use_stderr() {
            let (error, hint) = parts(&self.error.render().to_string());
            FailureOutput::new(code, error, hint).print(false);
        } else {
            // A closed stream is not a failure.
            let _ = self.error.print();
        }
        code
    }
}

impl FailureFormat {
    fn of(matches: &ArgMatches) -> Self {
        let Some((verb, mut matches)) = matches.subcommand() else { return FailureFormat::Words };
        while let Some((_, inner)) = matches.subcommand() {
            matches = inner;
        }
        let json = matches.try_get_one::<bool>("json").ok().flatten();
        match (json.copied().unwrap_or_default(), verb) {
            (false, _) => FailureFormat::Words,
            (true, "exec" | "shell") => FailureFormat::JsonBesides,
            (true, _) => FailureFormat::Json,
        }
    }
}

/// The command line as it is read.
pub(crate) fn command() -> Command {
    CommandLineArguments::command().mut_subcommands(|verb| {
        verb.mut_args(takes_negative).mut_subcommands(|task| task.mut_args(takes_negative))
    })
}

/// The verbs that do something: those with tasks of their own, such as `records show`, are left out
/// for these.
#[must_use]
pub fn leaves(command: &Command) -> Vec<&Command> {
    let shown = command.get_subcommands();
    shown
        .filter(|verb| !verb.is_hide_set() && verb.get_name() != "help")
        .flat_map(|verb| if verb.has_subcommands() { leaves(verb) } else { vec![verb] })
        .collect()
}

/// A value such as `-5ms` is wrong as a quantity, and not because it looks like an option.
fn takes_negative(argument: Arg) -> Arg {
    let names = argument.get_value_names().unwrap_or_default();
    let is_quantity = names.iter().any(|name| QUANTITIES.contains(&name.as_str()));
    match is_quantity && argument.get_long().is_some() {
        true => argument.allow_hyphen_values(true),
        false => argument,
    }
}

/// Whether a command line that cannot be read asks for JSON.
fn asks_for_json(words: &[OsString]) -> bool {
    let own = words.iter().take_while(|word| *word != "--");
    let no = ["", "0", "n", "no", "f", "false", "off"];
    let variable = std::env::var_os("WINDTUNNEL_JSON");
    let says_yes = |text: &OsStr| !no.iter().any(|no| text.eq_ignore_ascii_case(no));
    own.into_iter().any(|word| word == "--json") || variable.as_deref().is_some_and(says_yes)
}

/// The message of clap's text, and its tips or the usage.
fn parts(text: &str) -> (String, Option<String>) {
    let mut paragraphs = text.trim().split("\n\n").map(str::trim);
    let message = paragraphs.next().unwrap_or_default();
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let rest: Vec<&str> = paragraphs.collect();
    let tip = rest.iter().find_map(|text| text.strip_prefix("tip: "));
    let usage = rest.iter().find(|text| text.starts_with("Usage: ")).copied();
    (message.to_owned(), tip.or(usage).map(str::to_owned))
}

/// Names of values with a unit, and of numbers.
const QUANTITIES: [&str; 11] = [
    "TIME",
    "TIME[..TIME]",
    "RATE",
    "SIZE",
    "BYTES",
    "SHARE",
    "QUEUE",
    "P",
    "N",
    "D",
    "ROWSxCOLUMNS",
];

#[cfg(test)]
mod tests {
    use clap::error::ErrorKind;

    use super::*;

    #[test]
    fn a_negative_value_is_never_taken_for_an_option() {
        let command = command();
        let mut seen = 0;
        for verb in command.get_subcommands().filter(|verb| !verb.has_subcommands()) {
            let numbers = verb.get_arguments().filter(|argument| {
                let names = argument.get_value_names().unwrap_or_default();
                names.iter().any(|name| QUANTITIES.contains(&name.as_str()))
            });
            for argument in numbers.filter(|argument| argument.get_long().is_some()) {
                let option = format!("--{}", argument.get_long().unwrap_or_default());
                let words = ["windtunnel", verb.get_name(), &option, "-5ms"];
                let error = super::command().try_get_matches_from(words).err();
                let kind = error.as_ref().map(Error::kind);
                assert_ne!(kind, Some(ErrorKind::UnknownArgument), "{} {option}", verb.get_name());
                seen += 1;
            }
        }
        assert!(seen > 40, "{seen}");
    }

    #[test]
    fn a_message_of_clap_has_its_tip_or_its_usage_as_a_hint() {
        let read = |words: &[&str]| {
            let words = words.iter().map(OsString::from);
            parts(&ParsedCommandLine::read(words).unwrap_err().error.render().to_string())
        };
        let (error, hint) = read(&["windtunnel", "check", "net.yaml", "--jsom"]);
        assert_eq!(error, "unexpected argument '--jsom' found");
        assert_eq!(hint.as_deref(), Some("a similar argument exists: '--json'"));
        let (_, hint) = read(&["windtunnel", "import"]);
        assert!(hint.is_some_and(|hint| hint.starts_with("Usage: windtunnel import")));
    }
}
