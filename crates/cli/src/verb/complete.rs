//! `complete`: completions of the last word of a command line, for the scripts of `completions`.

use clap::{Command, ValueEnum};

use crate::completion::{CompletionCandidate, candidates};
use crate::exit::ExitCategory;
use crate::failure::Outcome;
use crate::output;

/// Print completions of the last word of a command line, for a shell
#[derive(Debug, clap::Args)]
pub(crate) struct CompleteArguments {
    /// The shell that asks
    shell: CompletionShell,
    /// The command line to the cursor, the program first
    #[arg(last = true, value_name = "WORD")]
    words: Vec<String>,
}

/// Shells that ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CompletionShell {
    Bash,
    Zsh,
    Fish,
}

pub(crate) fn run(arguments: &CompleteArguments, mut command: Command) -> Outcome {
    command.build();
    let is_bash = arguments.shell == CompletionShell::Bash;
    let words = if is_bash { joined(&arguments.words) } else { arguments.words.clone() };
    let found = candidates(&command, &words);
    let current = words.last().map(String::as_str).unwrap_or_default();
    let line = |candidate: &CompletionCandidate| match is_bash {
        true => format!("{}\n", behind_break(&candidate.value, current)),
        false => format!("{}\t{}\n", candidate.value, candidate.help),
    };
    output::data(&found.iter().map(line).collect::<String>())?;
    Ok(ExitCategory::Fine.code())
}

/// The words as they were written: bash splits them at `=` and `:`, and passes these as words of
/// their own.
fn joined(words: &[String]) -> Vec<String> {
    let is_break = |word: &str| !word.is_empty() && word.chars().all(|c| BREAKS.contains(&c));
    let mut joined: Vec<String> = Vec::new();
    let mut glue = false;
    for word in words {
        match joined.last_mut().filter(|_| glue || is_break(word)) {
            Some(last) => last.push_str(word),
            None => joined.push(word.clone()),
        }
        glue = is_break(word);
    }
    joined
}

/// The text that bash replaces: the part of the word behind the last `=` or `:`.
fn behind_break<'v>(value: &'v str, current: &str) -> &'v str {
    current.rfind(BREAKS).and_then(|at| value.get(at + 1..)).unwrap_or(value)
}

/// Bash's COMP_WORDBREAKS, as far as words of ours can have them.
const BREAKS: [char; 2] = ['=', ':'];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_bash_are_put_together_again() {
        let words = ["windtunnel", "link", "--preset", "=", "l"].map(str::to_owned);
        assert_eq!(joined(&words), ["windtunnel", "link", "--preset=l"]);
        let words = ["windtunnel", "run", "--on-overload", "=", ""].map(str::to_owned);
        assert_eq!(joined(&words), ["windtunnel", "run", "--on-overload="]);
        assert_eq!(behind_break("--preset=lte", "--preset=l"), "lte");
        assert_eq!(behind_break("lte", "l"), "lte");
    }
}
