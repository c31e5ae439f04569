//! Connections whose place another may take, in order.

use alloc::collections::BTreeSet;

use crate::connection::Connection;
use crate::event::Key;
use windtunnel_model::Time;

/// What a connection is, if another may take its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shelf {
    /// None may.
    None,
    /// Its client has not answered the SYN-ACK. When its SYN came.
    HalfOpen(Time),
    /// It is over. When it is to be forgotten.
    Over(Time),
}

impl Shelf {
    pub(super) fn of(connection: &Connection) -> Self {
        match connection.over_until() {
            Some(until) => Self::Over(until),
            None if connection.is_half_open() => Self::HalfOpen(connection.opened()),
            None => Self::None,
        }
    }
}

/// All of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Shelves {
    half_open: BTreeSet<(Time, Key)>,
    over: BTreeSet<(Time, Key)>,
}

impl Shelves {
    /// Puts a connection where it belongs now.
    pub(super) fn put(&mut self, key: Key, from: &mut Shelf, to: Shelf) {
        if *from == to {
            return;
        }
        match *from {
            Shelf::HalfOpen(at) => self.half_open.remove(&(at, key)),
            Shelf::Over(at) => self.over.remove(&(at, key)),
            Shelf::None => true,
        };
        match to {
            Shelf::HalfOpen(at) => self.half_open.insert((at, key)),
            Shelf::Over(at) => self.over.insert((at, key)),
            Shelf::None => true,
        };
        *from = to;
    }

    /// How many are half open.
    pub(super) fn half_open(&self) -> usize {
        self.half_open.len()
    }

    /// The one that began first.
    pub(super) fn oldest_half_open(&self) -> Option<Key> {
        self.half_open.first().map(|(_, key)| *key)
    }

    /// The one that is over and is to be forgotten first.
    pub(super) fn first_over(&self) -> Option<Key> {
        self.over.first().map(|(_, key)| *key)
    }
}
