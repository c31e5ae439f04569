//! Changes of the network, each at its own instant.

use std::sync::mpsc::Sender;

use windtunnel_engine::Engine;
use windtunnel_model::Time;
use windtunnel_model::plan::EventAction;
use windtunnel_sys::poll::EventFd as Wake;

use super::message::PacketLoopEvent;
use super::sampler::Sampler;
use super::schedule::ChangeSchedule;

/// Lets the engine and the schedule catch up to `to`, each change at its own instant.
pub(super) fn advance(
    engine: &mut Engine,
    schedule: &mut ChangeSchedule,
    sampler: &mut Sampler,
    to: Time,
    notes: &Sender<PacketLoopEvent>,
    notify: &Wake,
) {
    while let Some((cause, intended, action)) = schedule.due(to) {
        // What was ordered for a time that has passed meanwhile happens at once.
        let at = intended.max(engine.now());
        engine.handle_timeout(at);
        apply(engine, sampler, at, &action);
        let _ = notes.send(PacketLoopEvent::Applied { cause, intended, at });
        let _ = notify.raise();
    }
    engine.handle_timeout(to);
}

/// Does a change of the network at `at`, which the engine has caught up with.
pub(super) fn apply(engine: &mut Engine, sampler: &mut Sampler, at: Time, action: &EventAction) {
    if let EventAction::Link(change) = action {
        change.patches.iter().for_each(|(lane, _)| sampler.end_phase(at, *lane, engine));
    }
    engine.apply(at, action);
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use windtunnel_engine::EngineLimits;
    use windtunnel_model::plan::LinkChange;
    use windtunnel_model::{Lane, LinkPatch, Plan, Span};

    use super::super::schedule::ChangeOrigin;
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn latency(millis: u64) -> EventAction {
        let patch = LinkPatch { latency: Some(Span::from_millis(millis)), ..LinkPatch::default() };
        EventAction::Link(LinkChange {
            patches: vec![(Lane::from_index(0), patch)],
            state: Vec::new(),
        })
    }

    struct Bench {
        engine: Engine,
        schedule: ChangeSchedule,
        sampler: Sampler,
        wake: Wake,
    }

    impl Bench {
        fn new(plan: &Plan) -> Self {
            let engine = Engine::new(plan, EngineLimits { packet_memory: 1 << 20 });
            let sampler = Sampler::new(plan, Span::from_millis(1));
            Bench {
                engine,
                schedule: ChangeSchedule::default(),
                sampler,
                wake: Wake::open().unwrap(),
            }
        }

        /// The notes of what was done until then.
        fn advance(&mut self, to: Time) -> Vec<(ChangeOrigin, Time)> {
            let (notes, done) = channel();
            let Bench { engine, schedule, sampler, wake } = self;
            advance(engine, schedule, sampler, to, &notes, wake);
            let applied = |note| match note {
                PacketLoopEvent::Applied { cause, intended, .. } => Some((cause, intended)),
                _ => None,
            };
            done.try_iter().filter_map(applied).collect()
        }

        fn latency(&self) -> Span {
            self.engine.profile(Lane::from_index(0)).latency
        }
    }

    fn plan() -> Plan {
        crate::testing::plan("nodes: {a: {}, b: {}}\nlinks: [{between: [a, b], latency: 1ms}]")
    }

    #[test]
    fn each_change_is_done_at_its_own_instant_and_reported() {
        let mut bench = Bench::new(&plan());
        bench.schedule.add(at(30), ChangeOrigin::Plan(1), latency(9));
        bench.schedule.add(at(20), ChangeOrigin::Plan(0), latency(5));
        assert_eq!(bench.advance(at(19)), []);
        assert_eq!(bench.latency(), Span::from_millis(1));
        assert_eq!(bench.advance(at(25)), [(ChangeOrigin::Plan(0), at(20))]);
        assert_eq!(bench.latency(), Span::from_millis(5));
        assert_eq!(bench.advance(at(40)), [(ChangeOrigin::Plan(1), at(30))]);
        assert_eq!((bench.latency(), bench.engine.now()), (Span::from_millis(9), at(40)));
    }

    #[test]
    fn a_change_for_a_time_that_has_passed_is_made_at_once() {
        let mut bench = Bench::new(&plan());
        bench.advance(at(50));
        bench.schedule.add(at(10), ChangeOrigin::Order(3), latency(7));
        // The time that was asked for is reported, and the engine does not go back to it.
        assert_eq!(bench.advance(at(50)), [(ChangeOrigin::Order(3), at(10))]);
        assert_eq!((bench.latency(), bench.engine.now()), (Span::from_millis(7), at(50)));
    }
}
