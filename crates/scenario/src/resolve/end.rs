//! When something that goes on ends.

use windtunnel_model::Span;

use super::scene::Scene;
use crate::decode::{EndDraft, EventDraft};
use crate::error::Diagnostics;

/// When something that goes on ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct RepetitionEnd {
    /// It does not happen then any more.
    pub(super) at: Span,
    pub(super) times: u64,
}

impl RepetitionEnd {
    /// What the file says, at the latest the end of the run; it is a mistake if there is none.
    pub(super) fn of(
        found: &mut Diagnostics,
        event: &EventDraft,
        end: &EndDraft,
        scene: &Scene<'_>,
    ) -> Option<Self> {
        const NEVER: Span = Span::from_nanos(u64::MAX);
        let begin = event.at.value;
        let duration = scene.plan.duration.map(|duration| duration.saturating_sub(scene.now));
        let until = end.until.as_ref().map(|at| (at.value.saturating_sub(scene.now), at.place));
        if let Some((until, place)) = until
            && until <= begin
        {
            found.mistake(place, "`until`: this is over before it begins");
            return None;
        }
        let after = end.after.as_ref().map(|after| (begin + after.value, after.place));
        if let (Some((at, place)), Some(duration)) = (after.or(until), duration)
            && at > duration
        {
            let message = format!("this goes on until {at}, later than the end at {duration}");
            found.notice(place, message);
        }
        let at = after.or(until).map(|(at, _)| at);
        let times = end.times;
        if at.is_none() && times.is_none() && duration.is_none() {
            let message = "this would go on for ever";
            let hint = "say when it ends: `for: 10s`, `times: 5` or `until: 60s`";
            found.mistake_with_hint(event.place, message, hint);
            return None;
        }
        let limit = if times.is_some() { None } else { duration };
        Some(RepetitionEnd { at: at.or(limit).unwrap_or(NEVER), times: times.unwrap_or(u64::MAX) })
    }

    /// How often something happens that begins at `begin` and comes again `every` so much later.
    pub(super) fn repetitions(&self, begin: Span, every: Span) -> u64 {
        let lasts = self.at.saturating_sub(begin).as_nanos();
        lasts.div_ceil(every.as_nanos().max(1)).min(self.times)
    }
}
