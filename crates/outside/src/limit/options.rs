//! What is asked for a command or a program.

use std::path::PathBuf;

use windtunnel_budget::pacing::PacingBudgetScope;
use windtunnel_model::ResourceAmounts;

use super::destination::AllowedDestination;

/// What limits a command.
#[derive(Debug, Clone)]
pub struct CommandLimitOptions {
    /// The name of a group; without one the limit is the command's alone.
    pub group: Option<String>,
    /// Of a group that there is already, `None` takes what it has.
    pub per: Option<PacingBudgetScope>,
    /// Bits a second to send and to receive, 0 for no limit; `None`: as it is.
    pub rates: [Option<u64>; 2],
    /// What the command and all that it starts may use of the machine.
    pub resources: ResourceAmounts,
    /// Where the command and all that it starts may connect and send to; empty: anywhere.
    pub connect: Vec<AllowedDestination>,
    /// Files and folders that the command and all that it starts may not see.
    pub denied: Vec<PathBuf>,
}

impl CommandLimitOptions {
    /// Whether programs are under rates: those of a group may get some later.
    pub(super) fn moves(&self) -> bool {
        self.group.is_some() || self.rates != [None; 2]
    }
}
