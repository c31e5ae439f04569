//! Histories of which every part is known.

mod cases;
mod names;
mod properties;
pub(crate) mod wire;
