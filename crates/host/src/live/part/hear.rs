//! What the agent and the other parts have to say.

use std::io;

use windtunnel_control::frame;
use windtunnel_control::part::{StopWhy, ToPart};
use windtunnel_model::Time;
use windtunnel_model::placement::OnHostLoss;
use windtunnel_trace::event::What;

use super::{Live, Stage};
use crate::dataplane::Order;
use crate::ending::Ending;
use crate::part::news::News;

impl Live {
    /// Handles everything that the agent has said.
    pub(in crate::live) fn hear_agent(&mut self) {
        let Some(side) = &mut self.side else { return };
        match side.link.receive() {
            Ok(messages) => messages.into_iter().for_each(|message| self.hear_message(message)),
            Err(error) => self.agent_gone(&error),
        }
    }

    /// Nothing of a run outlives its agent: no patience with programs.
    fn agent_gone(&mut self, error: &io::Error) {
        let why = format!("this machine's agent is lost: {error}");
        self.end.hurry();
        if let Some(side) = &mut self.side {
            side.agent_gone = true;
        }
        self.end.ask(Ending::Fatal(why));
    }

    fn hear_message(&mut self, message: ToPart) {
        let members = self.side.as_ref().map_or(0, |side| side.members.len());
        if let Some(member) = message.member().filter(|it| usize::from(*it) >= members) {
            return self.warn(format!("news of member {member}, of whom there are {members}"));
        }
        match message {
            ToPart::Measure => self.set_stage(Stage::Measuring),
            ToPart::Begin { origin_ns } => {
                self.set_stage(Stage::Begun(Time::from_nanos(origin_ns)));
            }
            ToPart::Flows { member, changes } => {
                self.threads.dataplane.order(Order::Flows { member, changes });
            }
            ToPart::Clocks { ahead_ns } => self.threads.dataplane.order(Order::Clocks { ahead_ns }),
            ToPart::News { member, news } => match frame::decode(news.as_bytes()) {
                Ok(news) => self.hear_news(member, news),
                Err(error) => {
                    self.warn(format!("news of another machine cannot be read: {error}"));
                }
            },
            ToPart::Lost { member, why, apart } => self.lose(member, why, apart),
            ToPart::Left { member } => self.leave_with(member),
            ToPart::Stop(why) => {
                // Another part may have told of the same order before: only a second one hurries.
                if self
                    .side
                    .as_mut()
                    .is_some_and(|side| std::mem::replace(&mut side.ordered_to_stop, true))
                {
                    self.end.hurry();
                }
                self.end.ask(match why {
                    StopWhy::Asked => Ending::Stopped,
                    StopWhy::Signal(signal) => Ending::Interrupted(signal),
                    StopWhy::Failed(reason) => Ending::Fatal(reason),
                });
            }
            ToPart::Setup(_) | ToPart::Peers { .. } => {
                self.warn("the agent has said something twice".to_owned());
            }
        }
    }

    fn set_stage(&mut self, stage: Stage) {
        if let Some(side) = &mut self.side {
            side.stage = stage;
        }
    }

    fn hear_news(&mut self, member: u16, news: News) {
        let Some(side) = &mut self.side else { return };
        if side.lost.contains_key(&member) {
            // It was reckoned without, and its end is not everybody's.
            return;
        }
        match news {
            News::Program { key, state } => {
                if side.placement.get(key.node) == Some(&member) {
                    self.supervisor.on_news(key, *state);
                }
            }
            News::Idle { idle } => {
                if let Some(known) = side.idle.get_mut(usize::from(member)) {
                    *known = idle;
                }
            }
            News::Order { at, action } => self.follow_order(at, *action),
            News::End { ending } => {
                side.ended.insert(member);
                self.end.ask(ending);
            }
            News::Sent { datagrams } => {
                let here = datagrams.iter().find(|(to, _)| *to == side.member);
                side.sent_here.extend(here.map(|(_, sent)| (member, *sent)));
            }
        }
    }

    fn lose(&mut self, member: u16, why: String, apart: bool) {
        let elapsed = self.elapsed();
        let Some(side) = &mut self.side else { return };
        side.gone.insert(member);
        if side.is_through_with(member) || member == side.member {
            return;
        }
        side.apart |= apart;
        side.lost.insert(member, elapsed);
        let host = side.host(member);
        let places = side.placement.iter().enumerate().filter(|(_, place)| **place == member);
        let nodes: Vec<usize> = places.map(|(node, _)| node).collect();
        self.threads.dataplane.order(Order::Forget { member });
        self.supervisor.on_lost(&nodes, &host);
        let names = nodes.iter().map(|node| self.plan.nodes[*node].name.clone()).collect();
        self.tell(None, What::HostLost { host: host.clone(), nodes: names, why });
        if self.plan.on_host_loss == OnHostLoss::Fail {
            self.end.ask(Ending::host_lost(&host));
        }
    }

    /// Parts end when the run does, and tell the others before; but who takes this machine for lost
    /// tells it nothing.
    fn leave_with(&mut self, member: u16) {
        let Some(side) = &mut self.side else { return };
        side.gone.insert(member);
        if side.is_through_with(member) {
            return;
        }
        let host = side.host(member);
        let why = format!("host {host} has ended the run without this machine");
        self.end.ask(Ending::Fatal(why));
    }

    pub(in crate::live) fn reached(&mut self) {
        if let Some(side) = &mut self.side {
            side.reached = true;
        }
    }
}
