//! How much may wait.

use windtunnel_model::LinkProfile;
use windtunnel_model::profile::QueueLimit;

/// The most that may wait; what is not limited is `u64::MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct QueueCapacity {
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

impl QueueCapacity {
    pub(super) fn new(profile: &LinkProfile) -> Self {
        let none = QueueCapacity { packets: u64::MAX, bytes: u64::MAX };
        match (profile.effective_queue(), profile.rate) {
            (Some(QueueLimit::Packets(packets)), _) => QueueCapacity { packets: packets.0, ..none },
            (Some(QueueLimit::Bytes(bytes)), _) => QueueCapacity { bytes: bytes.0, ..none },
            (Some(QueueLimit::Time(span)), Some(rate)) => {
                QueueCapacity { bytes: rate.bytes_in(span), ..none }
            }
            (Some(QueueLimit::Time(_)), None) | (None, _) => none,
        }
    }
}
