//! What several nodes have together of their machine.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::demand::Demand;
use crate::id::ReservationId;
use crate::plan::Plan;

/// Limits, minimum and weight of several nodes together, or of other reservations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct ResourceReservation {
    /// Unique among reservations, nodes and groups of these.
    pub name: String,
    /// The one that it is part of; `None`: of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ReservationId>,
    /// What all that is within has together.
    pub demand: Demand,
}

impl Plan {
    /// The reservation called `name`.
    #[must_use]
    pub fn reservation_named(&self, name: &str) -> Option<ReservationId> {
        let position = self.reservations.iter().position(|it| it.name == name);
        position.map(ReservationId::from_index)
    }

    /// A reservation and all those around it, the innermost first.
    pub fn reservations_from(
        &self,
        first: Option<ReservationId>,
    ) -> impl Iterator<Item = ReservationId> + '_ {
        core::iter::successors(first, |it| self.reservations[it.index()].parent)
            .take(self.reservations.len())
    }

    /// What a reservation has reserved: as it says, or what is reserved within it. Processors in
    /// thousandths, and bytes of memory.
    #[must_use]
    pub fn reserved_by(&self, reservation: ReservationId) -> [u64; 2] {
        let [cpu, memory] = self.reserved_within(reservation);
        let own = &self.reservations[reservation.index()].demand;
        [
            own.cpu_reserved_millis.map_or(cpu, u64::from),
            own.memory_reserved.map_or(memory, |memory| memory.0),
        ]
    }

    /// What nodes and reservations have reserved that are part of a reservation.
    #[must_use]
    pub fn reserved_within(&self, reservation: ReservationId) -> [u64; 2] {
        let is_part = |of: Option<ReservationId>| of == Some(reservation);
        let nodes = self.nodes.iter().filter(|node| is_part(node.reservation));
        let nodes = nodes.map(|node| [node.reserved_cpu_millis(), node.reserved_memory()]);
        let inner = self.reservations.iter().enumerate().filter(|(_, it)| is_part(it.parent));
        let inner = inner.map(|(index, _)| self.reserved_by(ReservationId::from_index(index)));
        nodes.chain(inner).fold([0; 2], |sum: [u64; 2], part| {
            [sum[0].saturating_add(part[0]), sum[1].saturating_add(part[1])]
        })
    }

    /// The most reservations: each is a control group, in which others may be.
    pub const RESERVATIONS_MAX: usize = 1000;
}
