//! GML: keys with numbers, texts or lists of such (M. Himsolt, GML: A portable Graph File Format,
//! 1997).
//!
//! No library reads it: the format is three rules long.

use std::collections::BTreeMap;

use windtunnel_scenario::ScenarioMistake;

use super::graph::{Attribute, AttributedGraph, GraphEdge, GraphVertex, VertexIdIndex};
use super::input::{ImportSourceText, shorten};

/// Lists may stand this deep in each other.
const DEEPEST: usize = 32;

/// A key with its value.
#[derive(Debug)]
struct GmlKeyValue {
    key: String,
    offset: usize,
    value: GmlValue,
}

#[derive(Debug)]
enum GmlValue {
    /// A number or a text, without its quotes, and where it stands.
    Scalar(Attribute),
    List(Vec<GmlKeyValue>),
}

/// Whether the first word is a key of GML with a list, a number or a text.
pub(super) fn looks_like_gml(text: &str) -> bool {
    let lines = text.lines().map(str::trim);
    let first = lines.filter(|line| !line.is_empty() && !line.starts_with('#')).take(50);
    // A graph may stand inside of YAML, whose keys end with a colon.
    let is_key =
        |line: &str| line.split_whitespace().next().is_some_and(|word| word.ends_with(':'));
    let first = first.take_while(|line| !is_key(line));
    let words: Vec<&str> = first.flat_map(str::split_whitespace).collect();
    words.windows(2).any(|pair| pair[0] == "graph" && pair[1] == "[") || words.contains(&"graph[")
}

/// Reads a graph.
pub(super) fn read(input: &ImportSourceText<'_>) -> Result<AttributedGraph, ScenarioMistake> {
    let (graphs, others): (Vec<_>, Vec<_>) =
        GmlParser { input, at: 0 }.pairs()?.into_iter().partition(|pair| pair.key == "graph");
    let mut graphs = graphs.into_iter();
    let Some(found) = graphs.next() else {
        return Err(input.mistake(0, 1, "there is no `graph [ … ]` in this file"));
    };
    let GmlValue::List(pairs) = found.value else {
        return Err(input.mistake(found.offset, 5, "`graph` must be a list: `graph [ … ]`"));
    };
    let (mut graph, mut index) = (AttributedGraph::default(), VertexIdIndex::default());
    let more = graphs.len();
    if more > 0 {
        graph.unread.push(format!("{more} more graphs"));
    }
    // Of the program that wrote the file.
    let others =
        others.iter().filter(|pair| !["Creator", "Version", "comment"].contains(&&*pair.key));
    graph.unread.extend(others.map(|pair| format!("`{}`", shorten(&pair.key))));
    let mut edges = Vec::new();
    for pair in pairs {
        match (pair.key.as_str(), pair.value) {
            ("node", GmlValue::List(pairs)) => {
                let mut attributes = flat(pairs, &mut graph);
                let id = required(input, &mut attributes, "id", "node", pair.offset)?;
                let vertex = GraphVertex { id: id.text, attributes };
                index.add(input, &mut graph, vertex, pair.offset)?;
            }
            ("edge", GmlValue::List(pairs)) => {
                let mut attributes = flat(pairs, &mut graph);
                let source = required(input, &mut attributes, "source", "edge", pair.offset)?;
                let target = required(input, &mut attributes, "target", "edge", pair.offset)?;
                edges.push((source, target, attributes, pair.offset));
            }
            ("node" | "edge", GmlValue::Scalar(_)) => {
                let message = format!("`{0}` must be a list: `{0} [ … ]`", pair.key);
                return Err(input.mistake(pair.offset, 4, message));
            }
            ("directed", GmlValue::Scalar(value)) => graph.directed = value.text.trim() == "1",
            (_, GmlValue::Scalar(value)) => {
                graph.attributes.insert(pair.key, value);
            }
            (_, GmlValue::List(_)) => {
                graph.unread.push(format!("the list `{}`", shorten(&pair.key)));
            }
        }
    }
    for (source, target, attributes, offset) in edges {
        let ends = [index.find(input, &source)?, index.find(input, &target)?];
        graph.edges.push(GraphEdge { ends, directed: graph.directed, attributes, offset });
    }
    Ok(graph)
}

fn required(
    input: &ImportSourceText<'_>,
    attributes: &mut BTreeMap<String, Attribute>,
    key: &str,
    of: &str,
    offset: usize,
) -> Result<Attribute, ScenarioMistake> {
    attributes
        .remove(key)
        .ok_or_else(|| input.mistake(offset, of.len(), format!("this {of} has no `{key}`")))
}

