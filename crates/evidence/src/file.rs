//! The file of records, byte by byte.
//!
//! All integers are little-endian.
//!
//! | offset | bytes | what |
//! | --- | --- | --- |
//! | 0 | 8 | `WTRECORD` |
//! | 8 | 4 | version of this layout: 1 |
//! | 12 | 4 | 0x01020304, by which a reader knows the byte order |
//! | 16 | 4 | bytes of a record: 32; a later version may have longer ones, of which these are the first |
//! | 20 | 4 | bytes of the whole header, a multiple of 32 |
//! | 24 | 8 | when the file was begun, ns of CLOCK_MONOTONIC |
//! | 32 | … | [`RecordFileHeader`] as JSON, padded with blanks |
//!
//! Records follow to the end of the file. A [`Batch`](windtunnel_model::record::Kind::Batch) says
//! whose the next records are, and how many events of that source came before them: recorded or
//! lost. So no gap passes unseen, wherever it comes from. Each file repeats the definitions that
//! its records need; files can be read alone.
//!
//! The end may be missing after a crash: a part of a record is left out.

mod header;
mod reader;
mod tail;
#[cfg(test)]
mod tests;
mod writer;

pub use header::{FlowDirection, KindName, LaneName, RecordFileHeader};
pub use reader::{FileError, RecordFileElement, RecordFileReader, read_header};
pub use tail::{RecordStreamDecoder, has_header};
pub use writer::{RecordFileWriter, events_of};

use windtunnel_model::record::kind::{MACHINE, RecordSource};

/// Whose records they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventSource {
    /// The layer's number: [`RecordSource`], or one of a later version.
    pub layer: u8,
    /// The node, by its position in the header; [`MACHINE`] for none.
    pub node: u32,
    /// Which of the sources of this layer and node.
    pub instance: u16,
}

impl EventSource {
    /// A source of `layer` of a node.
    #[must_use]
    pub const fn of_node(layer: RecordSource, node: u32, instance: u16) -> EventSource {
        EventSource { layer: layer as u8, node, instance }
    }

    /// A source of `layer` that belongs to no node.
    #[must_use]
    pub const fn of_machine(layer: RecordSource, instance: u16) -> EventSource {
        EventSource { layer: layer as u8, node: MACHINE, instance }
    }
}

/// What has records of kind [`Clock`](windtunnel_model::record::Kind::Clock): no layer, no node.
pub const CLOCK: EventSource = EventSource { layer: 0, node: MACHINE, instance: 0 };

/// The first bytes of a file.
pub const MAGIC: [u8; 8] = *b"WTRECORD";
/// The version of the layout that is written.
pub const VERSION: u32 = 1;
/// As a reader with the other byte order would not see it.
const BYTE_ORDER: u32 = 0x0102_0304;
/// Bytes of the header before its JSON.
const FIXED_BYTES: usize = 32;
