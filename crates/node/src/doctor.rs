//! What this machine allows, found by trying: each mechanism in a process of its own, which goes
//! away with all that it has made.

mod checks;
mod files;
mod trial;

use crate::hint;
use trial::Trial;

/// One mechanism that a run needs or profits from.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Check {
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
pub fn diagnose() -> Vec<Check> {
    let settings = checks::SETTINGS.iter().map(checks::Setting::check);
    let trials = checks::TRIALS.iter().map(Trial::check);
    let mut all: Vec<Check> = settings.chain(trials).collect();
    all.push(files::identities());
    all.push(checks::open_files());
    all.push(checks::priority());
    all.extend(checks::limits_of_nodes());
    all
}

impl Check {
    fn good(name: &'static str, detail: impl Into<String>) -> Check {
        Check { name, ok: true, detail: detail.into(), hint: None }
    }

    fn bad(name: &'static str, detail: impl Into<String>, hint: Option<String>) -> Check {
        Check { name, ok: false, detail: detail.into(), hint }
    }
}
