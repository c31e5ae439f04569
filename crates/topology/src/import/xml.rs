//! XML as a tree, without document types: no entity can grow, and nothing outside is read.

use roxmltree::{Document, Node, ParsingOptions};
use windtunnel_scenario::ScenarioMistake;

use super::input::{ImportSourceText, shorten};

/// The most elements, texts and comments.
const MOST_NODES: u32 = 2_000_000;

/// The document, or the first mistake.
pub(super) fn parse<'t>(input: &'t ImportSourceText<'_>) -> Result<Document<'t>, ScenarioMistake> {
    let options =
        ParsingOptions { allow_dtd: false, nodes_limit: MOST_NODES, ..ParsingOptions::default() };
    Document::parse_with_options(&input.text, options).map_err(|error| {
        let position = error.pos();
        let place = windtunnel_scenario::yaml::SourceLocation {
            line: position.row.max(1),
            column: position.col.max(1),
            length: 1,
        };
        match error {
            roxmltree::Error::DtdDetected => {
                let hint =
                    "remove the <!DOCTYPE …>: documents with a type of their own are not read";
                input.at(place, "a document type", Some(hint.to_owned()))
            }
            error => input.at(place, format!("this is not XML: {error}"), None),
        }
    })
}

/// A mistake about an element.
pub(super) fn mistake(
    input: &ImportSourceText<'_>,
    node: Node<'_, '_>,
    message: impl Into<String>,
) -> ScenarioMistake {
    let length = node.tag_name().name().chars().count() + 1;
    input.mistake(node.range().start, length, message)
}

/// An attribute that must be there and not empty.
pub(super) fn required<'d>(
    input: &ImportSourceText<'_>,
    node: Node<'d, '_>,
    name: &str,
) -> Result<&'d str, ScenarioMistake> {
    match node.attribute(name).map(str::trim) {
        Some(text) if !text.is_empty() => Ok(text),
        _ => {
            Err(mistake(input, node, format!("this <{}> has no `{name}`", node.tag_name().name())))
        }
    }
}

/// An attribute read by `read`; `needed` says what it should have been.
pub(super) fn value<T>(
    input: &ImportSourceText<'_>,
    node: Node<'_, '_>,
    name: &str,
    needed: &str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, ScenarioMistake> {
    let Some(text) = node.attribute(name) else { return Ok(None) };
    match read(text) {
        Some(value) => Ok(Some(value)),
        None => {
            let offset = node.attribute_node(name).map_or(node.range().start, |a| a.range().start);
            let message = format!("{name}: `{}` is not {needed}", shorten(text));
            Err(input.mistake(offset, name.len(), message))
        }
    }
}

/// The elements below `node`.
pub(super) fn elements<'d, 'i: 'd>(node: Node<'d, 'i>) -> impl Iterator<Item = Node<'d, 'i>> {
    node.children().filter(Node::is_element)
}
