//! What has been announced to the other members of a run, so that only changes are.

use std::collections::BTreeMap;

use windtunnel_control::part::FlowAnnouncement;
use windtunnel_engine::FlowAudienceTable;
use windtunnel_model::flow::{ActiveFlow, FlowChange, FlowKey};
use windtunnel_model::{Plan, Time};
use windtunnel_routing::Routes;
use windtunnel_verdict::evidence::{ProgramKey, SupervisedProgram};

use super::members::RunMemberTable;
use crate::part::news::MemberAnnouncement;
use crate::supervisor::Supervisor;

/// What the others know of the programs here.
#[derive(Debug, Default)]
pub(in crate::live) struct ProgramAnnouncements {
    programs: BTreeMap<ProgramKey, SupervisedProgram>,
    idle: bool,
}

impl ProgramAnnouncements {
    /// What is not as it was announced, which it is from now on.
    pub(in crate::live) fn news(
        &mut self,
        supervisor: &Supervisor,
        members: &RunMemberTable,
    ) -> Vec<MemberAnnouncement> {
        let mut all = Vec::new();
        for (key, program) in supervisor.programs() {
            if members.is_here(key.node) && self.programs.get(&key) != Some(program) {
                self.programs.insert(key, program.clone());
                all.push(MemberAnnouncement::Program { key, state: Box::new(program.clone()) });
            }
        }
        let idle = supervisor.idle();
        if std::mem::replace(&mut self.idle, idle) != idle {
            all.push(MemberAnnouncement::Idle { idle });
        }
        all
    }
}

/// What the others know of the flows here.
#[derive(Debug, Default)]
pub(in crate::live) struct FlowAnnouncements {
    /// Which members are notified of flows; made when it is first needed, and anew for new routes.
    audiences: Option<FlowAudienceTable>,
    /// Flows that others know of.
    flows: BTreeMap<FlowKey, ActiveFlow>,
}

impl FlowAnnouncements {
    /// The flows here that are not as they were, each for the members that can share a link with
    /// it. One that is announced already keeps its beginning.
    pub(in crate::live) fn announce(
        &mut self,
        plan: &Plan,
        routes: &Routes,
        members: &RunMemberTable,
        changes: &[FlowChange],
    ) -> Vec<FlowAnnouncement> {
        let audiences = self.audiences.get_or_insert_with(|| {
            FlowAudienceTable::of(plan, routes, members.placement(), members.count())
        });
        let mut announcements = Vec::new();
        for FlowChange { key, flow } in changes {
            let former = self.flows.remove(key);
            let since = |flow: &ActiveFlow| former.map_or(flow.since, |former| former.since);
            let flow = flow.map(|flow| ActiveFlow { since: since(&flow), ..flow });
            self.flows.extend(flow.map(|flow| (*key, flow)));
            let notified = audiences.audience_of(plan, routes, *key);
            let (audience, at_once) =
                notified.map(|notified| (notified.members, notified.at_once)).unzip();
            let change = FlowChange { key: *key, flow };
            announcements.push(FlowAnnouncement { change, audience, at_once });
        }
        announcements
    }

    /// All flows once more, under new routes: for members that are notified of them for the first
    /// time, they begin `now`.
    pub(in crate::live) fn announce_again(
        &mut self,
        plan: &Plan,
        routes: &Routes,
        members: &RunMemberTable,
        now: Time,
    ) -> Vec<FlowAnnouncement> {
        self.audiences = None;
        let begun = |(key, flow)| FlowChange { key, flow: Some(ActiveFlow { since: now, ..flow }) };
        let flows: Vec<FlowChange> =
            std::mem::take(&mut self.flows).into_iter().map(begun).collect();
        if flows.is_empty() {
            return Vec::new();
        }
        self.announce(plan, routes, members, &flows)
    }
}

#[cfg(test)]
mod tests {
    use windtunnel_model::flow::FlowTerms;
    use windtunnel_model::{NodeId, Rate, Span};

    use super::*;
    use crate::live::testing::plan;

    const PAIRS: &str = "
model: paths
nodes: {a: {run: x}, b: {run: x, forward: true}, c: {run: x}}
links: [{between: [a, b]}, {between: [b, c]}]
";

