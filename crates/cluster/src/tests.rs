//! Agents and their clients: that find and lose each other over loopback, and where the other
//! end is hostile, of another version, or without the key.

mod agents;
mod commands;
mod fake_part;
mod flood;
mod hostile;
mod live;
mod questions;
mod runs;
mod versions;

use crate::ClusterKey;
use crate::protocol::{AgentDescription, AgentRequest};
use live::Live;

fn key() -> ClusterKey {
    ClusterKey::generate().expect("there is randomness").0
}

/// The card of an agent, as it gives it itself.
fn card(agent: &Live, key: &ClusterKey) -> AgentDescription {
    agent.client(key).expect("the agent answers").ask(&AgentRequest::card()).expect("a card")
}
