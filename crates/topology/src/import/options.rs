//! How a file is imported.

use std::collections::BTreeMap;

use windtunnel_model::Span;

use super::format::TopologyFormat;

/// How to import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportOptions {
    /// The format; `None`: recognised by the content.
    pub format: Option<TopologyFormat>,
    /// Nodes at each router; `None`: one where the file has no end hosts of its own, else none.
    pub hosts: Option<u32>,
    /// Only these routers (by their new names or their labels) get nodes; all if empty.
    pub hosts_at: Vec<String>,
    /// Every node's command.
    pub run: Option<String>,
    /// Latency of links for which the file has neither latency nor coordinates.
    pub latency: Span,
    /// Variables that a compose file may name, before those of its `.env`.
    pub variables: BTreeMap<String, String>,
    /// Profiles of a compose file whose services are wanted.
    pub profiles: Vec<String>,
}

impl Default for ImportOptions {
    fn default() -> Self {
        let latency = Span::from_millis(1);
        ImportOptions {
            format: None,
            hosts: None,
            hosts_at: Vec::new(),
            run: None,
            latency,
            variables: BTreeMap::new(),
            profiles: Vec::new(),
        }
    }
}
