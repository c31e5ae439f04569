//! Round-trip times that windtunnel measures itself: echo requests through the nodes' own kernels
//! and the real packet loop. Before the programs start, the engine is reset afterwards, so that
//! they take no random decisions from them; in a window of the run they are packets like any other.

use std::collections::BTreeSet;

use windtunnel_model::{NodeId, Plan, Span, Time};
use windtunnel_node::{NodeInitReply, NodeInitRequest};
use windtunnel_verdict::evidence::{ECHOES_MOST, EchoProbe, EchoResults};

use super::context::RunContext;
use super::nodes::RunNodeTable;
use super::punctuality::ScheduledOccurrence;

/// The measurements of a run: which have been started, and what they found.
#[derive(Debug)]
pub(super) struct Measurements {
    probes: Vec<EchoProbe>,
    started: BTreeSet<usize>,
    /// Results by the position among `probes`.
    results: Vec<(usize, EchoResults)>,
}

impl Measurements {
    pub(super) fn new(plan: &Plan) -> Self {
        let probes = EchoProbe::all(plan);
        Measurements { probes, started: BTreeSet::new(), results: Vec::new() }
    }

    /// Starts all that are to be done before the run. Returns how many there are.
    pub(super) fn start_before_run(&mut self, cx: &RunContext) -> usize {
        let before = self.starting_here(&cx.nodes, |probe| probe.during.is_none());
        before.iter().for_each(|index| self.start(*index, cx));
        before.len()
    }

    /// Starts those whose window has begun.
    pub(super) fn start_due(&mut self, elapsed: Span, cx: &RunContext) {
        let is_due =
            |probe: &EchoProbe| probe.during.is_some_and(|(window, _)| window.from <= elapsed);
        let due = self.starting_here(&cx.nodes, is_due);
        for index in
            due.into_iter().filter(|index| !self.started.contains(index)).collect::<Vec<_>>()
        {
            self.start(index, cx);
        }
    }

    /// When the next one starts.
    pub(super) fn next(&self, nodes: &RunNodeTable) -> Option<Span> {
        let waiting = self.starting_here(nodes, |_| true).into_iter();
        let waiting = waiting.filter(|index| !self.started.contains(index));
        waiting.filter_map(|index| Some(self.probes[index].during?.0.from)).min()
    }

    /// How many have a result.
    pub(super) fn done(&self) -> usize {
        self.results.len()
    }

    /// The run ends: no more requests.
    pub(super) fn end(&self, cx: &RunContext) {
        for index in self.open(&cx.nodes) {
            let request = NodeInitRequest::EndEcho { token: index as u64 };
            // A node that has failed says so itself.
            let _ = cx.nodes.send(self.probes[index].from.index(), &request, &[]);
        }
    }

    /// Those that have been started and whose node lives, but has not replied.
    pub(super) fn open(&self, nodes: &RunNodeTable) -> Vec<usize> {
        let lives = |index: &usize| !nodes.is_dead(self.probes[*index].from.index());
        let open = self.started.iter().copied().filter(|index| !self.has_result(*index));
        open.filter(lives).collect()
    }

    /// Whether a reply of `node` is the result of a measurement that it was asked for.
    pub(super) fn expects(&self, node: usize, reply: &NodeInitReply) -> bool {
        let NodeInitReply::EchoDone { token, echoes, .. } = reply else { return false };
        let Ok(index) = usize::try_from(*token) else { return false };
        self.started.contains(&index)
            && !self.has_result(index)
            && self.probes.get(index).is_some_and(|probe| probe.from.index() == node)
            && echoes.len() <= usize::from(ECHOES_MOST)
    }

    /// A measurement in a window has begun `at` a time.
    pub(super) fn note_begin(&self, cx: &RunContext, token: u64, at: Time) {
        let probe = usize::try_from(token).ok().and_then(|index| self.probes.get(index));
        let Some((probe, (window, _))) = probe.and_then(|it| Some((it, it.during?))) else {
            return;
        };
        let name = |node: NodeId| cx.nodes.name(node.index());
        let what = format!("measurement of {} to {}", name(probe.from), name(probe.to));
        cx.happened(ScheduledOccurrence::one(&what), window.from, cx.journal.happened_at(at));
    }

    /// A node has measured.
    pub(super) fn finish(
        &mut self,
        origin: Time,
        token: u64,
        began_ns: u64,
        echoes: &[(u64, Option<u64>)],
        error: Option<String>,
    ) {
        let Ok(index) = usize::try_from(token) else { return };
        let Some(probe) = self.probes.get(index) else { return };
        let echoes = probe.seen(origin, began_ns, echoes);
        self.results.push((index, EchoResults { echoes, error }));
    }

    pub(super) fn into_results(self) -> Vec<(EchoProbe, EchoResults)> {
        let Measurements { probes, results, .. } = self;
        results.into_iter().map(|(index, seen)| (probes[index], seen)).collect()
    }

    fn has_result(&self, index: usize) -> bool {
        self.results.iter().any(|(known, _)| *known == index)
    }

    /// Those from nodes here that are wanted.
    fn starting_here(
        &self,
        nodes: &RunNodeTable,
        wanted: impl Fn(&EchoProbe) -> bool,
    ) -> Vec<usize> {
        let probes = self.probes.iter().enumerate();
        let here = probes.filter(|(_, probe)| wanted(probe) && nodes.is_here(probe.from));
        here.map(|(index, _)| index).collect()
    }

    fn start(&mut self, index: usize, cx: &RunContext) {
        self.started.insert(index);
        if let Err(error) = self.ask(index, cx) {
            self.results
                .push((index, EchoResults { error: Some(error), ..EchoResults::default() }));
        }
    }

