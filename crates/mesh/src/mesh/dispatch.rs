//! Messages and timers, by the part that handles them.

use core::net::SocketAddr;

use windtunnel_model::{Span, Time};

use super::{Mesh, MeshMessage, Wake};
use crate::clock::Wall;
use crate::wire::message::NOT_KEPT;

impl Mesh {
    /// Passes a message to its part.
    pub(super) fn dispatch(&mut self, from: SocketAddr, message: MeshMessage<'_>) {
        match message {
            MeshMessage::Swim(data) => self.on_swim(data),
            MeshMessage::Join(life) => self.ctx.on_join(from, &life),
            MeshMessage::Here(life) => self.ctx.on_here(life),
            MeshMessage::Outdated { epoch } => self.on_outdated(epoch),
            MeshMessage::Suspected { from, life, incarnation } => {
                self.on_suspected(&from, &life, incarnation);
            }
            MeshMessage::Alive { life, incarnation } => self.on_alive(life, incarnation),
            MeshMessage::Leave(life) => self.on_leave(life),
            MeshMessage::Lost { from, life } => self.on_lost(from, &life),
            MeshMessage::RosterSum { from, agents, answer } => {
                self.search.on_roster_sum(&mut self.ctx, from, agents, answer);
            }
            MeshMessage::RosterAsk { from, after } => self.ctx.on_roster_ask(from, after),
            MeshMessage::Roster { from, more, agents } => self.on_roster(from, more, &agents),
            MeshMessage::Run(from, state) => {
                self.runs.on_run_state(&mut self.ctx, &mut self.probes, from, &state);
            }
            MeshMessage::RunLeft(from, run) => self.runs.on_run_left(&mut self.ctx, from, run),
            MeshMessage::Delta(from, delta) => self.runs.on_delta(&mut self.ctx, from, &delta),
            MeshMessage::Digest(from, digest) => self.runs.on_digest(&mut self.ctx, from, &digest),
            MeshMessage::Want { from, run, have } => {
                self.runs.on_want(&mut self.ctx, from, run, have);
            }
            MeshMessage::Probe { from, incarnation, to, number, origin } => {
                self.on_probe(from, incarnation, to, number, origin);
            }
            MeshMessage::ProbeAck { from, incarnation, number, origin } => {
                self.on_probe_ack(from, incarnation, number, origin);
            }
            MeshMessage::ProbeFor { from, target, number } => {
                if self.ctx.knows(from) {
                    self.ctx.send_probe(target, number, Some(from.agent));
                }
            }
            MeshMessage::Meet { from, run, node, agents } => {
                self.runs.on_meet(&mut self.ctx, from, run, node, &agents);
            }
            MeshMessage::AckFor { from, target, number } => {
                self.probes.on_ack_for(&mut self.ctx, from, target, number);
            }
            MeshMessage::Ping { from, sent } => self.on_ping(from, sent),
            MeshMessage::Pong { from, sent, came, left, ahead, error } => {
                let error = (error != NOT_KEPT).then(|| Span::from_nanos(error));
                let wall = Wall { ahead_ns: ahead.cast_signed(), error };
                self.ctx.on_pong(from, [sent, came, left].map(Time::from_nanos), wall);
            }
        }
    }

    /// Passes a timer to its part.
    pub(super) fn wake(&mut self, wake: Wake) {
        match wake {
            Wake::Rejoin => self.search.search(&mut self.ctx),
            Wake::Pull => self.search.pull_again(&mut self.ctx),
            Wake::Notice(agent) => self.probes.notice_again(&mut self.ctx, &self.runs, agent),
            Wake::Clock(agent) => self.ctx.ping(agent),
            Wake::Flush(run) => self.runs.flush(&mut self.ctx, run),
            Wake::Later(run) => self.runs.flush_later(&mut self.ctx, run),
            Wake::State(run, member) => self.runs.state_again(&mut self.ctx, run, member),
            Wake::Digest(run, member) => self.runs.digest(&mut self.ctx, run, member),
            Wake::Want(run, member) => self.runs.want(&mut self.ctx, run, member),
        }
    }
}
