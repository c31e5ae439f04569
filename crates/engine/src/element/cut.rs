//! Cut: lets nothing in while the lane is down, parted or in the dark phase of a flap.
//!
//! - **Parameters**: up or down (events, live changes; default up); which side of a partition its
//!   ends are on; how many flaps hold it cut. The causes are independent: the lane carries packets
//!   only if none holds, so healing a partition does not bring up what was taken down.
//! - **Time, order, bytes**: unchanged.
//! - **Drop reasons**: `down` (flaps as well), `partition` (down first, where both hold).
//! - **Model**: a cable pulled out at its near end. What has been accepted goes on, as bits on a
//!   long cable would; `ip link set down` differs, since it also empties the device's queue.

use crate::counters::DropReason;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LaneCut {
    pub(crate) down: bool,
    pub(crate) parted: bool,
    /// Flaps in their dark phase.
    pub(crate) flaps: u32,
}

impl LaneCut {
    /// Why a packet that is offered now cannot enter.
    pub(crate) fn refuses(self) -> Option<DropReason> {
        if self.down || self.flaps > 0 {
            return Some(DropReason::Down);
        }
        self.parted.then_some(DropReason::Partition)
    }
}
