//! GraphML: typed attributes on nodes and edges (Brandes, Eiglsperger, Herman, Himsolt, Marshall
//! 2002).

use std::collections::BTreeMap;

use roxmltree::Node;
use windtunnel_scenario::ScenarioMistake;

use super::graph::{Attribute, AttributedGraph, GraphEdge, GraphVertex, VertexIdIndex};
use super::input::{ImportSourceText, shorten};
use super::xml::{self, elements};

/// Declared attributes: their names and defaults by (`for`, `id`).
struct GraphMlKeyDeclarations {
    names: BTreeMap<String, String>,
    defaults: Vec<(String, String, Attribute)>,
}

/// Reads the first graph of the file.
pub(super) fn read(input: &ImportSourceText<'_>) -> Result<AttributedGraph, ScenarioMistake> {
    let document = xml::parse(input)?;
    let root = document.root_element();
    if root.tag_name().name() != "graphml" {
        return Err(xml::mistake(input, root, "GraphML begins with <graphml>"));
    }
    let keys = keys(input, root)?;
    let graphs: Vec<_> = elements(root).filter(|node| node.tag_name().name() == "graph").collect();
    let Some(first) = graphs.first() else {
        return Err(xml::mistake(input, root, "there is no <graph> in this file"));
    };
    let mut graph = AttributedGraph {
        directed: first.attribute("edgedefault") == Some("directed"),
        attributes: keys.attributes(*first, "graph"),
        ..AttributedGraph::default()
    };
    if graphs.len() > 1 {
        graph.unread.push(format!("{} more graphs", graphs.len() - 1));
    }
    let (mut index, mut edges) = (VertexIdIndex::default(), Vec::new());
    for node in elements(*first) {
        match node.tag_name().name() {
            "node" => {
                let id = xml::required(input, node, "id")?.to_owned();
                let vertex = GraphVertex { id, attributes: keys.attributes(node, "node") };
                unread(&mut graph, node, &["id"]);
                if elements(node).any(|inner| inner.tag_name().name() == "graph") {
                    graph
                        .unread
                        .push(format!("the graph inside of node `{}`", shorten(&vertex.id)));
                }
                index.add(input, &mut graph, vertex, node.range().start)?;
            }
            "edge" => edges.push(node),
            "data" | "desc" => {}
            other => graph.unread.push(format!("<{}>", shorten(other))),
        }
    }
    for node in edges {
        let end = |name| {
            let text = xml::required(input, node, name)?.to_owned();
            let offset = node.attribute_node(name).map_or(0, |a| a.range_value().start);
            index.find(input, &Attribute { text, offset })
        };
        let ends = [end("source")?, end("target")?];
        let directed = match node.attribute("directed") {
            Some(text) => text == "true",
            None => graph.directed,
        };
        let attributes = keys.attributes(node, "edge");
        unread(&mut graph, node, &["id", "source", "target", "directed"]);
        graph.edges.push(GraphEdge { ends, directed, attributes, offset: node.range().start });
    }
    Ok(graph)
}

/// Notes what a node or an edge has beside `data` of texts.
fn unread(graph: &mut AttributedGraph, node: Node<'_, '_>, known: &[&str]) {
    let of = node.tag_name().name();
    // Such as `parse.indegree`: what a parser may allocate for.
    let attributes = node.attributes().map(|attribute| attribute.name());
    for name in attributes.filter(|name| !known.contains(name) && !name.starts_with("parse.")) {
        graph.note_unread(format!("`{}` of <{of}>", shorten(name)));
    }
    for inner in elements(node) {
        match inner.tag_name().name() {
            "data" if elements(inner).next().is_none() => {}
            "data" => graph.note_unread(format!("elements in <data> of <{of}>")),
            "desc" | "graph" => {}
            other => graph.note_unread(format!("<{}> of <{of}>", shorten(other))),
        }
    }
}

fn keys(
    input: &ImportSourceText<'_>,
    root: Node<'_, '_>,
) -> Result<GraphMlKeyDeclarations, ScenarioMistake> {
    let mut keys = GraphMlKeyDeclarations { names: BTreeMap::new(), defaults: Vec::new() };
    for key in elements(root).filter(|node| node.tag_name().name() == "key") {
        let id = xml::required(input, key, "id")?;
        let name = key.attribute("attr.name").unwrap_or(id);
        keys.names.insert(id.to_owned(), name.to_owned());
        let default = elements(key).find(|node| node.tag_name().name() == "default");
        if let Some(default) = default {
            let text = default.text().unwrap_or("").to_owned();
            let attribute = Attribute { text, offset: default.range().start };
            let of = key.attribute("for").unwrap_or("all").to_owned();
            keys.defaults.push((of, name.to_owned(), attribute));
        }
    }
    Ok(keys)
}

impl GraphMlKeyDeclarations {
    /// The attributes of an element of this kind, by the names that were declared.
    fn attributes(&self, node: Node<'_, '_>, kind: &str) -> BTreeMap<String, Attribute> {
        let mut attributes = BTreeMap::new();
        for (of, name, attribute) in &self.defaults {
            if of == kind || of == "all" {
                attributes.insert(name.clone(), attribute.clone());
            }
        }
        for data in elements(node).filter(|node| node.tag_name().name() == "data") {
            let id = data.attribute("key").unwrap_or("");
            let name = self.names.get(id).map_or(id, String::as_str);
            let text = data.text().unwrap_or("").to_owned();
            attributes.insert(name.to_owned(), Attribute { text, offset: data.range().start });
        }
        attributes
    }
}
