//! Commands, in the two forms that they have.

use windtunnel_scenario::ScenarioMistake;
use windtunnel_scenario::yaml::{YamlValue, YamlValueKind};

use super::reader::ComposeReader;
use crate::topology::ConversionReport;
use crate::yaml::list_of;

/// The words of a command: a list, or a text that is split as a shell would.
pub(super) fn words(
    reader: &ComposeReader<'_>,
    value: &YamlValue,
    what: &str,
    notes: &mut ConversionReport,
) -> Result<Vec<String>, ScenarioMistake> {
    if let YamlValueKind::List(_) = value.kind {
        return reader.texts(value, what, notes);
    }
    let text = reader.text(value, what, notes)?;
    split(&text).ok_or_else(|| reader.at(value.place, format!("{what}: a quote is not closed")))
}

/// `run` or `args`: with an entry point, all is said; without, the image's takes the words.
pub(super) fn keys(
    entrypoint: Option<Vec<String>>,
    command: Option<Vec<String>>,
) -> Option<(&'static str, String)> {
    match (entrypoint.filter(|words| !words.is_empty()), command) {
        (Some(first), command) => {
            Some(("run", list_of(&[first, command.unwrap_or_default()].concat())))
        }
        (None, Some(command)) if !command.is_empty() => Some(("args", list_of(&command))),
        _ => None,
    }
}

/// Words with quotes, as of shells (POSIX, 2.2), without expansions.
fn split(text: &str) -> Option<Vec<String>> {
    let (mut words, mut word): (Vec<String>, Option<String>) = (Vec::new(), None);
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            c if c.is_whitespace() => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next()? {
                        '\'' => break,
                        inner => word.push(inner),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next()? {
                        '"' => break,
                        '\\' => word.push(rest.next()?),
                        inner => word.push(inner),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(rest.next()?),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_split_as_by_a_shell() {
        let words = split(r#"sh -c "echo \"a b\"" 'c d'e \  "#).unwrap();
        assert_eq!(words, ["sh", "-c", "echo \"a b\"", "c de", " "]);
        assert_eq!(split("a 'b"), None);
        assert_eq!(split("  "), Some(Vec::new()));
    }
}
