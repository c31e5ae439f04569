//! What the packet loop and the output thread report.

use std::sync::Arc;

use windtunnel_control::part::FromPart;
use windtunnel_model::Time;
use windtunnel_model::plan::EventAction;
use windtunnel_trace::event::EventLogEntryKind;

use super::membership::MembershipStage;
use super::network::AppliedNetworkChange;
use super::state::RunLoop;
use crate::ending::RunEndReason;
use crate::output::Matched;
use windtunnel_dataplane::{PacketLoopEvent, PeerSilencePeriod};

impl RunLoop {
    /// Handles everything that the threads have reported.
    pub(super) fn handle_threads(&mut self) {
        let _ = self.inputs.wake.clear();
        while let Ok(Matched(key)) = self.inputs.matches.try_recv() {
            self.programs.ready(&self.cx, key);
        }
        while let Ok(note) = self.inputs.notes.try_recv() {
            self.handle_note(note);
        }
        self.handle_findings();
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
                    self.services_changed(changes, at, seen.map(|seen| seen.at));
                }
                if let Some(client) = client {
                    self.answer_with(client, events, 1);
                }
            }
            PacketLoopEvent::Routes { routes, at, by_itself } => {
                let plan = Arc::clone(self.services.plan());
                self.network.follow_routes(&self.cx, &plan, routes, at, by_itself);
                self.announce_flows_again();
            }
            PacketLoopEvent::Redirected { at, row, router, replica } => {
                self.log_redirected(at, row, router, replica);
            }
            PacketLoopEvent::FailOver { at, news } => self.log_fail_over(at, &news),
            PacketLoopEvent::Unreached { members } => {
                self.send_to_agent(&FromPart::Unreached { members });
            }
            PacketLoopEvent::Reached => {
                self.membership.iter_mut().for_each(|membership| membership.reached = true);
            }
            PacketLoopEvent::Silence(silence) => self.log_silence(silence),
            PacketLoopEvent::Refused { datagrams } => {
                self.send_to_agent(&FromPart::Refused { datagrams });
            }
            PacketLoopEvent::Closed { sent } => {
                self.membership.iter_mut().for_each(|it| it.sends_no_more(sent.clone()));
            }
            PacketLoopEvent::Flows { changes } => {
                let Some(membership) = &mut self.membership else { return };
                let (plan, routes) = (&self.cx.plan, self.network.routes());
                let members = &membership.members;
                let changes = membership.flows.announce(plan, routes, members, &changes);
                membership.send_to_agent(&FromPart::Flows { changes });
            }
        }
    }

    /// Under new routes, other members are notified of the flows here.
    fn announce_flows_again(&mut self) {
        let Some(membership) = &mut self.membership else { return };
        let (plan, routes, now) = (&self.cx.plan, self.network.routes(), self.cx.journal.now());
        let changes = membership.flows.announce_again(plan, routes, &membership.members, now);
        if !changes.is_empty() {
            membership.send_to_agent(&FromPart::Flows { changes });
        }
    }

    /// A machine has become silent, or answers again.
    fn log_silence(&self, silence: PeerSilencePeriod) {
        let Some(membership) = &self.membership else { return };
        let PeerSilencePeriod { member, since, until } = silence;
        let (host, peer) = (membership.members.own_name(), membership.members.name(member));
        let MembershipStage::Begun(origin) = membership.stage else { return };
        let after = |time: Time| time.since(origin).as_nanos();
        let what = match until {
            None => EventLogEntryKind::PeerSilent { host, peer, since_ns: after(since) },
            Some(until) => EventLogEntryKind::PeerAnswers {
                host,
                peer,
                lasted_ns: until.since(since).as_nanos(),
            },
        };
        self.cx.journal.log(None, what);
    }

    pub(super) fn send_to_agent(&self, message: &FromPart) {
        if let Some(membership) = &self.membership {
            membership.send_to_agent(message);
        }
    }
}