    fn ask(&self, index: usize, cx: &RunContext) -> Result<(), String> {
        let probe = &self.probes[index];
        let target = cx.plan.nodes[probe.to.index()].interfaces.first();
        let address = target.and_then(|interface| interface.addresses().next());
        let address = address.ok_or_else(|| "the node has no address".to_owned())?;
        let (count, interval) = probe.requests(cx.plan.duration);
        let request = NodeInitRequest::Echo {
            token: index as u64,
            address,
            count,
            interval_ns: interval.as_nanos(),
        };
        cx.nodes.send(probe.from.index(), &request, &[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::testing::{NodeRequestLog, context, plan};

    /// One path before the run, one in a window of three seconds.
    const PATHS: &str = "
duration: 10s
nodes: {a: {}, b: {}, c: {}}
links: [{between: [a, b], latency: 5ms}, {between: [b, c], latency: 5ms}]
expect:
  - {path: [a, b], rtt: {max: 20ms}}
  - {path: [b, c], between: [2s, 5s], rtt: {max: 20ms}}
";

    fn asked(sent: &NodeRequestLog) -> Vec<(usize, u64, u16, u64)> {
        let echo = |(node, request): (usize, NodeInitRequest)| match request {
            NodeInitRequest::Echo { token, count, interval_ns, .. } => {
                Some((node, token, count, interval_ns))
            }
            _ => None,
        };
        sent.requests().into_iter().filter_map(echo).collect()
    }

    #[test]
    fn a_path_without_a_window_is_measured_before_the_run_and_one_with_in_its_window() {
        let (context, sent, _) = context(plan(PATHS), None);
        let mut measurements = Measurements::new(&context.plan);
        assert_eq!(measurements.start_before_run(&context), 1);
        assert_eq!(asked(&sent), [(0, 0, 20, 20_000_000)]);
        assert_eq!(measurements.next(&context.nodes), Some(Span::from_secs(2)));
        measurements.start_due(Span::from_millis(1_999), &context);
        assert_eq!(asked(&sent).len(), 1);
        measurements.start_due(Span::from_secs(2), &context);
        measurements.start_due(Span::from_secs(3), &context);
        // Three seconds, one request each 100 ms.
        assert_eq!(asked(&sent)[1..], [(1, 1, 30, 100_000_000)]);
        assert_eq!(measurements.next(&context.nodes), None);
    }

    #[test]
    fn a_machine_measures_the_paths_from_its_own_nodes() {
        let (context, sent, _) = context(plan(PATHS), Some(vec![false, true, true]));
        let mut measurements = Measurements::new(&context.plan);
        assert_eq!(measurements.start_before_run(&context), 0);
        measurements.start_due(Span::from_secs(2), &context);
        assert_eq!(asked(&sent).len(), 1);
    }

    #[test]
    fn a_result_counts_times_from_the_beginning_of_the_run() {
        let (context, _, _) = context(plan(PATHS), None);
        let mut measurements = Measurements::new(&context.plan);
        measurements.start_due(Span::from_secs(2), &context);
        assert_eq!(measurements.open(&context.nodes), [1]);
        let origin = Time::from_nanos(1_000_000_000);
        let echoes = [(0, Some(10_000_000)), (100_000, None)];
        // The node began 2 s after the run did.
        measurements.finish(origin, 1, 3_000_000_000, &echoes, None);
        assert_eq!(measurements.open(&context.nodes), [] as [usize; 0]);
        let results = measurements.into_results();
        let seen = &results[0].1.echoes;
        let rtt = Some(Span::from_millis(10));
        assert_eq!(*seen, [(Span::from_secs(2), rtt), (Span::from_millis(2_100), None)]);
    }

    #[test]
    fn a_node_that_has_died_is_not_waited_for_at_the_end() {
        let (mut context, sent, _) = context(plan(PATHS), None);
        let mut measurements = Measurements::new(&context.plan);
        measurements.start_before_run(&context);
        measurements.start_due(Span::from_secs(2), &context);
        context.nodes.set_dead(0);
        assert_eq!(measurements.open(&context.nodes), [1]);
        measurements.end(&context);
        let last = sent.requests().pop().unwrap();
        assert_eq!(last, (1, NodeInitRequest::EndEcho { token: 1 }));
    }

    #[test]
    fn a_request_that_cannot_be_sent_is_a_result_with_the_cause() {
        let (context, sent, _) = context(plan(PATHS), None);
        sent.refuse("gone");
        let mut measurements = Measurements::new(&context.plan);
        measurements.start_before_run(&context);
        assert_eq!(measurements.done(), 1);
        assert_eq!(measurements.into_results()[0].1.error.as_deref(), Some("gone"));
    }

    #[test]
    fn only_the_node_that_was_asked_may_answer_and_only_once() {
        let (context, _, _) = context(plan(PATHS), None);
        let mut measurements = Measurements::new(&context.plan);
        let reply = |token, echoes: usize| NodeInitReply::EchoDone {
            token,
            began_ns: 0,
            echoes: vec![(0, None); echoes],
            error: None,
        };
        assert!(!measurements.expects(0, &reply(0, 1)), "it was not asked yet");
        measurements.start_before_run(&context);
        assert!(measurements.expects(0, &reply(0, 1)));
        assert!(!measurements.expects(1, &reply(0, 1)), "another node was asked");
        assert!(!measurements.expects(0, &reply(7, 1)), "there is no such measurement");
        assert!(!measurements.expects(0, &reply(0, 5001)), "more than a node measures at once");
        measurements.finish(Time::ZERO, 0, 0, &[], None);
        assert!(!measurements.expects(0, &reply(0, 1)), "it has answered");
    }
}
