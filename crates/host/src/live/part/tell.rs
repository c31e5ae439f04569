//! What the other parts are to know.

use windtunnel_control::part::{FlowAnnouncement, FromPart};
use windtunnel_engine::Audiences;
use windtunnel_model::Span;
use windtunnel_model::flow::{Flow, FlowChange};
use windtunnel_model::plan::Action;

use super::{Live, Side};
use crate::clock::now;
use crate::ending::Ending;
use crate::part::news::News;

impl Live {
    /// Tells the other parts what is not as it was told.
    pub(in crate::live) fn tell_others(&mut self) {
        let Some(side) = &mut self.side else { return };
        let mut all = Vec::new();
        for (key, program) in self.supervisor.programs() {
            if side.placement.get(key.node) == Some(&side.member)
                && side.told.get(&key) != Some(program)
            {
                side.told.insert(key, program.clone());
                all.push(News::Program { key, state: Box::new(program.clone()) });
            }
        }
        let idle = self.supervisor.idle();
        if std::mem::replace(&mut side.told_idle, idle) != idle {
            all.push(News::Idle { idle });
        }
        all.iter().for_each(|news| side.news(news));
    }

    /// Whether nothing is left to do anywhere.
    pub(in crate::live) fn all_finished(&self) -> bool {
        let others = self.side.as_ref().is_none_or(Side::others_are_idle);
        others && self.supervisor.finished()
    }

    /// Tells the others that the run is over.
    pub(crate) fn tell_end(&self, ending: &Ending) {
        if let Some(side) = &self.side {
            side.news(&News::End { ending: ending.clone() });
        }
    }

    /// When what is ordered now can be done by all parts; `None` on one machine: at once.
    pub(in crate::live) fn soonest(&self) -> Option<Span> {
        self.side.as_ref().map(|_| self.elapsed() + TOGETHER)
    }

    /// Lets the other parts do what was ordered here, at the same time.
    pub(in crate::live) fn share_order(&self, at: Span, action: &Action) {
        if let Some(side) = &self.side {
            side.news(&News::Order { at, action: Box::new(action.clone()) });
        }
    }

    /// Announces flows here to the other parts. One that is announced already keeps its beginning.
    pub(in crate::live) fn announce(&mut self, changes: &[FlowChange]) {
        let Some(side) = &mut self.side else { return };
        let audiences = side.audiences.get_or_insert_with(|| {
            let members = side.members.len();
            Audiences::of(&self.plan, &self.routes, &side.placement, members)
        });
        let mut announcements = Vec::new();
        for FlowChange { key, flow } in changes {
            let former = side.flows.remove(key);
            let since = |flow: &Flow| former.map_or(flow.since, |former| former.since);
            let flow = flow.map(|flow| Flow { since: since(&flow), ..flow });
            side.flows.extend(flow.map(|flow| (*key, flow)));
            let hearing =
                audiences.hear_of(&self.plan, &self.routes, (key.source, key.destination));
            let (audience, at_once) =
                hearing.map(|hearing| (hearing.members, hearing.at_once)).unzip();
            let change = FlowChange { key: *key, flow };
            announcements.push(FlowAnnouncement { change, audience, at_once });
        }
        self.tell_agent(&FromPart::Flows { changes: announcements });
    }

    /// Under new routes, others have to hear of the flows here.
    pub(in crate::live) fn announce_anew(&mut self) {
        let Some(side) = &mut self.side else { return };
        side.audiences = None;
        let present = now();
        // For those who hear of them for the first time, they begin now.
        let begun = |(key, flow)| FlowChange { key, flow: Some(Flow { since: present, ..flow }) };
        let flows: Vec<FlowChange> =
            std::mem::take(&mut side.flows).into_iter().map(begun).collect();
        if !flows.is_empty() {
            self.announce(&flows);
        }
    }
}

/// The time that an order has to reach every part before it is done.
const TOGETHER: Span = Span::from_millis(50);
