//! Why a run ended.

use serde::{Deserialize, Serialize};
use windtunnel_control::part::StopWhy;
use windtunnel_model::valid::{Invalid, Validate, ensure_short};

/// Why a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Ending {
    /// Every program that is not a daemon has exited.
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

impl Validate for Ending {
    fn validate(&self) -> Result<(), Invalid> {
        match self {
            Ending::Interrupted(signal) => StopWhy::Signal(*signal).validate(),
            Ending::Overloaded(why) | Ending::Fatal(why) => ensure_short("a reason", why),
            Ending::Finished | Ending::Duration | Ending::Stopped => Ok(()),
        }
    }
}

impl Ending {
    /// A machine is lost, without which the file does not want to go on.
    pub(crate) fn host_lost(host: &str) -> Self {
        Ending::Fatal(format!("host {host} is lost"))
    }

    /// In words.
    pub(crate) fn reason(&self) -> String {
        match self {
            Ending::Finished => "every program has exited".to_owned(),
            Ending::Duration => "the duration is over".to_owned(),
            Ending::Stopped => "stopped by command".to_owned(),
            Ending::Interrupted(signal) => format!("interrupted by signal {signal}"),
            Ending::Overloaded(why) | Ending::Fatal(why) => why.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_of_another_machine_is_a_signal_that_exists_or_a_short_text() {
        for fine in [Ending::Finished, Ending::Interrupted(15), Ending::Fatal("disk full".into())] {
            assert!(fine.validate().is_ok(), "{fine:?}");
        }
        let long = "x".repeat(1 << 20);
        for wrong in [
            Ending::Interrupted(0),
            Ending::Interrupted(i32::MAX),
            Ending::Fatal(long.clone()),
            Ending::Overloaded(long),
        ] {
            assert!(wrong.validate().is_err());
        }
    }

    #[test]
    fn reasons_name_what_ended_the_run() {
        assert_eq!(Ending::Interrupted(2).reason(), "interrupted by signal 2");
        assert_eq!(Ending::host_lost("m1").reason(), "host m1 is lost");
        assert_eq!(Ending::Stopped.reason(), "stopped by command");
    }
}
