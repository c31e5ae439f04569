//! From the tree to the file's own terms: types and values of single keys. What needs more than one
//! place of the file to judge is left to `resolve`.

mod churn;
mod discipline;
mod event;
mod expect;
mod fault;
mod file;
mod jitter;
mod lan;
mod limits;
mod link;
mod loss;
mod machine;
mod model;
mod node;
mod pool;
mod program;
mod property;
mod ready;
mod receive_queue;
mod record;
mod reorder;
mod reserve;
mod route;
mod share;
mod trace;

pub(crate) use crate::grammar::{At, Decoder, Field, Fields};
pub(crate) use churn::{ChurnDraft, ChurnKind, TextDraft};
pub(crate) use event::{EventDraft, EventKind, decode_now};
pub(crate) use expect::{ExpectDraft, Subject};
pub(crate) use fault::{Amount, EndDraft, FlapDraft};
pub(crate) use file::{Draft, File, decode_file};
pub(crate) use lan::LanDraft;
pub(crate) use limits::decode_new_cpu;
pub use limits::parse_processors;
pub(crate) use link::{LinkDraft, LinkKeys};
pub(crate) use machine::MachineKeys;
pub(crate) use model::{ModelDraft, Paths};
pub(crate) use node::{MOST_NODES, NodeDraft, NodeKeys};
pub(crate) use pool::{Pool, Pools, is_usable};
pub(crate) use program::ProgramDraft;
pub(crate) use property::{PROPERTIES, decode_property, parse_queue};
pub(crate) use record::RecordDraft;
pub(crate) use reserve::{ReservationDraft, read_reservation};
pub(crate) use route::{RouteDraft, WayDraft};
pub(crate) use share::Share;
