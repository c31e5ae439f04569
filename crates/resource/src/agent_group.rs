//! The control group around the nodes of all runs of an agent.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use windtunnel_limit::{CgroupLimits, ControlGroup, LimitMechanismChoice};
use windtunnel_model::ResourceAmounts;

/// It limits what the nodes of all runs use together, and a thread looks whether it still does. Dropping
/// it removes it; they are gone by then.
#[derive(Debug)]
pub struct AgentGroup {
    address: String,
    /// The thread ends when this is dropped.
    alive: Option<Sender<()>>,
    looking: Option<JoinHandle<()>>,
}

impl AgentGroup {
    /// Makes it, for so much of the machine. Limits that somebody else changes are set again within a
    /// second; `not_held` gets a sentence then.
    ///
    /// # Errors
    /// Why this machine cannot hold one of these limits.
    pub fn make(
        asked: ResourceAmounts,
        not_held: impl Fn(String) + Send + 'static,
    ) -> Result<AgentGroup, String> {
        let mut choice = LimitMechanismChoice::of_machine();
        for (resource, _) in asked.iter() {
            if choice.group_of(resource).is_none() {
                return Err(choice.refusals_of(resource).join("; "));
            }
        }
        let group =
            choice.group(None, &CgroupLimits::of(asked)).map_err(|error| error.to_string())?;
        AgentGroup::look_after(group, not_held).map_err(|error| error.to_string())
    }

    fn look_after(
        mut group: ControlGroup,
        not_held: impl Fn(String) + Send + 'static,
    ) -> std::io::Result<AgentGroup> {
        let address = group.address();
        let (alive, is_alive) = channel::<()>();
        let look = move || {
            while is_alive.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
                group.correct().into_iter().for_each(|(_, why)| not_held(why));
            }
        };
        let looking = std::thread::Builder::new().name("group".to_owned()).spawn(look)?;
        Ok(AgentGroup { address, alive: Some(alive), looking: Some(looking) })
    }

    /// By what a part of a run finds it.
    #[must_use]
    pub fn address(&self) -> String {
        self.address.clone()
    }
}

impl Drop for AgentGroup {
    fn drop(&mut self) {
        self.alive = None;
        if let Some(looking) = self.looking.take() {
            // A panic there has been printed.
            let _ = looking.join();
        }
    }
}

const LOOK_EVERY: Duration = Duration::from_secs(1);
