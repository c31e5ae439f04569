//! Networks that were not written for Windtunnel: generated ones, those of other tools' files, and
//! the scenario file that they become.
//!
//! Promises: what is written loads as a scenario and means what the [`Topology`] says; the same
//! request gives the same bytes on every machine; nothing is guessed without a line of comment that
//! says so. Refuses: files and clocks (texts are given and returned), and running anything.
//!
//! | module | what it does |
//! | --- | --- |
//! | `topology` | [`Topology`]: nodes, routers, links, and notes about where they are from |
//! | `yaml` | [`Topology::to_yaml`]: the scenario file |
//! | `import` | [`import()`]: GraphML, GML, Shadow, ModelNet, Kollaps, containerlab, CSV |
//! | `generate` | [`generate`]: stars, rings, trees, random and scale-free graphs … |
//!
//! ```
//! use windtunnel_topology::{GeneratorParameters, TopologyShape, generate};
//! let star = generate(&GeneratorParameters::new(TopologyShape::Star { nodes: 3 })).unwrap();
//! assert_eq!(star.links.len(), 3);
//! assert!(star.to_yaml().contains("- {between: [node-3, hub], latency: 10ms}\n"));
//! ```

mod generate;
mod import;
mod topology;
mod yaml;

pub use generate::{
    GenerateError, GeneratedLinkProperties, GeneratorParameters, LatencyRange, TopologyShape,
    generate,
};
#[doc(hidden)]
pub use import::fuzz_one;
pub use import::{
    ImportContext, ImportDocument, ImportError, ImportOptions, LARGEST_IMPORT, TopologyFormat,
    import, import_with,
};
pub use topology::{
    ConversionRemark, ConversionReport, LinkDirectionProperties, Topology, TopologyChange,
    TopologyEvent, TopologyLink, TopologyNode, TopologyRouter,
};
