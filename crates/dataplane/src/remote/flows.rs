//! Flows here and on other machines that share links.

use windtunnel_engine::Engine;
use windtunnel_model::Time;
use windtunnel_model::flow::FlowChange;
use windtunnel_trace::lateness::LatenessHistogram;

use super::{RemoteMachines, on_this_clock};
use crate::clock::now;

impl RemoteMachines {
    /// What is to be announced of the flows here.
    pub fn news(&mut self, engine: &mut Engine) -> Vec<FlowChange> {
        let mut news = Vec::new();
        while let Some(one) = engine.poll_flow() {
            let key = one.key;
            if one.flow.is_some() {
                self.announced.insert(key);
                self.crossed.begin(key, now(), || engine.lanes_of(key));
            } else {
                self.announced.remove(&key);
                self.crossed.end(&key);
            }
            news.push(one);
        }
        news
    }

    /// What a member announced of its flows.
    pub fn handle_flows(
        &mut self,
        at: Time,
        member: u16,
        changes: &[FlowChange],
        engine: &mut Engine,
    ) {
        let mut began = Vec::new();
        for FlowChange { key, flow } in changes {
            match flow {
                Some(flow) if self.remote.insert((member, *key), *flow).is_none() => {
                    let both = self.crossed.since(&engine.lanes_of(*key));
                    began.extend(both.map(|both| (flow.since, both)));
                    self.traffic.announced_flows += 1;
                }
                Some(_) => {}
                None => drop(self.remote.remove(&(member, *key))),
            }
        }
        engine.handle_flows(at, u32::from(member), changes);
        self.record_starts(member, &began);
    }

    /// Flows of a member that began then, on its clock, are reckoned with from now on; and since
    /// when a flow here shares a link with each.
    fn record_starts(&mut self, member: u16, began: &[(Time, Time)]) {
        let Some(ahead) = self.ahead.get(usize::from(member)).copied().flatten() else { return };
        let present = now();
        for (since, both) in began {
            let began = on_this_clock(since.as_nanos(), ahead).max(*both);
            self.starts.record(present.since(began));
        }
    }

    /// How long after their start flows of the others were reckoned with, of those that shared a
    /// link with a flow here then: since both were there.
    pub fn into_starts(self) -> LatenessHistogram {
        self.starts
    }

    /// A member is lost.
    pub fn forget(&mut self, at: Time, member: u16, engine: &mut Engine) {
        self.remote.retain(|(known, _), _| *known != member);
        self.pairs.forget(at, member);
        engine.forget_part(at, u32::from(member));
    }
}
