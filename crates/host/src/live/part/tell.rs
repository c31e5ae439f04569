//! What the other parts are to know.

use windtunnel_control::part::{FlowChange, FlowTerms, FromPart};
use windtunnel_engine::{Audiences, FlowNews, FlowTerms as Terms, Hearing};
use windtunnel_model::plan::Action;
use windtunnel_model::{Span, Time};

use super::{Live, Side};
use crate::dataplane::now;
use crate::part::news::News;
use crate::verdict::Ending;

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

    /// Tells the others of the flows here, of which there is news since `at`.
    pub(in crate::live) fn announce(&mut self, at: Time, news: &[FlowNews]) {
        let Some(side) = &mut self.side else { return };
        let audiences = side.audiences.get_or_insert_with(|| {
            let members = side.members.len();
            Audiences::of(&self.plan, &self.routes, &side.placement, members)
        });
        let mut changes = Vec::new();
        for one in news {
            let former = side.flows.remove(&one.key());
            let since = former.map_or(at, |(_, since)| since);
            if let Some(terms) = one.flow {
                side.flows.insert(one.key(), (terms, since));
            }
            let ends = (one.source, one.destination);
            let audience = audiences.hear_of(&self.plan, &self.routes, ends);
            changes.push(change_of(one, since, audience));
        }
        self.tell_agent(&FromPart::Flows { changes });
    }

    /// Under new routes, others have to hear of the flows here.
    pub(in crate::live) fn announce_anew(&mut self) {
        let Some(side) = &mut self.side else { return };
        side.audiences = None;
        let flows = std::mem::take(&mut side.flows).into_iter();
        let flows: Vec<FlowNews> =
            flows.map(|(key, (terms, _))| FlowNews::new(key, Some(terms))).collect();
        if !flows.is_empty() {
            // For those who hear of them for the first time, they begin now.
            self.announce(now(), &flows);
        }
    }
}

fn change_of(news: &FlowNews, since: Time, hearing: Option<Hearing>) -> FlowChange {
    let terms = |flow: Terms| FlowTerms {
        rtt_ns: flow.rtt.as_nanos(),
        demand: flow.demand,
        window: flow.window,
        since_ns: since.as_nanos(),
    };
    let (source, destination) = (news.source.0, news.destination.0);
    let terms = news.flow.map(terms);
    let (audience, at_once) = hearing.map(|hearing| (hearing.members, hearing.at_once)).unzip();
    FlowChange { source, destination, number: news.number, terms, audience, at_once }
}

/// The time that an order has to reach every part before it is done.
const TOGETHER: Span = Span::from_millis(50);
