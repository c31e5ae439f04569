//! Changes and events that are ordered from outside: done now or later, and answered when done.

use windtunnel_control::Reply;
use windtunnel_model::plan::{Action, Event as Planned, LinkChange};
use windtunnel_model::{Span, Time};
use windtunnel_trace::event::Event;

use super::Live;
use super::control::Refusal;
use crate::dataplane::Order;

/// A change of the network that was ordered.
#[derive(Debug)]
pub(super) struct Ordered {
    pub(super) action: Action,
    /// When it was to happen, where that was asked for.
    pub(super) intended: Option<Span>,
    /// Who waits for it to take effect.
    pub(super) client: Option<u64>,
}

/// An answer that is not complete.
#[derive(Debug)]
pub(super) struct Pending {
    /// Changes of the network that have not been confirmed.
    left: usize,
    answer: Answer,
}

/// What a client is told.
#[derive(Debug)]
enum Answer {
    /// That it is done.
    Done,
    /// What was done when, and how much is still to come, until when.
    Happened { events: Vec<Event>, later: usize, until: Span },
}

impl Live {
    /// The answer follows when the packet loop has done it.
    pub(super) fn change(&mut self, id: u64, change: LinkChange) {
        self.wait_for(id, Pending { left: 1, answer: Answer::Done });
        let (action, at) = (Action::Link(change), self.soonest());
        if let Some(at) = at {
            self.share_order(at, &action);
        }
        self.order(action, at.map(|at| self.origin + at), at, Some(id));
    }

    /// Does what was ordered on another machine, at the same time of the run.
    pub(super) fn follow_order(&mut self, at: Span, action: Action) {
        let planned = Planned { at, action };
        if let Err((message, _)) = self.check_events(std::slice::from_ref(&planned)) {
            self.warn(message);
        } else if planned.action.is_about_programs() {
            self.plan_for_programs(at, planned.action);
        } else {
            self.order(planned.action, Some(self.origin + at), Some(at), None);
        }
    }

    fn order(
        &mut self,
        action: Action,
        at: Option<Time>,
        intended: Option<Span>,
        client: Option<u64>,
    ) {
        let id = self.next_order;
        self.next_order += 1;
        self.ordered.insert(id, Ordered { action: action.clone(), intended, client });
        self.threads.dataplane.order(Order::Change { id, at, action: Box::new(action) });
    }

    /// Events from outside, each at its time from now on. The answer follows when those that are
    /// due at once have been done.
    pub(super) fn happen(&mut self, id: u64, planned: Vec<Planned>) -> Result<(), Refusal> {
        self.check_events(&planned)?;
        if let Some(began) = self.soonest() {
            return self.happen_everywhere(id, planned, began);
        }
        let began = self.elapsed();
        let due = planned.iter().filter(|event| event.at.is_zero());
        let left = due.filter(|event| !event.action.is_about_programs()).count();
        let later = planned.iter().filter(|event| !event.at.is_zero());
        let answer = Answer::Happened {
            events: Vec::new(),
            later: later.clone().count(),
            until: began + later.map(|event| event.at).max().unwrap_or_default(),
        };
        self.wait_for(id, Pending { left, answer });
        let mut told = Vec::new();
        for Planned { at, action } in planned {
            let intended = began + at;
            match (action.is_about_programs(), at.is_zero()) {
                (true, true) => {
                    if let Action::Churn { join, .. } = &action {
                        self.supervisor.expect_joins(join);
                    }
                    told.extend(self.do_to_programs(&action, intended));
                }
                (true, false) => self.plan_for_programs(intended, action),
                (false, true) => self.order(action, None, Some(intended), Some(id)),
                (false, false) => {
                    let time = self.origin + intended;
                    self.order(action, Some(time), Some(intended), None);
                }
            }
        }
        self.add_to_answer(id, told, 0);
        Ok(())
    }

    /// On several machines, `began` is when all of them know. What is to be done to programs is
    /// told by the machine that they are on, and so counts as later here.
    fn happen_everywhere(
        &mut self,
        id: u64,
        planned: Vec<Planned>,
        began: Span,
    ) -> Result<(), Refusal> {
        let at_once = |event: &Planned| event.at.is_zero() && !event.action.is_about_programs();
        let later = planned.iter().filter(|event| !at_once(event));
        let answer = Answer::Happened {
            events: Vec::new(),
            later: later.clone().count(),
            until: began + later.map(|event| event.at).max().unwrap_or_default(),
        };
        let left = planned.iter().filter(|event| at_once(event)).count();
        self.wait_for(id, Pending { left, answer });
        for event in planned {
            let (at, client) = (began + event.at, at_once(&event).then_some(id));
            self.share_order(at, &event.action);
            if event.action.is_about_programs() {
                self.plan_for_programs(at, event.action);
            } else {
                self.order(event.action, Some(self.origin + at), Some(at), client);
            }
        }
        self.add_to_answer(id, Vec::new(), 0);
        Ok(())
    }

    /// An order has taken effect.
    pub(super) fn answer_for(&mut self, client: Option<u64>, told: Vec<Event>) {
        if let Some(id) = client {
            self.add_to_answer(id, told, 1);
        }
    }

    fn wait_for(&mut self, id: u64, pending: Pending) {
        if let Some(waiting) = self.connections.pending(id) {
            *waiting = Some(pending);
        }
    }

    fn add_to_answer(&mut self, id: u64, told: Vec<Event>, confirmed: usize) {
        let Some(waiting) = self.connections.pending(id) else { return };
        let Some(pending) = waiting else { return };
        pending.left = pending.left.saturating_sub(confirmed);
        if let Answer::Happened { events, .. } = &mut pending.answer {
            events.extend(told);
        }
        if pending.left > 0 {
            return;
        }
        let reply = match waiting.take().map(|pending| pending.answer) {
            Some(Answer::Happened { events, later, until }) => {
                Reply::Happened { events, later, until_ns: until.as_nanos() }
            }
            _ => Reply::Done,
        };
        self.connections.reply(id, &reply);
    }

    /// A client of the same version sends what fits the plan; anything else must do no harm.
    pub(super) fn check_events(&self, events: &[Planned]) -> Result<(), Refusal> {
        let mut actions = events.iter().map(|event| &event.action);
        let checked = actions.try_for_each(|action| self.plan.validate_action(action));
        checked.map_err(|error| (error.to_string(), None))
    }
}
