//! Messages and timers, by the part that handles them.

use core::net::SocketAddr;

use windtunnel_model::{Span, Time};

use super::{Mesh, MeshMessage, MeshTimer};
use crate::clock::WallClockReading;
use crate::wire::message::NOT_KEPT;

impl Mesh {
    /// Passes a message to its part.
    pub(super) fn dispatch(&mut self, from: SocketAddr, message: MeshMessage<'_>) {
        let Mesh { ctx, search, membership, runs, .. } = self;
        match message {
            MeshMessage::Swim(data) => membership.on_swim(ctx, runs, data),
            MeshMessage::Join(life) => ctx.on_join(from, &life),
            MeshMessage::Here(life) => ctx.on_here(life),
            MeshMessage::Outdated { epoch } => search.on_outdated(ctx, membership, epoch),
            MeshMessage::Suspected { from, life, incarnation } => {
                membership.on_suspected(ctx, runs, &from, &life, incarnation);
            }
            MeshMessage::Alive { life, incarnation } => ctx.learn_alive(life, incarnation),
            MeshMessage::Leave(life) => ctx.on_leave(life),
            MeshMessage::Lost { from, life } => membership.on_lost(ctx, runs, from, &life),
            MeshMessage::RosterSum { from, agents, answer } => {
                search.on_roster_sum(ctx, from, agents, answer);
            }
            MeshMessage::RosterAsk { from, after } => ctx.on_roster_ask(from, after),
            MeshMessage::Roster { from, more, agents } => {
                search.on_roster(ctx, membership, runs, from, more, &agents);
            }
            MeshMessage::Run(from, state) => {
                runs.on_run_state(ctx, &mut membership.detector, from, &state);
            }
            MeshMessage::RunLeft(from, run) => runs.on_run_left(ctx, from, run),
            MeshMessage::Delta(from, delta) => runs.on_delta(ctx, from, &delta),
            MeshMessage::Digest(from, digest) => runs.on_digest(ctx, from, &digest),
            MeshMessage::Want { from, run, have } => runs.on_want(ctx, from, run, have),
            MeshMessage::Probe { to, .. } if to != ctx.config.agent => {}
            MeshMessage::Probe { from, incarnation, number, origin, .. } => {
                membership.on_probe(ctx, runs, from, incarnation, number, origin);
            }
            MeshMessage::ProbeAck { from, incarnation, number, origin } => {
                membership.on_probe_ack(ctx, runs, from, incarnation, number, origin);
            }
            MeshMessage::ProbeFor { from, target, number } => {
                if ctx.knows(from) {
                    ctx.send_probe(target, number, Some(from.agent));
                }
            }
            MeshMessage::Meet { from, run, node, agents } => {
                runs.on_meet(ctx, from, run, node, &agents);
            }
            MeshMessage::AckFor { from, target, number } => {
                membership.detector.on_ack_for(ctx, from, target, number);
            }
            MeshMessage::Ping { from, sent } => self.on_ping(from, sent),
            MeshMessage::Pong { from, sent, came, left, ahead, error } => {
                let error = (error != NOT_KEPT).then(|| Span::from_nanos(error));
                let wall = WallClockReading { ahead_ns: ahead.cast_signed(), error };
                ctx.on_pong(from, [sent, came, left].map(Time::from_nanos), wall);
            }
        }
    }

    /// Passes a timer to its part.
    pub(super) fn wake(&mut self, wake: MeshTimer) {
        let Mesh { ctx, search, membership, runs, .. } = self;
        match wake {
            MeshTimer::Rejoin => search.search(ctx),
            MeshTimer::Pull => search.pull_again(ctx),
            MeshTimer::Notice(agent) => membership.suspicions.notice_again(ctx, runs, agent),
            MeshTimer::Clock(agent) => ctx.ping(agent),
            MeshTimer::Flush(run) => runs.flush(ctx, run),
            MeshTimer::Later(run) => runs.flush_later(ctx, run),
            MeshTimer::State(run, member) => {
                if let Ok(run) = runs.find_mut(run) {
                    run.state_again(ctx, member);
                }
            }
            MeshTimer::Digest(run, member) => {
                if let Ok(run) = runs.find_mut(run) {
                    run.digest(ctx, member);
                }
            }
            MeshTimer::Want(run, member) => {
                if let Ok(run) = runs.find_mut(run) {
                    run.want(ctx, member);
                }
            }
        }
    }
}
