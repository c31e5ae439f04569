//! Piggybacking. A packet between machines costs its sender and its receiver far more than the
//! bytes in it, and the carrier puts datagrams that leave for one agent at the same time into one
//! packet. So a datagram for an agent takes along the messages that are soon due for it.

use windtunnel_model::{Span, Time};

use super::context::MeshContext;
use super::runs::RunParticipationTable;
use super::{AgentId, MeshTimer};

/// Messages due within this part of their period are piggybacked.
const PART: u64 = 2;

impl RunParticipationTable {
    /// A message leaves for an agent: those that are soon due for it leave as well.
    pub(super) fn piggyback(&mut self, ctx: &mut MeshContext, agent: AgentId) {
        let Some(known) = ctx.roster.get(agent) else { return };
        // Those made in a hurry are not to come at once.
        if known.hurry == 0 && ctx.is_soon(MeshTimer::Clock(agent), known.pace) {
            ctx.ping(agent);
        }
        for run in self.runs.values_mut() {
            let Some(member) = run.members.position(agent) else { continue };
            let wait = run.peer(member).delivery.digest_wait;
            if ctx.is_soon(MeshTimer::Digest(run.id, member), wait) {
                run.digest(ctx, member);
            }
        }
    }
}

impl MeshContext {
    /// Whether something that is done once in a period is due soon.
    fn is_soon(&self, wake: MeshTimer, period: Span) -> bool {
        let latest: Time = self.now + Span::from_nanos(period.as_nanos() / PART);
        self.timers.due(wake).is_some_and(|due| due <= latest)
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::super::Mesh;
    use super::*;
    use crate::{MeshConfiguration, PlanHash, RunId};

    const PING: u8 = 15;

    fn agent(number: u16) -> Mesh {
        let address = SocketAddr::from(([10, 0, 0, 1], number));
        let config = MeshConfiguration::new(AgentId(number.into()), 1, address);
        Mesh::new(config, number.into(), Time::ZERO)
    }

    /// Lets `agents` exchange messages for a while, without delay; returns the kinds of messages
    /// that the first sends at each time.
    fn talk(agents: &mut [Mesh], from: u64, until: u64) -> Vec<(Time, Vec<u8>)> {
        let mut sent = Vec::new();
        for now in (from..until).map(|millis| Time::ZERO + Span::from_millis(millis)) {
            agents.iter_mut().for_each(|agent| agent.handle_timeout(now));
            let mut kinds = Vec::new();
            while let Some((at, transmit)) =
                (0..agents.len()).find_map(|at| Some((at, agents[at].poll_transmit()?)))
            {
                if at == 0 {
                    kinds.push(transmit.payload[1]);
                }
                let own = agents[at].ctx.config.address;
                let to = agents.iter_mut().find(|agent| agent.ctx.config.address == transmit.to);
                to.expect("an agent").handle_datagram(now, own, &transmit.payload);
            }
            sent.push((now, kinds));
        }
        sent
    }

    #[test]
    fn time_stamps_go_along_with_probes_and_are_seldom_sent_alone() {
        let mut agents = [agent(1), agent(2)];
        agents[1].join(Time::ZERO, agents[0].ctx.config.address);
        talk(&mut agents, 0, 1000);
        let (run, plan) = (RunId(7), PlanHash([0; 32]));
        for agent in &mut agents {
            let now = agent.ctx.now;
            agent.join_run(now, run, plan, &[AgentId(1), AgentId(2)]).expect("a run");
        }
        // Skips the frequent exchanges at the beginning.
        talk(&mut agents, 1000, 3000);
        let sent = talk(&mut agents, 3000, 13_000);
        let with_ping: Vec<_> = sent.iter().filter(|(_, kinds)| kinds.contains(&PING)).collect();
        let alone = with_ping.iter().filter(|(_, kinds)| kinds.len() == 1).count();
        assert_eq!(alone, 0, "a probe leaves each 25 ms");
        // Each 250 ms at the latest, each 125 ms at the soonest.
        assert!((40..=81).contains(&with_ping.len()), "{}", with_ping.len());
        let gaps = with_ping.windows(2).map(|pair| pair[1].0.since(pair[0].0));
        assert!(gaps.max() <= Some(Span::from_millis(300)), "about 250 ms");
    }
}
