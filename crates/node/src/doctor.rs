//! What this machine allows, found by trying: each mechanism in a process of its own, which goes
//! away with all that it has made.

mod checks;
mod files;
mod trial;

use crate::hint;
use trial::PrerequisiteTrial;

/// One mechanism that a run needs or profits from.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct PrerequisiteCheck {
    pub name: &'static str,
    /// Whether a run can do with it as it is.
    pub ok: bool,
    /// What was found.
    pub detail: String,
    /// What the user can do about it, in one line.
    pub hint: Option<String>,
}

/// Tries each mechanism. The caller must have one thread only: otherwise no process can be made to
/// try in, and each check says so.
#[must_use]
pub fn diagnose() -> Vec<PrerequisiteCheck> {
    let settings = checks::SETTINGS.iter().map(checks::KernelRestriction::check);
    let trials = checks::TRIALS.iter().map(PrerequisiteTrial::check);
    let mut all: Vec<PrerequisiteCheck> = settings.chain(trials).collect();
    all.push(files::identities());
    all.push(checks::open_files());
    all.push(checks::priority());
    all.extend(checks::limits_of_nodes());
    all
}

impl PrerequisiteCheck {
    fn good(name: &'static str, detail: impl Into<String>) -> PrerequisiteCheck {
        PrerequisiteCheck { name, ok: true, detail: detail.into(), hint: None }
    }

    fn bad(
        name: &'static str,
        detail: impl Into<String>,
        hint: Option<String>,
    ) -> PrerequisiteCheck {
        PrerequisiteCheck { name, ok: false, detail: detail.into(), hint }
    }
}
