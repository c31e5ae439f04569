//! Lists of edges as CSV (RFC 4180), as NetworkX and pandas write them: a header with the names of
//! the columns, two of which are the ends of an edge; the others are its attributes.

use std::collections::{BTreeMap, BTreeSet};

use windtunnel_scenario::ScenarioMistake;

use super::graph::{Attribute, AttributedGraph, GraphEdge, GraphVertex};
use super::input::{ImportSourceText, shorten};

/// What the two columns with the ends are called.
const ENDS: [[&str; 2]; 4] =
    [["source", "target"], ["from", "to"], ["src", "dst"], ["node1", "node2"]];

/// Whether the first line is a header with both ends.
pub(super) fn looks_like_csv(input: &ImportSourceText<'_>) -> bool {
    let header = rows(input).next().and_then(Result::ok);
    header.is_some_and(|header| find_ends(&header).is_some())
}

/// The graph of the edges; vertices are numbered in the order in which they are named.
pub(super) fn read(input: &ImportSourceText<'_>) -> Result<AttributedGraph, ScenarioMistake> {
    let mut rows = rows(input);
    let header = rows.next().unwrap_or(Ok(Vec::new()))?;
    let Some(ends) = find_ends(&header) else {
        let names: Vec<String> = ENDS.iter().map(|[a, b]| format!("`{a},{b}`")).collect();
        let hint =
            format!("the columns with the ends of an edge are called {}", names.join(" or "));
        return Err(input.mistake_with_hint(0, 1, "the first line names no ends of edges", hint));
    };
    let mut graph = AttributedGraph::default();
    let mut known = BTreeMap::new();
    for row in rows {
        let row = row?;
        if row.len() != header.len() {
            let message =
                format!("this row has {} fields, and the header {}", row.len(), header.len());
            return Err(input.mistake(row.first().map_or(0, |field| field.offset), 1, message));
        }
        let mut attributes = BTreeMap::new();
        for (column, field) in header.iter().zip(&row) {
            if !field.text.is_empty() {
                attributes.insert(column.text.clone(), field.clone());
            }
        }
        let mut end = |index: usize| {
            let field: &Attribute = &row[index];
            attributes.remove(&header[index].text);
            vertex(input, &mut graph, &mut known, field)
        };
        let ends = [end(ends[0])?, end(ends[1])?];
        let offset = row[0].offset;
        graph.edges.push(GraphEdge { ends, directed: false, attributes, offset });
    }
    direct(&mut graph);
    Ok(graph)
}

/// A row goes both ways, unless there is one back: then each says one direction.
fn direct(graph: &mut AttributedGraph) {
    let ends: BTreeSet<[usize; 2]> = graph.edges.iter().map(|edge| edge.ends).collect();
    let mut noted = BTreeSet::new();
    for edge in &mut graph.edges {
        let [from, to] = edge.ends;
        edge.directed = from != to && ends.contains(&[to, from]);
        if edge.directed && noted.insert([from.min(to), from.max(to)]) {
            let name = |end: usize| shorten(&graph.vertices[end].id);
            let text = "Two rows that name the same ends the other way round are the two directions of one link";
            graph.assumed.push((text, format!("{}--{}", name(from), name(to))));
        }
    }
}

fn vertex(
    input: &ImportSourceText<'_>,
    graph: &mut AttributedGraph,
    known: &mut BTreeMap<String, usize>,
    end: &Attribute,
) -> Result<usize, ScenarioMistake> {
    if end.text.is_empty() {
        return Err(input.mistake(end.offset, 1, "an end of this edge has no name"));
    }
    Ok(*known.entry(end.text.clone()).or_insert_with(|| {
        graph.vertices.push(GraphVertex { id: end.text.clone(), attributes: BTreeMap::new() });
        graph.vertices.len() - 1
    }))
}

/// The positions of the two columns with the ends.
fn find_ends(header: &[Attribute]) -> Option<[usize; 2]> {
    let find = |name: &str| header.iter().position(|it| it.text.eq_ignore_ascii_case(name));
    ENDS.iter().find_map(|[a, b]| Some([find(a)?, find(b)?]))
}

/// The rows that are neither empty nor comments (`#`), each field without blanks around it.
fn rows<'i>(
    input: &'i ImportSourceText<'_>,
) -> impl Iterator<Item = Result<Vec<Attribute>, ScenarioMistake>> + 'i {
    let mut offset = 0;
    let lines = input.text.split_inclusive('\n').map(move |line| {
        let start = offset;
        offset += line.len();
        (line.trim_end_matches(['\n', '\r']), start)
    });
    let lines = lines.filter(|(line, _)| !line.trim().is_empty() && !line.starts_with('#'));
    lines.map(move |(line, offset)| fields(input, line, offset))
}

/// The fields of a line; one in quotes may hold commas, and a quote that is doubled.
fn fields(
    input: &ImportSourceText<'_>,
    line: &str,
    offset: usize,
) -> Result<Vec<Attribute>, ScenarioMistake> {
    let mut found = Vec::new();
    let mut rest = line;
    loop {
        let blank = rest.len() - rest.trim_start().len();
        let at = offset + line.len() - rest.len() + blank;
        let (text, after) = match rest.trim_start().strip_prefix('"') {
            Some(quoted) => unquote(quoted).ok_or_else(|| {
                let message = format!("the quote in `{}` is not closed", shorten(line));
                input.mistake(at, 1, message)
            })?,
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                (rest[..end].trim().to_owned(), &rest[end..])
            }
        };
        found.push(Attribute { text, offset: at });
        let after = after.trim_start();
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(found),
            None => {
                let at = offset + line.len() - after.len();
                return Err(input.mistake(at, 1, "a comma must follow a field in quotes"));
            }
        }
    }
}

/// The text up to the closing quote, and what is behind it.
fn unquote(quoted: &str) -> Option<(String, &str)> {
    let mut text = String::new();
    let mut rest = quoted;
    loop {
        let end = rest.find('"')?;
        text.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(doubled) => {
                text.push('"');
                rest = doubled;
            }
            None => return Some((text, rest)),
        }
    }
}
