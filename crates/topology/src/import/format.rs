//! Formats of other tools.

/// What can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopologyFormat {
    /// GraphML, as of the Internet Topology Zoo.
    GraphMl,
    /// GML, as of the Internet Topology Zoo.
    Gml,
    /// GML of a Shadow network graph.
    Shadow,
    /// ModelNet's and SPLAY's XML.
    ModelNet,
    /// Kollaps' XML.
    Kollaps,
    /// containerlab's YAML.
    Containerlab,
    /// A compose file of Docker or Podman.
    Compose,
    /// A list of edges as CSV.
    Csv,
}

impl TopologyFormat {
    /// Its name for people.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            TopologyFormat::GraphMl => "GraphML",
            TopologyFormat::Gml => "GML",
            TopologyFormat::Shadow => "Shadow's GML",
            TopologyFormat::ModelNet => "ModelNet XML",
            TopologyFormat::Kollaps => "Kollaps XML",
            TopologyFormat::Containerlab => "containerlab YAML",
            TopologyFormat::Compose => "compose YAML",
            TopologyFormat::Csv => "CSV of edges",
        }
    }

    /// What the tool's rates count for each packet beside the IP packet, where that is known and not
    /// Ethernet's whole framing.
    pub(super) const fn overhead(self) -> Option<u32> {
        match self {
            // HTB and netem: the frame as it is in the queue, with its header (`qdisc_pkt_len` of
            // include/net/sch_generic.h), without checksum, preamble and gap.
            TopologyFormat::Kollaps | TopologyFormat::Containerlab => Some(ETHERNET_HEADER),
            // The packets of its own model, which have no link layer.
            TopologyFormat::Shadow => Some(0),
            _ => None,
        }
    }
}

/// Two addresses and a type (IEEE 802.3, 3.1.1).
const ETHERNET_HEADER: u32 = 14;
