//! Connections whose place another may take, in order.

use alloc::collections::BTreeSet;

use crate::connection::ReplicatedConnection;
use crate::event::ReplicatedConnectionKey;
use windtunnel_model::Time;

/// What a connection is, if another may take its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionEvictionClass {
    /// None may.
    None,
    /// Its client has not answered the SYN-ACK. When its SYN came.
    HalfOpen(Time),
    /// It is over. When it is to be forgotten.
    Over(Time),
}

impl ConnectionEvictionClass {
    pub(super) fn of(connection: &ReplicatedConnection) -> Self {
        match connection.life.over_until() {
            Some(until) => Self::Over(until),
            None if connection.is_half_open() => Self::HalfOpen(connection.life.opened),
            None => Self::None,
        }
    }
}

/// All of them.
#[derive(Debug, Clone, Default)]
pub(super) struct EvictableConnections {
    half_open: BTreeSet<(Time, ReplicatedConnectionKey)>,
    over: BTreeSet<(Time, ReplicatedConnectionKey)>,
}

impl EvictableConnections {
    /// Puts a connection where it belongs now.
    pub(super) fn put(
        &mut self,
        key: ReplicatedConnectionKey,
        from: &mut ConnectionEvictionClass,
        to: ConnectionEvictionClass,
    ) {
        if *from == to {
            return;
        }
        match *from {
            ConnectionEvictionClass::HalfOpen(at) => self.half_open.remove(&(at, key)),
            ConnectionEvictionClass::Over(at) => self.over.remove(&(at, key)),
            ConnectionEvictionClass::None => true,
        };
        match to {
            ConnectionEvictionClass::HalfOpen(at) => self.half_open.insert((at, key)),
            ConnectionEvictionClass::Over(at) => self.over.insert((at, key)),
            ConnectionEvictionClass::None => true,
        };
        *from = to;
    }

    /// How many are half open.
    pub(super) fn half_open(&self) -> usize {
        self.half_open.len()
    }

    /// The one that began first.
    pub(super) fn oldest_half_open(&self) -> Option<ReplicatedConnectionKey> {
        self.half_open.first().map(|(_, key)| *key)
    }

    /// The one that is over and is to be forgotten first.
    pub(super) fn first_over(&self) -> Option<ReplicatedConnectionKey> {
        self.over.first().map(|(_, key)| *key)
    }
}
