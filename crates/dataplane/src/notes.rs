//! What the packet loop reports to the main loop and to the recorder.

use std::sync::Arc;

use windtunnel_engine::NetworkEventKind;
use windtunnel_model::Time;
use windtunnel_model::flow::FlowChange;

use super::message::PacketLoopEvent;
use super::overload::OverloadTransition;
use super::{PacketLoop, PacketLoopIteration, kernel_drops};

impl PacketLoop {
    /// Notes falling behind and catching up.
    pub(super) fn watch(&mut self, turn: &PacketLoopIteration) {
        let at = turn.began;
        match self.overload.turn(at, turn.behind) {
            Some(OverloadTransition::Began(behind)) => {
                self.note(PacketLoopEvent::Overloaded { at, behind });
            }
            Some(OverloadTransition::Ended(lasted)) => {
                self.note(PacketLoopEvent::CaughtUp { at, lasted });
            }
            None => {}
        }
    }

    /// Notes what the other machines are to know at `at`.
    pub(super) fn announce(&mut self, at: Time) {
        let Some(remote) = &mut self.remote else { return };
        let (reached, news) = (remote.newly_reached(), remote.news(&mut self.engine));
        let (silences, unreached) = (remote.silences(at), remote.unreached(at));
        let refused = remote.newly_refused(at);
        if let Some(members) = unreached {
            self.note(PacketLoopEvent::Unreached { members });
        }
        silences.into_iter().for_each(|silence| self.note(PacketLoopEvent::Silence(silence)));
        if let Some(datagrams) = refused {
            self.note(PacketLoopEvent::Refused { datagrams });
        }
        if reached {
            self.note(PacketLoopEvent::Reached);
        }
        self.announce_flows(news);
    }

    pub(super) fn announce_flows(&self, changes: Vec<FlowChange>) {
        if !changes.is_empty() {
            self.note(PacketLoopEvent::Flows { changes });
        }
    }

    pub(super) fn sample(&mut self) {
        // Notes already report the other events; draining keeps the engine's ring free.
        while let Some(event) = self.engine.poll_event() {
            let by_itself = match event.kind {
                NetworkEventKind::Rerouted { by_itself } => by_itself,
                NetworkEventKind::RoutesFixed => false,
                NetworkEventKind::Redirected { row, router, replica } => {
                    let row = self.engine.services().rows().nth(row.into());
                    let at = event.at;
                    if let Some(row) = row {
                        self.note(PacketLoopEvent::Redirected { at, row, router, replica });
                    }
                    continue;
                }
                NetworkEventKind::FailOver(news) => {
                    self.note(PacketLoopEvent::FailOver { at: event.at, news });
                    continue;
                }
                _ => continue,
            };
            let routes = Arc::clone(self.engine.routes());
            self.note(PacketLoopEvent::Routes { routes, at: event.at, by_itself });
        }
        if let Some((at, rows)) =
            self.sampler
                .sample(self.arrivals.last(), &mut self.engine, || kernel_drops(&self.socket))
        {
            self.setup.samples.sample(at, rows);
        }
    }

    pub(super) fn note(&self, note: PacketLoopEvent) {
        let _ = self.notes.send(note);
        let _ = self.setup.notify.raise();
    }
}
