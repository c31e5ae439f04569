//! Round-trip times that windtunnel measures itself: echo requests through the nodes' own kernels
//! and the real packet loop. Before the programs start, the engine is reset afterwards, so that
//! they cost no luck; in a window of the run they are packets like any other.

use windtunnel_model::Span;
use windtunnel_node::Request;

use super::Live;
use crate::clock::now;
use crate::echo::{EchoesSeen, Probe};
use crate::observer::Notice;

impl Live {
    /// Measures every path that is to be measured before the run, all at once, and waits for the
    /// results.
    pub(crate) fn measure_paths(&mut self) {
        let before: Vec<usize> = self.probes_where(|probe| probe.during.is_none()).collect();
        if before.is_empty() {
            return;
        }
        self.observer.notice(&Notice::Measuring { paths: before.len() });
        for &index in &before {
            self.start_probe(index);
        }
        while self.echoes.len() < before.len() && self.end.reason().is_none() {
            self.wait(Some(Span::from_millis(100)));
        }
    }

    /// Starts the measurements whose window has begun.
    pub(super) fn start_probes(&mut self, elapsed: Span) {
        let due = |probe: &Probe| probe.during.is_some_and(|(window, _)| window.from <= elapsed);
        let due: Vec<usize> =
            self.probes_where(due).filter(|index| !self.probes_started.contains(index)).collect();
        for index in due {
            self.start_probe(index);
        }
    }

    /// When the next measurement starts.
    pub(super) fn next_probe(&self) -> Option<Span> {
        let waiting = self.probes.iter().enumerate();
        let waiting = waiting.filter(|(index, probe)| {
            self.is_here(probe.from) && !self.probes_started.contains(index)
        });
        waiting.filter_map(|(_, probe)| Some(probe.during?.0.from)).min()
    }

    /// The run ends: no more requests, but replies on their way are waited for.
    pub(super) fn end_probes(&mut self) {
        let open = |live: &Live| -> Vec<usize> {
            let done = |index: &usize| live.echoes.iter().any(|(known, _)| known == index);
            let lives = |index: &usize| !live.dead.contains(&live.probes[*index].from.index());
            let started = live.probes_started.iter().copied();
            started.filter(|index| !done(index) && lives(index)).collect()
        };
        for index in open(self) {
            let request = Request::EndEcho { token: index as u64 };
            // A node that has failed says so itself.
            let _ = self.send(self.probes[index].from.index(), &request, &[]);
        }
        let deadline = now() + ECHO_GRACE;
        while !open(self).is_empty() && now() < deadline && !self.end.is_hurried() {
            self.wait(Some(deadline.since(now())));
        }
    }

    /// Those of probes from nodes here that are wanted.
    fn probes_where(&self, wanted: impl Fn(&Probe) -> bool) -> impl Iterator<Item = usize> {
        let probes = self.probes.iter().enumerate();
        probes
            .filter(move |(_, probe)| wanted(probe) && self.is_here(probe.from))
            .map(|(index, _)| index)
    }

    fn start_probe(&mut self, index: usize) {
        self.probes_started.insert(index);
        if let Err(error) = self.ask(index) {
            self.echoes.push((index, EchoesSeen { error: Some(error), ..EchoesSeen::default() }));
        }
    }

    fn ask(&self, index: usize) -> Result<(), String> {
        let probe = &self.probes[index];
        let target = self.plan.nodes[probe.to.index()].interfaces.first();
        let address = target.and_then(|interface| interface.addresses().next());
        let address = address.ok_or_else(|| "the node has no address".to_owned())?;
        let (count, interval) = probe.requests(self.plan.duration);
        let request =
            Request::Echo { token: index as u64, address, count, interval_ns: interval.as_nanos() };
        self.send(probe.from.index(), &request, &[])
    }

    pub(super) fn echo_done(
        &mut self,
        token: u64,
        began_ns: u64,
        echoes: &[(u64, Option<u64>)],
        error: Option<String>,
    ) {
        let Ok(index) = usize::try_from(token) else { return };
        let Some(probe) = self.probes.get(index) else { return };
        let echoes = probe.seen(self.origin, began_ns, echoes);
        self.echoes.push((index, EchoesSeen { echoes, error }));
    }
}

/// A little more than nodes wait for replies themselves.
const ECHO_GRACE: Span = Span::from_millis(3500);
