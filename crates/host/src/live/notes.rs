//! What the packet loop and the output thread report.

use std::sync::Arc;

use windtunnel_control::part::FromPart;
use windtunnel_model::plan::EventAction;
use windtunnel_verdict::evidence::RunEndReason;

use super::network::AppliedNetworkChange;
use super::reactor::RunReactor;
use crate::output::ReadinessLineMatch;
use windtunnel_dataplane::PacketLoopEvent;

impl RunReactor {
    /// Handles everything that the threads have reported.
    pub(super) fn handle_threads(&mut self) {
        let _ = self.inputs.wake.clear();
        while let Ok(ReadinessLineMatch(key)) = self.inputs.matches.try_recv() {
            self.programs.checker(&self.cx).ready(key);
        }
        while let Ok(note) = self.inputs.notes.try_recv() {
            self.handle_note(note);
        }
        self.registrar().handle_findings();
        self.captures.handle_outcomes(&mut self.connections, &self.cx.journal);
    }

    fn handle_note(&mut self, note: PacketLoopEvent) {
        match note {
            PacketLoopEvent::Overloaded { at, behind } => {
                let ending = self.programs.overloaded(&self.cx, at, behind);
                self.services.freeze(self.programs.is_frozen(), self.cx.journal.now());
                ending.into_iter().for_each(|ending| self.end.ask(ending));
            }
            PacketLoopEvent::CaughtUp { at, lasted } => {
                self.programs.caught_up(&self.cx, at, lasted);
                self.services.freeze(self.programs.is_frozen(), self.cx.journal.now());
            }
            PacketLoopEvent::Failed(message) => self.end.ask(RunEndReason::Fatal(message)),
            PacketLoopEvent::Applied { cause, intended, at } => {
                let applied = self.network.applied(&self.cx, cause, intended, at);
                let Some(AppliedNetworkChange { action, client, events, seen }) = applied else {
                    return;
                };
                if let EventAction::Service(changes) = &action {
                    self.registrar().changed(changes, at, seen.map(|seen| seen.at));
                }
                if let Some(client) = client {
                    self.answers.answer_with(client, events, 1, &mut self.connections);
                }
            }
            PacketLoopEvent::Routes { routes, at, by_itself } => {
                let plan = Arc::clone(self.services.plan());
                self.network.follow_routes(&self.cx, &plan, routes, at, by_itself);
                if let Some(membership) = &mut self.membership {
                    let (routes, now) = (self.network.routes(), self.cx.journal.now());
                    membership.announce_flows_again(&self.cx.plan, routes, now);
                }
            }
            PacketLoopEvent::Redirected { at, row, router, replica } => {
                self.services.redirections.redirected(&self.cx, at, row, router, replica);
            }
            PacketLoopEvent::FailOver { at, news } => {
                self.services.redirections.fail_over(&self.cx, at, &news);
            }
            PacketLoopEvent::Unreached { members } => {
                self.send_to_agent(&FromPart::Unreached { members });
            }
            PacketLoopEvent::Reached => {
                self.membership.iter_mut().for_each(|membership| membership.reached = true);
            }
            PacketLoopEvent::Silence(silence) => {
                self.membership.iter().for_each(|it| it.log_silence(silence, &self.cx.journal));
            }
            PacketLoopEvent::Refused { datagrams } => {
                self.send_to_agent(&FromPart::Refused { datagrams });
            }
            PacketLoopEvent::Closed { sent } => {
                self.membership.iter_mut().for_each(|it| it.sends_no_more(sent.clone()));
            }
            PacketLoopEvent::Flows { changes } => {
                let routes = self.network.routes();
                let members = self.membership.iter_mut();
                members.for_each(|it| it.announce_flows(&self.cx.plan, routes, &changes));
            }
        }
    }

    pub(super) fn send_to_agent(&self, message: &FromPart) {
        if let Some(membership) = &self.membership {
            membership.send_to_agent(message);
        }
    }
}
