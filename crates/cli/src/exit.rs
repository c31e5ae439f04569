//! The exit codes.

/// The meaning of windtunnel's exit code. `link`, `exec` and `shell` pass the code of their command
/// through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitCategory {
    /// All is well.
    Fine = 0,
    /// The run ended, and something in it is not as it should be.
    Check = 1,
    /// The command line is wrong.
    Usage = 2,
    /// The scenario is wrong.
    Scenario = 3,
    /// The machine does not allow it.
    Machine = 4,
    /// A fault of windtunnel itself.
    Internal = 5,
}

impl ExitCategory {
    /// Every code, in order.
    pub const ALL: [ExitCategory; 6] = [
        ExitCategory::Fine,
        ExitCategory::Check,
        ExitCategory::Usage,
        ExitCategory::Scenario,
        ExitCategory::Machine,
        ExitCategory::Internal,
    ];

    /// The meaning of codes above 128.
    pub const SIGNAL_MEANING: &str = "Ended by signal n (2 for Ctrl-C: 130). With `link`, `exec` and \
        `shell`: the command was ended by signal n.";

    /// A command of `link`, `exec` or `shell` was not found.
    pub const NOT_FOUND: u8 = 127;
    /// A command of `link`, `exec` or `shell` is there and cannot be executed.
    pub const NOT_EXECUTABLE: u8 = 126;
    /// The meaning of the codes of commands.
    pub const COMMAND_MEANING: &str = "`link`, `exec` and `shell` exit with the code of their command. 127: it is \
        not found; 126: it cannot be executed. `link --strict` exits with 1 where the command's code is 0 and \
        the run is not as it should be.";

    /// The number.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Its name, as `kind` of a failure in JSON has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ExitCategory::Fine => "fine",
            ExitCategory::Check => "check",
            ExitCategory::Usage => "usage",
            ExitCategory::Scenario => "scenario",
            ExitCategory::Machine => "machine",
            ExitCategory::Internal => "internal",
        }
    }

    /// Its meaning, for the manual and the reference.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            ExitCategory::Fine => {
                "All is well: the run was faithful and everything in it did what it should."
            }
            ExitCategory::Check => {
                "The run's own check failed: an expectation was not met, a program failed, or the \
                 emulation was not faithful. The last line says which."
            }
            ExitCategory::Usage => {
                "The command line is wrong, or names a live run, node or link that does not exist."
            }
            ExitCategory::Scenario => {
                "The scenario has mistakes or cannot be read, or the machines of --hosts cannot carry it. Each \
                 mistake is reported with line and column; nothing has been started."
            }
            ExitCategory::Machine => {
                "This machine does not allow what the run needs; `windtunnel doctor` shows the reason and \
                 how to change it."
            }
            ExitCategory::Internal => "A fault of windtunnel itself. Please report it.",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_their_positions() {
        for (position, exit) in ExitCategory::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(exit.code()), position);
        }
    }
}
