//! Texts for people: events and quantities.

pub mod event;
pub mod quantity;
