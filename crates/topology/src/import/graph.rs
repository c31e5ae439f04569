//! A graph with attributes, as GML and GraphML have it.

use std::collections::BTreeMap;

use windtunnel_scenario::ScenarioMistake;

use super::input::{ImportSourceText, shorten};

/// An attribute's text and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attribute {
    pub(super) text: String,
    pub(super) offset: usize,
}

/// A graph.
#[derive(Debug, Clone, Default)]
pub(super) struct AttributedGraph {
    pub(super) directed: bool,
    pub(super) attributes: BTreeMap<String, Attribute>,
    pub(super) vertices: Vec<GraphVertex>,
    pub(super) edges: Vec<GraphEdge>,
    /// What the format has and this graph has not, such as hyperedges.
    pub(super) unread: Vec<String>,
    /// What the format leaves open and the reader chose: a statement, and what it is about.
    pub(super) assumed: Vec<(&'static str, String)>,
}

/// A vertex.
#[derive(Debug, Clone)]
pub(super) struct GraphVertex {
    pub(super) id: String,
    pub(super) attributes: BTreeMap<String, Attribute>,
}

/// An edge; its ends are positions among the vertices.
#[derive(Debug, Clone)]
pub(super) struct GraphEdge {
    pub(super) ends: [usize; 2],
    pub(super) directed: bool,
    pub(super) attributes: BTreeMap<String, Attribute>,
    pub(super) offset: usize,
}

impl AttributedGraph {
    /// Notes what is not read, once.
    pub(super) fn note_unread(&mut self, what: String) {
        if !self.unread.contains(&what) {
            self.unread.push(what);
        }
    }
}

impl GraphVertex {
    /// What people call it.
    pub(super) fn label(&self) -> &str {
        let label = self.attributes.get("label").map(|label| label.text.trim());
        label.filter(|label| !label.is_empty()).unwrap_or(&self.id)
    }
}

/// Finds vertices by id while a graph is read.
#[derive(Debug, Default)]
pub(super) struct VertexIdIndex {
    by_id: BTreeMap<String, usize>,
}

impl VertexIdIndex {
    /// Adds a vertex with a new id.
    pub(super) fn add(
        &mut self,
        input: &ImportSourceText<'_>,
        graph: &mut AttributedGraph,
        vertex: GraphVertex,
        offset: usize,
    ) -> Result<(), ScenarioMistake> {
        if self.by_id.insert(vertex.id.clone(), graph.vertices.len()).is_some() {
            let message = format!("a second node with the id `{}`", shorten(&vertex.id));
            return Err(input.mistake(offset, 1, message));
        }
        graph.vertices.push(vertex);
        Ok(())
    }

    /// The vertex with this id.
    pub(super) fn find(
        &self,
        input: &ImportSourceText<'_>,
        end: &Attribute,
    ) -> Result<usize, ScenarioMistake> {
        self.by_id.get(&end.text).copied().ok_or_else(|| {
            let message = format!("no node has the id `{}`", shorten(&end.text));
            input.mistake(end.offset, end.text.chars().count(), message)
        })
    }
}
