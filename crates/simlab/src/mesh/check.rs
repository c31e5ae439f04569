//! Waiting until all agents know the truth.

use windtunnel_model::Span;

use super::MeshWorld;
use super::truth::{AgentIgnorance, TruthComparison};

/// How often it is looked.
const STEP: Span = Span::from_millis(50);
/// Events in the message of a failed test.
const EVENTS_SHOWN: usize = 60;

impl MeshWorld {
    /// Lets time pass until all agents know the truth. Returns how long that took.
    ///
    /// # Errors
    /// A remaining difference after `limit`.
    pub fn settle(&mut self, limit: Span) -> Result<Span, String> {
        let (begin, mut last) = (self.now, 0);
        // The machine that differed last is checked first, all only when it does not differ.
        while let Some(found) = self.first_difference(last) {
            if self.now.since(begin) >= limit {
                return Err(format!("after {limit}: {found}"));
            }
            last = found.machine;
            self.run_for(STEP);
        }
        Ok(self.now.since(begin))
    }

    /// Something that some agent does not know or knows wrongly.
    #[must_use]
    pub fn difference(&self) -> Option<String> {
        self.first_difference(0).map(|found| found.to_string())
    }

    fn first_difference(&self, first: usize) -> Option<AgentIgnorance> {
        TruthComparison::new(self).first_difference(first)
    }

    /// The agents' views, and the last events: for the message of a failed test.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut text = String::new();
        for (index, machine) in self.machines.iter().enumerate() {
            let Some(mesh) = &machine.mesh else { continue };
            let known: Vec<String> = mesh.agents().map(ToString::to_string).collect();
            text += &format!("machine {index}, {}, knows {known:?}\n", mesh.identity());
        }
        for report in self.log.last(EVENTS_SHOWN) {
            text += &format!("{} to {}: {:?}\n", report.at, report.machine, report.event);
        }
        text
    }
}
