//! Whether what was planned for a time of the run happened then.

use serde::{Deserialize, Serialize};
use windtunnel_model::Span;
use windtunnel_model::valid::{PlanValidationError, Validate, ensure, ensure_short};

/// What was planned for times of a run: how much happened, and what of it late.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PunctualitySummary {
    pub happened: u64,
    /// Of these, later than their bounds.
    pub late: u64,
    /// The latest of all.
    pub latest: Span,
    /// Those that were furthest beyond their bounds, the furthest first.
    pub worst: Vec<LateOccurrence>,
}

/// Something that happened later than it may.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LateOccurrence {
    pub what: String,
    pub intended: Span,
    pub late: Span,
    pub bound: Span,
}

impl PunctualitySummary {
    /// Something has happened.
    pub fn add(&mut self, event: LateOccurrence) {
        self.happened = self.happened.saturating_add(1);
        self.latest = self.latest.max(event.late);
        if event.late > event.bound {
            self.late = self.late.saturating_add(1);
            self.keep(event);
        }
    }

    /// Adds what another machine saw.
    pub fn add_all(&mut self, other: &PunctualitySummary) {
        self.happened = self.happened.saturating_add(other.happened);
        self.late = self.late.saturating_add(other.late);
        self.latest = self.latest.max(other.latest);
        other.worst.iter().cloned().for_each(|event| self.keep(event));
    }

    fn keep(&mut self, event: LateOccurrence) {
        let beyond = |event: &LateOccurrence| event.late.saturating_sub(event.bound);
        let at = self.worst.partition_point(|other| beyond(other) >= beyond(&event));
        self.worst.insert(at, event);
        self.worst.truncate(WORST_MOST);
    }
}

impl Validate for PunctualitySummary {
    fn validate(&self) -> Result<(), PlanValidationError> {
        let few = self.worst.len() <= WORST_MOST && self.late <= self.happened;
        ensure(few, || "it names more late events than there can be".to_owned())?;
        self.worst.iter().try_for_each(|event| ensure_short("the name of an event", &event.what))
    }
}

/// Enough to see what was late; all are counted.
const WORST_MOST: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn event(what: &str, late: u64, bound: u64) -> LateOccurrence {
        let (late, bound) = (Span::from_millis(late), Span::from_millis(bound));
        LateOccurrence { what: what.to_owned(), intended: Span::from_secs(1), late, bound }
    }

    #[test]
    fn what_is_furthest_beyond_its_own_bound_is_named_first() {
        let mut planned = PunctualitySummary::default();
        for (what, late, bound) in [("a", 1, 1), ("b", 5, 1), ("c", 30, 29), ("d", 9, 2)] {
            planned.add(event(what, late, bound));
        }
        let names: Vec<&str> = planned.worst.iter().map(|event| event.what.as_str()).collect();
        assert_eq!(names, ["d", "b", "c"]);
        assert_eq!((planned.happened, planned.late), (4, 3));
        assert_eq!(planned.latest, Span::from_millis(30));
    }

    #[test]
    fn twenty_are_kept_of_any_number_and_all_are_counted() {
        let mut planned = PunctualitySummary::default();
        (2..100).for_each(|late| planned.add(event("x", late, 1)));
        let mut all = PunctualitySummary::default();
        all.add_all(&planned);
        all.add_all(&planned);
        assert_eq!((all.late, all.worst.len()), (196, 20));
        assert_eq!(all.worst[0].late, Span::from_millis(99));
        assert!(all.validate().is_ok());
        all.worst.push(event(&"x".repeat(1 << 20), 2, 1));
        assert!(all.validate().is_err());
    }
}
