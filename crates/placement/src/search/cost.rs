//! The cost function. The first field that differs decides: no sum of light faults outweighs a
//! grave one.

use core::ops::{Add, AddAssign, Sub};

/// The cost of a division, or a difference of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct PlacementCost {
    /// Processors, memory and room for nodes that machines lack.
    pub(crate) lack: i64,
    /// Pairs of near units that are on machines too far from each other.
    pub(crate) distance: i64,
    /// Unevenness where the strategy is `spread`.
    pub(crate) strict: i64,
    /// Bits a second by which links cut at a machine exceed its uplink.
    pub(crate) uplink: i64,
    /// Weight that is on a machine beyond, or missing from, its fair share.
    pub(crate) uneven: i64,
    /// The weight of links that are cut.
    pub(crate) cut: i64,
}

impl Add for PlacementCost {
    type Output = PlacementCost;
    fn add(self, other: PlacementCost) -> PlacementCost {
        PlacementCost {
            lack: self.lack.saturating_add(other.lack),
            distance: self.distance.saturating_add(other.distance),
            strict: self.strict.saturating_add(other.strict),
            uplink: self.uplink.saturating_add(other.uplink),
            uneven: self.uneven.saturating_add(other.uneven),
            cut: self.cut.saturating_add(other.cut),
        }
    }
}

impl Sub for PlacementCost {
    type Output = PlacementCost;
    fn sub(self, other: PlacementCost) -> PlacementCost {
        PlacementCost {
            lack: self.lack.saturating_sub(other.lack),
            distance: self.distance.saturating_sub(other.distance),
            strict: self.strict.saturating_sub(other.strict),
            uplink: self.uplink.saturating_sub(other.uplink),
            uneven: self.uneven.saturating_sub(other.uneven),
            cut: self.cut.saturating_sub(other.cut),
        }
    }
}

impl AddAssign for PlacementCost {
    fn add_assign(&mut self, other: PlacementCost) {
        *self = *self + other;
    }
}
