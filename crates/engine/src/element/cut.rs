//! Cut: lets nothing in while the lane is down, parted or in the dark phase of a flap.
//!
//! - **Parameters**: up or down (events, live changes; default up); which side of a partition its
//!   ends are on; how many flaps hold it cut. The causes are independent ([`LaneState`]): healing a
//!   partition does not bring up what was taken down.
//! - **Time, order, bytes**: unchanged.
//! - **Drop reasons**: `down` (flaps as well), `partition` (down first, where both hold).
//! - **Model**: a cable pulled out at its near end. What has been accepted goes on, as bits on a
//!   long cable would; `ip link set down` differs, since it also empties the device's queue.

use windtunnel_model::DropReason;
use windtunnel_model::state::{LaneCut, LaneState};

/// Why a packet that is offered now cannot enter.
#[inline]
pub(crate) fn refuses(state: &LaneState) -> Option<DropReason> {
    state.cut().map(|cut| match cut {
        LaneCut::Down => DropReason::Down,
        LaneCut::Partition => DropReason::Partition,
    })
}
