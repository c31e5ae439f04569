//! Flaps: one event a cut and one a mend.

use windtunnel_model::plan::{EventAction, ScheduledEvent};
use windtunnel_model::random::{RandomSequence, RandomStream};
use windtunnel_model::{Lane, Span};

use super::end::RepetitionEnd;
use super::expansion::ExpansionBudget;
use super::scene::Scene;
use super::timeline::EventTimeline;
use crate::decode::{EventDraft, FlapDraft};
use crate::error::Diagnostics;

pub(super) fn expand(
    found: &mut Diagnostics,
    event: &EventDraft,
    flap: &FlapDraft,
    scene: &Scene<'_>,
    budget: &mut ExpansionBudget,
    timeline: &mut EventTimeline,
) -> Option<()> {
    let lanes = scene.lanes(found, &flap.links, flap.direction.as_ref())?;
    let end = RepetitionEnd::of(found, event, &flap.end, scene)?;
    // A cut and a mend each; random phases have the same mean.
    let cuts = end.repetitions(event.at.value, flap.every.value);
    budget.announce(found, cuts.saturating_mul(2), flap.every.place)?;
    let mut phases = FlapSchedule::new(flap, event.at.value, scene, &lanes);
    for _ in 0..end.times {
        let (cut, mend) = phases.next();
        if cut >= end.at {
            break;
        }
        // A cut does not outlive its flap.
        let mend = mend.min(end.at);
        if !budget.spend(found, 2 * (1 + lanes.len()), event.place) {
            return None;
        }
        for (at, up) in [(cut, false), (mend, true)] {
            let action = EventAction::Flap { lanes: lanes.clone(), up };
            timeline.events.push(ScheduledEvent { at, action });
        }
    }
    Some(())
}

/// When a flap cuts and mends.
struct FlapSchedule<'f> {
    flap: &'f FlapDraft,
    next: Span,
    draws: RandomSequence,
}

impl<'f> FlapSchedule<'f> {
    fn new(flap: &'f FlapDraft, begin: Span, scene: &Scene<'_>, lanes: &[Lane]) -> Self {
        let plan = scene.plan;
        let names: Vec<String> = lanes
            .iter()
            .map(|lane| format!("{} {}", plan.links[lane.link.index()].name, lane.direction.name()))
            .collect();
        let name = ["flap", &(scene.now + begin).to_string(), &names.join(" ")];
        FlapSchedule {
            flap,
            next: begin,
            draws: RandomSequence::new(RandomStream::named(plan.seed, &name)),
        }
    }

    fn next(&mut self) -> (Span, Span) {
        let mut dark = self.flap.down;
        let mut light = self.flap.every.value.saturating_sub(self.flap.down);
        if self.flap.random {
            dark = self.random(dark);
            light = self.random(light);
        }
        let cut = self.next;
        let mend = cut + dark;
        self.next = mend + light;
        (cut, mend)
    }

    /// From 1 ns to twice as long, so that time always passes.
    fn random(&mut self, mean: Span) -> Span {
        Span::from_nanos(self.draws.below(mean.as_nanos().saturating_mul(2)) + 1)
    }
}
