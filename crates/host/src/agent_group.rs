//! The control group around the nodes of all runs of an agent.

use windtunnel_limit::{Bounds, Choice, Group, Resource};
use windtunnel_model::Bytes;

/// It limits what the nodes of all runs use together. Dropping it removes it; they are gone by then.
#[derive(Debug)]
pub struct AgentGroup(Group);

impl AgentGroup {
    /// Makes it, for so many thousandths of a processor and so much memory.
    ///
    /// # Errors
    /// Why this machine cannot hold one of these limits.
    pub fn make(cpu_millis: Option<u64>, memory: Option<Bytes>) -> Result<AgentGroup, String> {
        let mut choice = Choice::of_machine();
        let asked =
            [(cpu_millis.is_some(), Resource::Processor), (memory.is_some(), Resource::Memory)];
        for (is_asked, resource) in asked {
            if is_asked && choice.group_of(resource).is_none() {
                return Err(choice.refusals_of(resource).join("; "));
            }
        }
        let bounds = Bounds {
            processor: cpu_millis.map(|millis| u32::try_from(millis).unwrap_or(u32::MAX)),
            memory: memory.map(|memory| memory.0),
            ..Bounds::default()
        };
        choice.group(None, &bounds).map(AgentGroup).map_err(|error| error.to_string())
    }

    /// By what a part of a run finds it: [`PartPlace::group`](crate::PartPlace::group).
    #[must_use]
    pub fn address(&self) -> String {
        self.0.address()
    }
}
