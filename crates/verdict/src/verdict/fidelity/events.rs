//! Whether what was planned for a time happened then.

use super::cause::cause;
use crate::evidence::LateOccurrence;
use crate::evidence::RunEvidence;
use crate::text::rounded;

/// What happened later than it may.
pub(super) fn doubt(evidence: &RunEvidence<'_>) -> Option<String> {
    let planned = evidence.planned;
    let (worst, _) = planned.worst.split_first()?;
    let named: Vec<String> = planned.worst.iter().take(NAMED).map(text).collect();
    let more = planned.late.saturating_sub(u64::try_from(named.len()).unwrap_or(u64::MAX));
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    Some(format!(
        "{} of {} planned events were late: {}{more}; likely cause: {}",
        planned.late,
        planned.happened,
        named.join(", "),
        cause(evidence, worst.late)
    ))
}

fn text(event: &LateOccurrence) -> String {
    let LateOccurrence { what, intended, late, bound } = event;
    let (intended, late, bound) = (rounded(*intended), rounded(*late), rounded(*bound));
    format!("{what}, planned for {intended}, by {late} (it may by {bound})")
}

const NAMED: usize = 3;
