//! What every step of a connection is given.

use windtunnel_model::Time;

use crate::config::ReplicationConfig;
use crate::sink::ReplicationOutbox;

/// What every step of a connection is given.
pub(crate) struct ReplicationContext<'a> {
    pub(crate) now: Time,
    pub(crate) config: &'a ReplicationConfig,
    pub(crate) sink: &'a mut ReplicationOutbox,
}
