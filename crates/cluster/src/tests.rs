//! Agents and their clients: that find and lose each other over loopback, and where the other
//! end is hostile, of another version, or without the key.

mod agents;
mod flood;
mod hostile;
mod live;
mod versions;

use crate::ClusterKey;
use live::Live;

fn key() -> ClusterKey {
    ClusterKey::generate().expect("there is randomness").0
}