/// The scalars of a list by key; of equal keys the first. Inner lists, such as `graphics`, are
/// drawings.
fn flat(pairs: Vec<GmlKeyValue>, graph: &mut AttributedGraph) -> BTreeMap<String, Attribute> {
    let mut attributes = BTreeMap::new();
    for pair in pairs {
        match pair.value {
            GmlValue::Scalar(value) if !attributes.contains_key(&pair.key) => {
                attributes.insert(pair.key, value);
            }
            GmlValue::Scalar(_) => graph.note_unread(format!("a second `{}`", shorten(&pair.key))),
            GmlValue::List(_) => graph.note_unread(format!("the list `{}`", shorten(&pair.key))),
        }
    }
    attributes
}

struct GmlParser<'a> {
    input: &'a ImportSourceText<'a>,
    at: usize,
}

impl GmlParser<'_> {
    /// All pairs of the file; lists are kept on a stack, so that depth costs no call stack.
    fn pairs(mut self) -> Result<Vec<GmlKeyValue>, ScenarioMistake> {
        let mut done: Vec<GmlKeyValue> = Vec::new();
        let mut open: Vec<(String, usize, Vec<GmlKeyValue>)> = Vec::new();
        loop {
            self.skip();
            let Some(c) = self.peek() else { break };
            let start = self.at;
            if c == ']' {
                self.at += 1;
                let Some((key, offset, list)) = open.pop() else {
                    return Err(self.wrong(start, "a `]` without a `[`"));
                };
                let into = open.last_mut().map_or(&mut done, |(_, _, list)| list);
                into.push(GmlKeyValue { key, offset, value: GmlValue::List(list) });
                continue;
            }
            let key = self.word();
            let starts = key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
            if !starts || key.ends_with(':') {
                let message = format!("here a key was expected, not `{}`", shorten(&key));
                return Err(self.wrong(start, &message));
            }
            self.skip();
            match self.peek() {
                Some('[') => {
                    self.at += 1;
                    if open.len() >= DEEPEST {
                        let message = format!("lists more than {DEEPEST} levels deep");
                        return Err(self.wrong(start, &message));
                    }
                    open.push((key, start, Vec::new()));
                }
                Some(']') | None => {
                    return Err(self.wrong(start, &format!("`{}` has no value", shorten(&key))));
                }
                Some(_) => {
                    let value = GmlValue::Scalar(self.scalar()?);
                    let into = open.last_mut().map_or(&mut done, |(_, _, list)| list);
                    into.push(GmlKeyValue { key, offset: start, value });
                }
            }
        }
        match open.last() {
            Some((key, offset, _)) => {
                let message = format!("the list `{}` does not end", shorten(key));
                Err(self.wrong(*offset, &message))
            }
            None => Ok(done),
        }
    }

    fn scalar(&mut self) -> Result<Attribute, ScenarioMistake> {
        let start = self.at;
        if self.peek() != Some('"') {
            return Ok(Attribute { text: self.word(), offset: start });
        }
        let rest = &self.input.text[start + 1..];
        let Some(end) = rest.find('"') else {
            return Err(self.wrong(start, "the text that starts here does not end"));
        };
        self.at = start + 1 + end + 1;
        Ok(Attribute { text: plain(&rest[..end]), offset: start + 1 })
    }

    /// Everything up to a blank or a bracket; at least one character.
    fn word(&mut self) -> String {
        let rest = &self.input.text[self.at..];
        let ends = |c: char| c.is_whitespace() || c == '[' || c == ']' || c == '"';
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let end = rest[first..].find(ends).map_or(rest.len(), |at| at + first);
        self.at += end;
        rest[..end].to_owned()
    }

    /// Skips blanks, and comments: lines that start with `#`.
    fn skip(&mut self) {
        loop {
            let rest = &self.input.text[self.at..];
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if !trimmed.starts_with('#') {
                return;
            }
            self.at += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }

    fn peek(&self) -> Option<char> {
        self.input.text[self.at..].chars().next()
    }

    fn wrong(&self, offset: usize, message: &str) -> ScenarioMistake {
        self.input.mistake(offset, 1, message)
    }
}

/// Characters beyond ASCII are written as entities, as in HTML.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let entity = rest.find(';').filter(|end| *end <= 10).map(|end| &rest[1..end]);
        match entity.and_then(|entity| Some((entity.len(), character(entity)?))) {
            Some((length, c)) => {
                plain.push(c);
                rest = &rest[length + 2..];
            }
            None => {
                plain.push('&');
                rest = &rest[1..];
            }
        }
    }
    plain + rest
}

fn character(entity: &str) -> Option<char> {
    match entity {
        "amp" => Some('&'),
        "quot" => Some('"'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        _ => {
            let number = entity.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code).filter(|c| !c.is_control())
        }
    }
}
