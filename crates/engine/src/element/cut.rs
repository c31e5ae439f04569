//! Cut: lets nothing in while the lane is down or parted.
//!
//! - **Parameters**: up or down (events, live changes; default up); which side of a partition its ends
//!   are on. The two are independent: healing a partition does not bring up what was taken down.
//! - **Time, order, bytes**: unchanged.
//! - **Drop reasons**: `down`, `partition` (down first, where both hold).
//! - **Model**: a cable pulled out at its near end. What has been accepted goes on, as bits on a long
//!   cable would; `ip link set down` differs, since it also empties the device's queue.

use crate::counters::DropReason;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cut {
    pub(crate) down: bool,
    pub(crate) parted: bool,
}

impl Cut {
    /// Why a packet that is offered now cannot enter.
    pub(crate) fn refuses(self) -> Option<DropReason> {
        match self {
            Cut { down: true, .. } => Some(DropReason::Down),
            Cut { parted: true, .. } => Some(DropReason::Partition),
            Cut { down: false, parted: false } => None,
        }
    }
}
