//! What was meant by a word that is none of the command line. clap's own measure (Jaro's) finds two letters in
//! the wrong order in long words alone: `rnu` is not near `run` by it.

use std::ffi::OsString;

use clap::Command;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use windtunnel_scenario::nearest;

/// Adds the nearest word to an error of clap's that has none, or the nearest verb to those that it has.
pub(super) fn suggest(error: &mut Error, command: &Command, words: &[OsString]) {
    let (wrong, suggested) = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand)
        }
        ErrorKind::UnknownArgument => (ContextKind::InvalidArg, ContextKind::SuggestedArg),
        ErrorKind::InvalidValue => (ContextKind::InvalidValue, ContextKind::SuggestedValue),
        _ => return,
    };
    let Some(ContextValue::String(text)) = error.get(wrong) else { return };
    let known = match error.get(suggested) {
        None => Vec::new(),
        Some(ContextValue::Strings(known)) => known.clone(),
        Some(_) => return,
    };
    let text = text.clone();
    let found = match error.kind() {
        ErrorKind::InvalidSubcommand => verb(&text, at(command, words), known),
        ErrorKind::UnknownArgument => option(&text, at(command, words)),
        _ => value(&text, error),
    };
    if let Some(found) = found {
        error.insert(suggested, found);
    }
}

/// The verb, or its task, that the words have got to.
fn at<'c>(command: &'c Command, words: &[OsString]) -> &'c Command {
    let mut here = command;
    for word in words.iter().skip(1) {
        match here.find_subcommand(word) {
            Some(inner) => here = inner,
            None => break,
        }
    }
    here
}

fn verb(text: &str, of: &Command, mut known: Vec<String>) -> Option<ContextValue> {
    let shown = of.get_subcommands().filter(|verb| !verb.is_hide_set());
    let near = nearest(text, shown.map(Command::get_name))?.to_owned();
    if !known.contains(&near) {
        known.push(near);
    }
    Some(ContextValue::Strings(known))
}

fn option(text: &str, of: &Command) -> Option<ContextValue> {
    let wanted = text.strip_prefix("--")?;
    let shown = of.get_arguments().filter(|argument| !argument.is_hide_set());
    let near = nearest(wanted, shown.filter_map(|argument| argument.get_long()))?;
    Some(ContextValue::String(format!("--{near}")))
}

fn value(text: &str, error: &Error) -> Option<ContextValue> {
    let Some(ContextValue::Strings(all)) = error.get(ContextKind::ValidValue) else { return None };
    let near = nearest(text, all.iter().map(String::as_str))?;
    Some(ContextValue::String(near.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::super::*;

    fn hint(words: &[&str]) -> String {
        let words = [&["windtunnel"], words].concat();
        let wrong = ParsedCommandLine::read(words.iter().map(OsString::from)).unwrap_err();
        parts(&wrong.error.render().to_string()).1.unwrap_or_default()
    }

    #[test]
    fn short_verbs_with_letters_in_the_wrong_order_are_recognised() {
        assert_eq!(hint(&["rnu"]), "a similar subcommand exists: 'run'");
        // Beside what clap finds.
        assert!(hint(&["tpo"]).ends_with(", 'top'"), "{}", hint(&["tpo"]));
        assert!(hint(&["chekc"]).contains("'check'"), "{}", hint(&["chekc"]));
        // Of a verb with tasks of its own.
        assert_eq!(hint(&["service", "dad"]), "a similar subcommand exists: 'add'");
    }

    #[test]
    fn short_options_with_letters_in_the_wrong_order_are_recognised() {
        let hint = hint(&["run", "net.yaml", "--otu", "x"]);
        assert!(hint.starts_with("a similar argument exists: '--out'"), "{hint}");
    }

    #[test]
    fn what_is_near_to_nothing_gets_the_usage() {
        for text in ["frobnicate", "zq"] {
            assert!(hint(&[text]).starts_with("Usage: windtunnel"), "{text}: {}", hint(&[text]));
        }
    }
}
