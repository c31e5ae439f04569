//! The control group around the nodes of all runs of an agent.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use windtunnel_limit::{CgroupLimits, CgroupResource, ControlGroup, LimitMechanismChoice};
use windtunnel_model::Bytes;

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
    /// Makes it, for so many thousandths of a processor and so much memory. Limits that somebody else
    /// changes are set again within a second; `not_held` gets a sentence then.
    ///
    /// # Errors
    /// Why this machine cannot hold one of these limits.
    pub fn make(
        cpu_millis: Option<u64>,
        memory: Option<Bytes>,
        not_held: impl Fn(String) + Send + 'static,
    ) -> Result<AgentGroup, String> {
        let mut choice = LimitMechanismChoice::of_machine();
        let asked = [
            (cpu_millis.is_some(), CgroupResource::Processor),
            (memory.is_some(), CgroupResource::Memory),
        ];
        for (is_asked, resource) in asked {
            if is_asked && choice.group_of(resource).is_none() {
                return Err(choice.refusals_of(resource).join("; "));
            }
        }
        let bounds = CgroupLimits {
            processor: cpu_millis.map(|millis| u32::try_from(millis).unwrap_or(u32::MAX)),
            memory: memory.map(|memory| memory.0),
            ..CgroupLimits::default()
        };
        let group = choice.group(None, &bounds).map_err(|error| error.to_string())?;
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

    /// By what a part of a run finds it: [`PartPlace::group`](crate::PartPlace::group).
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