    fn members() -> RunMemberTable {
        RunMemberTable::new(0, vec!["one".into(), "two".into()], vec![0, 1, 1])
    }

    /// A flow from node 0 to node 2 since so many nanoseconds, with a demand in bit/s; without one
    /// it has ended.
    fn change(number: u32, since: u64, demand: Option<u64>) -> FlowChange {
        let key = FlowKey { source: NodeId(0), destination: NodeId(2), number };
        let flow = demand.map(|demand| ActiveFlow {
            terms: FlowTerms {
                demand: Rate::from_bits_per_second(demand),
                ..FlowTerms::new(Span::from_millis(20))
            },
            since: Time::from_nanos(since),
        });
        FlowChange { key, flow }
    }

    #[test]
    fn a_program_is_announced_when_its_state_changes_and_only_by_its_own_machine() {
        let plan = plan(PAIRS);
        let mut supervisor = Supervisor::of_part(&plan, members().here());
        let mut announced = ProgramAnnouncements::default();
        let keys = |all: &[MemberAnnouncement]| -> Vec<usize> {
            let key = |news: &MemberAnnouncement| match news {
                MemberAnnouncement::Program { key, .. } => Some(key.node),
                _ => None,
            };
            all.iter().filter_map(key).collect()
        };
        let first = announced.news(&supervisor, &members());
        assert_eq!(keys(&first), [0]);
        assert!(announced.news(&supervisor, &members()).is_empty());
        supervisor.tick(Span::ZERO);
        assert_eq!(keys(&announced.news(&supervisor, &members())), [0], "it starts");
        let exit = windtunnel_verdict::evidence::ProgramExit { code: 0, signal: None };
        supervisor.on_spawned(1, 7, Span::ZERO);
        supervisor.on_exited(1, exit, Span::from_secs(1));
        let last = announced.news(&supervisor, &members());
        assert_eq!(keys(&last), [0]);
        assert!(
            matches!(last[1..], [MemberAnnouncement::Idle { idle: true }]),
            "nothing is left to do here"
        );
    }

    #[test]
    fn a_flow_keeps_the_time_of_its_beginning_while_its_terms_change() {
        let plan = plan(PAIRS);
        let routes = Routes::compute(&plan);
        let mut announced = FlowAnnouncements::default();
        let mut since = |time: u64, demand| {
            let changes = [change(0, time, demand)];
            let all = announced.announce(&plan, &routes, &members(), &changes);
            let flow = all[0].change.flow;
            flow.map(|flow| (flow.since.as_nanos(), flow.terms.demand.map(Rate::bits_per_second)))
        };
        assert_eq!(since(100, Some(5)), Some((100, Some(5))));
        assert_eq!(since(200, Some(9)), Some((100, Some(9))));
        assert_eq!(since(300, None), None);
        assert_eq!(since(400, Some(5)), Some((400, Some(5))), "it is another flow");
    }

    #[test]
    fn a_flow_is_announced_to_the_members_that_can_share_a_link_with_it() {
        let plan = plan(PAIRS);
        let routes = Routes::compute(&plan);
        let mut announced = FlowAnnouncements::default();
        let changes = [change(0, 100, Some(5))];
        let all = announced.announce(&plan, &routes, &members(), &changes);
        // Both members have nodes that send over a link of the path.
        assert_eq!((all[0].change, all[0].audience.clone()), (changes[0], Some(vec![0, 1])));
    }

    #[test]
    fn under_new_routes_all_flows_that_live_are_announced_again() {
        let plan = plan(PAIRS);
        let routes = Routes::compute(&plan);
        let mut announced = FlowAnnouncements::default();
        let now = Time::from_nanos(900);
        assert!(announced.announce_again(&plan, &routes, &members(), now).is_empty());
        let all = [change(0, 1, Some(5)), change(1, 1, Some(6)), change(0, 2, None)];
        announced.announce(&plan, &routes, &members(), &all);
        let again = announced.announce_again(&plan, &routes, &members(), now);
        let changes: Vec<FlowChange> = again.into_iter().map(|it| it.change).collect();
        assert_eq!(changes, [change(1, 900, Some(6))]);
    }
}
