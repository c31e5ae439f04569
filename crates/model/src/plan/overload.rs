//! What is done when the machine cannot keep up.

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

/// What is done when the machine has less processor time than the programs and the emulation need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum OnOverload {
    /// It is reported; the run goes on, late as it is.
    #[default]
    Report,
    /// The run ends.
    Abort,
    /// Every program is paused until the emulation has caught up.
    Freeze,
}

impl OnOverload {
    pub(super) fn is_report(&self) -> bool {
        *self == OnOverload::Report
    }
}

impl FromStr for OnOverload {
    type Err = UnknownOnOverload;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "report" => Ok(OnOverload::Report),
            "abort" => Ok(OnOverload::Abort),
            "freeze" => Ok(OnOverload::Freeze),
            _ => Err(UnknownOnOverload(text.to_owned())),
        }
    }
}

/// A text that names no [`OnOverload`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not one of report, abort, freeze")]
pub struct UnknownOnOverload(String);
