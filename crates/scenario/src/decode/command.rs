//! Commands: words as a shell would read them, or a list of words.

use serde_json::{Value as Json, json};

use crate::grammar::{
    Decoder, SchemaAlternative, SchemaDefinitions, ValueForm, YamlMapEntry, text,
};
use crate::position::SourceLocation;
use crate::text::shorten;
use crate::tree::YamlValueKind;

/// A command, and where it or the first word of a list of words is written.
pub(super) struct CommandForm;

impl ValueForm for CommandForm {
    type Value = (Vec<String>, SourceLocation);

    fn read(from: &mut Decoder<'_>, run: YamlMapEntry<'_>) -> Option<Self::Value> {
        let (argv, place) = match &run.value.kind {
            YamlValueKind::List(items) => {
                let words = items.iter().map(|item| read_word(from, run.with(item)));
                let place = items.first().map_or(run.value.place, |word| word.place);
                (words.collect::<Option<Vec<_>>>()?, place)
            }
            _ => {
                let text = from.text(run, COMMAND)?;
                (split_words(from, run, text)?, run.value.place)
            }
        };
        match argv.first().map(String::is_empty) {
            Some(false) => Some((argv, place)),
            Some(true) => {
                let message = format!("{}: the name of the program is empty", run.key);
                from.mistake(run.wrong(), message);
                None
            }
            None if run.key == "run" => {
                from.mistake(run.wrong(), "run: no command; leave `run` out for no program");
                None
            }
            None => {
                from.mistake(run.wrong(), format!("{}: no command", run.key));
                None
            }
        }
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        let list = |definitions: &mut SchemaDefinitions| {
            let word = word(definitions);
            json!({"type": "array", "items": word, "minItems": 1})
        };
        definitions.any_of(
            "Words",
            "A command.",
            &[
                SchemaAlternative("Words with blanks between them, quoted as for a shell.", text),
                SchemaAlternative("A list of words.", list),
            ],
        )
    }
}

fn read_word(from: &mut Decoder<'_>, item: YamlMapEntry<'_>) -> Option<String> {
    if matches!(item.value.kind, YamlValueKind::Null) {
        let message = format!("{}: a word is missing; write '' for an empty one", item.key);
        from.mistake(item.value.place, message);
        return None;
    }
    from.text(item, "a word of the command").map(str::to_owned)
}

/// Splits a text as a shell would, without being one.
pub(super) fn split_words(
    from: &mut Decoder<'_>,
    run: YamlMapEntry<'_>,
    text: &str,
) -> Option<Vec<String>> {
    const SHELL: [&str; 9] = ["|", "||", "&&", "&", ";", ">", ">>", "<", "2>&1"];
    let Ok(words) = shell_words::split(text) else {
        let message = format!("{}: a quote in `{}` is not closed", run.key, shorten(text));
        from.mistake(run.wrong(), message);
        return None;
    };
    if let Some(word) = words.iter().find(|word| SHELL.contains(&word.as_str())) {
        let message = format!(
            "`{word}` is passed to the program as it is, for no shell reads this: write \
             [sh, -c, \"…\"] where one should"
        );
        from.notice(run.value.place, message);
    }
    Some(words)
}

/// The schema of a text; numbers and booleans are taken as they are written.
pub(super) fn word(definitions: &mut SchemaDefinitions) -> Json {
    definitions.any_of(
        "Word",
        "A text; numbers and booleans are taken as they are written.",
        &[
            SchemaAlternative("A text.", text),
            SchemaAlternative("A number.", |_| json!({"type": "number"})),
            SchemaAlternative("A boolean.", bool::schema),
        ],
    )
}

const COMMAND: &str = "a command: a text of words, a list of words, or a list of {run: …}";
