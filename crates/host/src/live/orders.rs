//! Changes and events that are ordered from outside: done now or later, and answered when done.

use windtunnel_control::{EventInjectionResult, LaneChoice};
use windtunnel_model::plan::{EventAction, LinkChange, ScheduledEvent as Planned};
use windtunnel_model::{LinkPatch, Span};

use super::answers::DeferredReplies;
use super::connections::ControlConnectionTable;
use super::context::RunContext;
use super::membership::AgentMembership;
use super::network::NetworkController;
use super::outcome::AnswerPromise;
use super::programs::ProgramExecution;
use super::refusal::{RequestRefusal, check_events, find_lanes};
use super::services::{ServiceMonitor, ServiceRegistrar};

/// Has the packet loop, programs and the other members do what is ordered; clients wait for that.
pub(super) struct OrderExecutor<'a> {
    pub(super) cx: &'a RunContext,
    pub(super) programs: &'a mut ProgramExecution,
    pub(super) network: &'a mut NetworkController,
    pub(super) services: &'a mut ServiceMonitor,
    pub(super) membership: Option<&'a AgentMembership>,
    pub(super) answers: &'a mut DeferredReplies,
    pub(super) connections: &'a mut ControlConnectionTable,
}

impl OrderExecutor<'_> {
    /// Gives directions of a link other properties.
    pub(super) fn set(
        &mut self,
        client: u64,
        lanes: &LaneChoice,
        patch: &LinkPatch,
    ) -> Result<AnswerPromise<()>, RequestRefusal> {
        let lanes = find_lanes(&self.cx.plan, lanes)?;
        let patches = lanes.into_iter().map(|lane| (lane, patch.clone())).collect();
        let change = LinkChange { patches, state: Vec::new() };
        let action = EventAction::Link(change.clone());
        self.cx.plan.validate_action(&action).map_err(|error| error.to_string())?;
        Ok(self.change_links(client, change))
    }

    /// Takes directions of a link up or down.
    pub(super) fn set_state(
        &mut self,
        client: u64,
        lanes: &LaneChoice,
        up: bool,
    ) -> Result<AnswerPromise<()>, RequestRefusal> {
        let lanes = find_lanes(&self.cx.plan, lanes)?;
        let state = lanes.into_iter().map(|lane| (lane, up)).collect();
        Ok(self.change_links(client, LinkChange { patches: Vec::new(), state }))
    }

    /// Changes links. The answer follows when the packet loop has done it.
    fn change_links(&mut self, client: u64, change: LinkChange) -> AnswerPromise<()> {
        let promise = self.answers.wait_for(client, 1, ());
        let (action, at) = (EventAction::Link(change), self.soonest());
        if let Some(at) = at {
            self.share(at, &action);
        }
        self.change_at(action, at, Some(client));
        promise
    }

    /// Does what was ordered on another machine, at the same time of the run.
    pub(super) fn follow(&mut self, at: Span, action: EventAction) {
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
    ) -> Result<AnswerPromise<EventInjectionResult>, RequestRefusal> {
        check_events(&self.cx.plan, &planned)?;
        Ok(match self.soonest() {
            Some(began) => self.happen_everywhere(client, planned, began),
            None => self.happen_here(client, planned),
        })
    }

    fn happen_here(
        &mut self,
        client: u64,
        planned: Vec<Planned>,
    ) -> AnswerPromise<EventInjectionResult> {
        let began = self.cx.journal.elapsed();
        let changes = |event: &&Planned| !event.action.is_about_programs();
        let left = planned.iter().filter(|event| event.at.is_zero()).filter(changes).count();
        let later = planned.iter().filter(|it| !it.at.is_zero());
        let promise = self.answers.wait_for_events(client, left, began, later);
        let mut events = Vec::new();
        for Planned { at, action } in planned {
            let intended = began + at;
            match (action.is_about_programs(), at.is_zero()) {
                (true, true) => {
                    self.registrar().lose_what_dies(&action);
                    events.extend(self.programs.do_now(self.cx, &action, intended));
                }
                (true, false) => self.programs.add_event(intended, action),
                (false, true) => self.network.change(action, None, Some(intended), Some(client)),
                (false, false) => self.change_at(action, Some(intended), None),
            }
        }
        self.answers.answer_with(client, events, 0, self.connections);
        promise
    }

    /// On several machines, `began` is when all of them know. What is to be done to programs is
    /// logged by the machine that they are on, and so counts as later here.
    fn happen_everywhere(
        &mut self,
        client: u64,
        planned: Vec<Planned>,
        began: Span,
    ) -> AnswerPromise<EventInjectionResult> {
        let at_once = |event: &Planned| event.at.is_zero() && !event.action.is_about_programs();
        let left = planned.iter().filter(|event| at_once(event)).count();
        let later = planned.iter().filter(|event| !at_once(event));
        let promise = self.answers.wait_for_events(client, left, began, later);
        for event in planned {
            let (at, waiting) = (began + event.at, at_once(&event).then_some(client));
            self.share(at, &event.action);
            if event.action.is_about_programs() {
                self.programs.add_event(at, event.action);
            } else {
                self.change_at(event.action, Some(at), waiting);
            }
        }
        self.answers.answer_with(client, Vec::new(), 0, self.connections);
        promise
    }

    /// Something about programs that all members do at the same time, as soon as they can.
    pub(super) fn order_everywhere(&mut self, action: EventAction) {
        let at = self.soonest().unwrap_or_else(|| self.cx.journal.elapsed());
        self.share(at, &action);
        self.programs.add_event(at, action);
    }

    /// Changes the network at a time of the run; `None`: now.
    fn change_at(&mut self, action: EventAction, at: Option<Span>, client: Option<u64>) {
        let origin = self.cx.journal.origin();
        self.network.change(action, at.map(|at| origin + at), at, client);
    }

    /// When what is ordered now can be done by all members; `None` on one machine: at once.
    fn soonest(&self) -> Option<Span> {
        self.membership.map(|_| self.cx.journal.elapsed() + TOGETHER)
    }

    /// Lets the other members do what was ordered here, at the same time.
    fn share(&self, at: Span, action: &EventAction) {
        if let Some(membership) = self.membership {
            membership.share_order(at, action);
        }
    }

    /// Replicas are lost before their programs are killed.
    fn registrar(&mut self) -> ServiceRegistrar<'_> {
        ServiceRegistrar {
            cx: self.cx,
            monitor: self.services,
            network: self.network,
            membership: self.membership,
            launcher: &self.programs.launcher,
        }
    }
}

/// The time that an order has to reach every member before it is done.
const TOGETHER: Span = Span::from_millis(50);
