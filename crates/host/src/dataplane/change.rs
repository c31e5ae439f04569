//! Changes of the network, each at its own instant.

use std::sync::mpsc::Sender;

use windtunnel_engine::{Engine, NetworkChange};
use windtunnel_model::Time;
use windtunnel_model::plan::Action;
use windtunnel_sys::poll::Event as Wake;

use super::message::Note;
use super::sampler::Sampler;
use super::schedule::Schedule;
use crate::clock::now;

/// Lets the engine and the schedule catch up to `to`, each change at its own instant.
pub(super) fn advance(
    engine: &mut Engine,
    schedule: &mut Schedule,
    sampler: &mut Sampler,
    to: Time,
    notes: &Sender<Note>,
    told: &Wake,
) {
    while let Some((cause, intended, action)) = schedule.due(to) {
        // What was ordered for a time that has passed meanwhile happens at once.
        let at = intended.max(engine.now());
        engine.handle_timeout(at);
        apply(engine, sampler, at, &action);
        let _ = notes.send(Note::Applied { cause, intended, at: now() });
        let _ = told.raise();
    }
    engine.handle_timeout(to);
}

/// Does a change of the network at `at`, which the engine has caught up with.
pub(super) fn apply(engine: &mut Engine, sampler: &mut Sampler, at: Time, action: &Action) {
    match action {
        Action::Link(change) => {
            change.patches.iter().for_each(|(lane, _)| sampler.end_phase(at, *lane, engine));
            engine.apply(at, &NetworkChange::Links(change));
        }
        Action::Flap { lanes, up } => engine.apply(at, &NetworkChange::Flap { lanes, up: *up }),
        Action::Partition { groups, one_way: false } => {
            engine.apply(at, &NetworkChange::Partition(groups));
        }
        Action::Partition { groups, one_way: true } => {
            let side = |index: usize| groups.get(index).map_or(&[][..], Vec::as_slice);
            engine.apply(at, &NetworkChange::PartitionOneWay([side(0), side(1)]));
        }
        Action::Heal => engine.apply(at, &NetworkChange::Heal),
        Action::Route(change) => engine.apply(at, &NetworkChange::Route(change)),
        Action::Reroute => engine.apply(at, &NetworkChange::Reroute),
        Action::Node { .. } | Action::Churn { .. } | Action::Absent { .. } => {}
    }
}
