//! The kinds of records, from the source that defines them.

use std::fs;
use std::io;
use std::path::Path;

use super::{GENERATED, cell};

/// Where they are defined.
const SOURCE: &str = "crates/model/src/record/kind.rs";

/// One kind.
struct RecordKindEntry {
    number: String,
    name: String,
    text: String,
    arguments: Vec<String>,
}

/// The page.
///
/// # Errors
/// If the source cannot be read, or has no kinds.
pub(super) fn page(root: &Path) -> io::Result<String> {
    let source = fs::read_to_string(root.join(SOURCE))?;
    let kinds = kinds(&source);
    if kinds.is_empty() {
        return Err(io::Error::other(format!("{SOURCE} defines no kind of record")));
    }
    let mut page = format!(
        "{GENERATED}# Kinds of records\n\n\
         What the fields of a record mean, by its kind. The layout of the file and the flags are in\n\
         [Records](../records.md#the-file). Arguments without a name (–) have no meaning of their own.\n\n\
         | number | kind | what | arguments |\n| -- | -- | -- | -- |\n"
    );
    for RecordKindEntry { number, name, text, arguments } in kinds {
        let named =
            |argument: String| if argument.is_empty() { "–".to_owned() } else { argument };
        let arguments: Vec<String> = arguments.into_iter().map(named).collect();
        let (text, arguments) = (cell(&text), arguments.join(", "));
        page += &format!("| {number} | `{name}` | {text} | {arguments} |\n");
    }
    Ok(page)
}

fn kinds(source: &str) -> Vec<RecordKindEntry> {
    let (mut kinds, mut text) = (Vec::new(), String::new());
    let inside = source.lines().map(str::trim).skip_while(|line| *line != "kinds! {").skip(1);
    for line in inside.take_while(|line| *line != "}") {
        if let Some(comment) = line.strip_prefix("///") {
            text.push_str(comment);
        } else if let Some(kind) = kind(line, &text) {
            kinds.push(kind);
            text.clear();
        }
    }
    kinds
}

/// Of a line like `Lost = 0x02, "lost", ["a", "b", "", ""];`.
fn kind(line: &str, text: &str) -> Option<RecordKindEntry> {
    let (_, value) = line.split_once(" = ")?;
    let (number, rest) = value.split_once(", ")?;
    let mut words = rest.split('"').skip(1).step_by(2).map(str::to_owned);
    let name = words.next()?;
    let (number, text) = (number.to_owned(), without_links(text));
    Some(RecordKindEntry { number, name, text, arguments: words.collect() })
}

/// Links of rustdoc without their brackets and targets.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once("[`") {
        let Some((name, after)) = link.split_once("`]") else { break };
        plain.push_str(before);
        plain.push_str(&format!("`{name}`"));
        rest = match after.strip_prefix('(').and_then(|target| target.split_once(')')) {
            Some((_, after)) => after,
            None => after,
        };
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_read_with_its_comment_and_arguments() {
        let source =
            "kinds! {\n/// As [`X`](y::X)\n/// and [`Z`].\nA = 0x0a, \"a\", [\"b\", \"\"];\n}\n";
        let kinds = kinds(source);
        let kind = &kinds[0];
        assert_eq!((kind.number.as_str(), kind.name.as_str()), ("0x0a", "a"));
        assert_eq!(kind.text.trim(), "As `X` and `Z`.");
        assert_eq!(kind.arguments, ["b", ""]);
    }
}
