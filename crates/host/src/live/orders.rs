//! Changes and events that are ordered from outside: done now or later, and answered when done.

use windtunnel_model::Span;
use windtunnel_model::plan::{EventAction, LinkChange, ScheduledEvent as Planned};
use windtunnel_trace::event::EventLogEntry;

use super::answers::DeferredReplyBody;
use super::refusal::{RequestRefusal, check_events};
use super::state::RunLoop;
use crate::part::news::MemberAnnouncement;

impl RunLoop {
    /// Changes links. The answer follows when the packet loop has done it.
    pub(super) fn change_links(&mut self, client: u64, change: LinkChange) {
        self.answers.wait_for(client, 1, DeferredReplyBody::Done);
        let (action, at) = (EventAction::Link(change), self.soonest());
        if let Some(at) = at {
            self.share_order(at, &action);
        }
        self.change_at(action, at, Some(client));
    }

    /// Does what was ordered on another machine, at the same time of the run.
    pub(super) fn follow_order(&mut self, at: Span, action: EventAction) {
        let planned = Planned { at, action };
        if let Err(refusal) = check_events(&self.cx.plan, std::slice::from_ref(&planned)) {
            self.cx.journal.warn(refusal.message().to_owned());
        } else if planned.action.is_about_programs() {
            self.programs.add_event(at, planned.action);
        } else {
            self.change_at(planned.action, Some(at), None);
        }
    }

    /// Events from outside, each at its time from now on. The answer follows when those that are
    /// due at once have been done.
    pub(super) fn happen(
        &mut self,
        client: u64,
        planned: Vec<Planned>,
    ) -> Result<(), RequestRefusal> {
        check_events(&self.cx.plan, &planned)?;
        match self.soonest() {
            Some(began) => self.happen_everywhere(client, planned, began),
            None => self.happen_here(client, planned),
        }
        Ok(())
    }

    fn happen_here(&mut self, client: u64, planned: Vec<Planned>) {
        let began = self.elapsed();
        let changes = |event: &&Planned| !event.action.is_about_programs();
        let left = planned.iter().filter(|event| event.at.is_zero()).filter(changes).count();
        self.wait_for_events(client, left, began, planned.iter().filter(|it| !it.at.is_zero()));
        let mut events = Vec::new();
        for Planned { at, action } in planned {
            let intended = began + at;
            match (action.is_about_programs(), at.is_zero()) {
                (true, true) => {
                    self.lose_what_dies(&action);
                    events.extend(self.programs.do_now(&self.cx, &action, intended));
                }
                (true, false) => self.programs.add_event(intended, action),
                (false, true) => self.network.change(action, None, Some(intended), Some(client)),
                (false, false) => self.change_at(action, Some(intended), None),
            }
        }
        self.answer_with(client, events, 0);
    }

    /// On several machines, `began` is when all of them know. What is to be done to programs is
    /// logged by the machine that they are on, and so counts as later here.
    fn happen_everywhere(&mut self, client: u64, planned: Vec<Planned>, began: Span) {
        let at_once = |event: &Planned| event.at.is_zero() && !event.action.is_about_programs();
        let left = planned.iter().filter(|event| at_once(event)).count();
        self.wait_for_events(client, left, began, planned.iter().filter(|event| !at_once(event)));
        for event in planned {
            let (at, waiting) = (began + event.at, at_once(&event).then_some(client));
            self.share_order(at, &event.action);
            if event.action.is_about_programs() {
                self.programs.add_event(at, event.action);
            } else {
                self.change_at(event.action, Some(at), waiting);
            }
        }
        self.answer_with(client, Vec::new(), 0);
    }

    /// Something about programs that all members do at the same time, as soon as they can.
    pub(super) fn order_everywhere(&mut self, action: EventAction) {
        let at = self.soonest().unwrap_or_else(|| self.elapsed());
        self.share_order(at, &action);
        self.programs.add_event(at, action);
    }

    fn wait_for_events<'a>(
        &mut self,
        client: u64,
        left: usize,
        began: Span,
        later: impl Iterator<Item = &'a Planned> + Clone,
    ) {
        let until = began + later.clone().map(|event| event.at).max().unwrap_or_default();
        let answer =
            DeferredReplyBody::Happened { events: Vec::new(), later: later.count(), until };
        self.answers.wait_for(client, left, answer);
    }

    /// So many more changes that a client waits for are `confirmed`, which were these events.
    pub(super) fn answer_with(
        &mut self,
        client: u64,
        events: Vec<EventLogEntry>,
        confirmed: usize,
    ) {
        if let Some(reply) = self.answers.add(client, events, confirmed) {
            self.connections.reply(client, &reply);
        }
    }

    /// Changes the network at a time of the run; `None`: now.
    fn change_at(&mut self, action: EventAction, at: Option<Span>, client: Option<u64>) {
        let origin = self.cx.journal.origin();
        self.network.change(action, at.map(|at| origin + at), at, client);
    }

    /// When what is ordered now can be done by all members; `None` on one machine: at once.
    fn soonest(&self) -> Option<Span> {
        self.membership.as_ref().map(|_| self.elapsed() + TOGETHER)
    }

    /// Lets the other members do what was ordered here, at the same time.
    fn share_order(&self, at: Span, action: &EventAction) {
        if let Some(membership) = &self.membership {
            membership.send_to_members(&MemberAnnouncement::Order {
                at,
                action: Box::new(action.clone()),
            });
        }
    }
}

/// The time that an order has to reach every member before it is done.
const TOGETHER: Span = Span::from_millis(50);
