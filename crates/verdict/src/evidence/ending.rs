//! Why a run ended.

use serde::{Deserialize, Serialize};
use windtunnel_control::part::StopWhy;
use windtunnel_model::valid::{PlanValidationError, Validate, ensure_short};

/// Why a run ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunEndReason {
    /// Every program that is not a daemon has exited.
    #[default]
    Finished,
    /// The file's duration is over.
    Duration,
    /// Somebody asked for it.
    Stopped,
    Interrupted(i32),
    /// The machine could not keep up, and the file wants the run to end then.
    Overloaded(String),
    /// It could not go on.
    Fatal(String),
}

impl Validate for RunEndReason {
    fn validate(&self) -> Result<(), PlanValidationError> {
        match self {
            RunEndReason::Interrupted(signal) => StopWhy::Signal(*signal).validate(),
            RunEndReason::Overloaded(why) | RunEndReason::Fatal(why) => {
                ensure_short("a reason", why)
            }
            RunEndReason::Finished | RunEndReason::Duration | RunEndReason::Stopped => Ok(()),
        }
    }
}

impl RunEndReason {
    /// A machine is lost, without which the file does not want to go on.
    pub fn host_lost(host: &str) -> Self {
        RunEndReason::Fatal(format!("host {host} is lost"))
    }

    /// In words.
    pub fn reason(&self) -> String {
        match self {
            RunEndReason::Finished => "every program has exited".to_owned(),
            RunEndReason::Duration => "the duration is over".to_owned(),
            RunEndReason::Stopped => "stopped by command".to_owned(),
            RunEndReason::Interrupted(signal) => format!("interrupted by signal {signal}"),
            RunEndReason::Overloaded(why) | RunEndReason::Fatal(why) => why.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_of_another_machine_is_a_signal_that_exists_or_a_short_text() {
        for fine in [
            RunEndReason::Finished,
            RunEndReason::Interrupted(15),
            RunEndReason::Fatal("disk full".into()),
        ] {
            assert!(fine.validate().is_ok(), "{fine:?}");
        }
        let long = "x".repeat(1 << 20);
        for wrong in [
            RunEndReason::Interrupted(0),
            RunEndReason::Interrupted(i32::MAX),
            RunEndReason::Fatal(long.clone()),
            RunEndReason::Overloaded(long),
        ] {
            assert!(wrong.validate().is_err());
        }
    }

    #[test]
    fn reasons_name_what_ended_the_run() {
        assert_eq!(RunEndReason::Interrupted(2).reason(), "interrupted by signal 2");
        assert_eq!(RunEndReason::host_lost("m1").reason(), "host m1 is lost");
        assert_eq!(RunEndReason::Stopped.reason(), "stopped by command");
    }
}
