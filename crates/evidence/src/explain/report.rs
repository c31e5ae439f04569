//! Explanations with names, for tables and JSON.

use std::collections::BTreeMap;

use serde::Serialize;
use windtunnel_model::plan::IpTransport;
use windtunnel_model::word::StateWord;

use super::part::LatencyComponent;
use super::{Explanation, LossDetectionMethod, PacketRetransmission, RequestKind, explain};
use crate::evidence::RecordedRun;
use crate::file::LaneName;
use crate::flows::{GlobalFlow, TCP, UDP};
use crate::history::{self, EndpointRole};

/// Where the time of a run's requests went.
#[derive(Debug, Clone, Serialize)]
pub struct LatencyBreakdown {
    /// How many requests were explained.
    pub requests_in_all: usize,
    /// Their time in all.
    pub duration_ns: u64,
    /// Of all requests, the greatest first.
    pub parts: Vec<PartSum>,
    /// Those that were asked for, the slowest first.
    pub requests: Vec<RequestReport>,
    /// What could not be explained, and why.
    pub problems: Vec<String>,
}

/// A part of all requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PartSum {
    #[serde(flatten)]
    pub part: PartName,
    pub ns: u64,
    /// How many requests had it.
    pub requests: usize,
}

/// A part, by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct PartName {
    /// [`LatencyComponent::name`].
    pub part: &'static str,
    /// [`LatencyComponent::meaning`].
    #[serde(skip)]
    pub meaning: &'static str,
    /// `client` or `server`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub side: Option<EndpointRole>,
    /// The direction of a link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane: Option<LaneName>,
}

/// A request.
#[derive(Debug, Clone, Serialize)]
pub struct RequestReport {
    /// FLOW:NUMBER, as `--request` takes it.
    pub request: String,
    pub kind: RequestKind,
    pub protocol: StateWord<IpTransport>,
    pub client: String,
    pub server: String,
    /// Who asked.
    pub from: EndpointRole,
    /// Since the run began.
    pub begin_ns: u64,
    pub duration_ns: u64,
    /// Bytes, or datagrams.
    pub asked: u64,
    pub answered: u64,
    /// The greatest first; they add up to the duration.
    pub parts: Vec<PartTime>,
    /// In order of time; each begins where the one before ends.
    pub timeline: Vec<TimelinePart>,
    pub losses: Vec<LossReport>,
}

/// A part of one request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PartTime {
    #[serde(flatten)]
    pub part: PartName,
    pub ns: u64,
}

/// A stretch of one request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TimelinePart {
    #[serde(flatten)]
    pub part: PartName,
    /// Since the run began.
    pub begin_ns: u64,
    pub ns: u64,
}

/// A packet that was dropped and sent again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LossReport {
    /// Who sent it.
    pub sender: EndpointRole,
    pub offset: u64,
    /// Since the run began, like the other times.
    pub sent_ns: u64,
    pub resent_ns: u64,
    pub notice: LossDetectionMethod,
    /// Where, when and why it was dropped, if a recorded lane did that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropped: Option<DropReport>,
}

/// A drop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DropReport {
    pub lane: LaneName,
    pub reason: String,
    pub at_ns: u64,
}

/// Which requests a report lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestSelection {
    /// The slowest, so many.
    Slowest(usize),
    All,
    /// The one with this number of this flow.
    One {
        flow: u32,
        number: u32,
    },
}

impl LatencyBreakdown {
    /// Explains the requests of a run; with `client` only those of flows that this node began.
    #[must_use]
    pub fn of(
        evidence: &RecordedRun,
        choice: RequestSelection,
        client: Option<&str>,
    ) -> LatencyBreakdown {
        let (lanes, ends) = history::lanes(evidence);
        let (mut requests, mut problems) = (Vec::new(), Vec::new());
        for flow in history::histories(evidence) {
            let known = &evidence.flows()[flow.flow as usize];
            let name = || flow_name(evidence, known);
            if !matches!(known.protocol, TCP | UDP)
                || !client.is_none_or(|it| is_of(evidence, known, it))
            {
                continue;
            }
            if !flow.is_joined {
                problems.push(format!(
                    "flow {} ({}) was there before recording began: its calls are left out",
                    flow.flow,
                    name()
                ));
            }
            match explain(&flow, &ends) {
                Ok(explained) => {
                    requests.extend(explained.requests);
                    if explained.unread_messages > 0 {
                        problems.push(unread(flow.flow, &name(), explained.unread_messages));
                    }
                }
                Err(contradiction) => {
                    problems.push(format!("flow {} ({}): {contradiction}", flow.flow, name()));
                }
            }
        }
        let names =
            LatencyBreakdownBuilder { evidence, lanes: &lanes, origin: evidence.origin_ns() };
        names.report(requests, problems, choice)
    }
}

fn unread(flow: u32, name: &str, messages: u64) -> String {
    let noun = if messages == 1 { "message" } else { "messages" };
    format!("flow {flow} ({name}): {messages} {noun} not read when recording ended")
}

/// Whether a node began a flow.
fn is_of(evidence: &RecordedRun, flow: &GlobalFlow, client: &str) -> bool {
    let node = flow.from.and_then(|end| end.node);
    node.and_then(|node| evidence.name_of(node)) == Some(client)
}

fn flow_name(evidence: &RecordedRun, flow: &GlobalFlow) -> String {
    let [from, to] = ends(evidence, flow);
    format!("{from} → {to}")
}

fn ends(evidence: &RecordedRun, flow: &GlobalFlow) -> [String; 2] {
    [&flow.from, &flow.to]
        .map(|end| end.as_ref().map_or_else(|| "?".to_owned(), |end| evidence.end_name(end)))
}

struct LatencyBreakdownBuilder<'a> {
    evidence: &'a RecordedRun,
    lanes: &'a [LaneName],
    origin: u64,
}

impl LatencyBreakdownBuilder<'_> {
    fn report(
        &self,
        mut requests: Vec<Explanation>,
        problems: Vec<String>,
        choice: RequestSelection,
    ) -> LatencyBreakdown {
        requests.sort_by_key(|it| (std::cmp::Reverse(it.duration_ns()), it.flow, it.number));
        let mut sums: BTreeMap<LatencyComponent, (u64, usize)> = BTreeMap::new();
        for (part, ns) in requests.iter().flat_map(Explanation::parts) {
            let sum = sums.entry(part).or_default();
            *sum = (sum.0 + ns, sum.1 + 1);
        }
        let mut parts: Vec<PartSum> = sums
            .into_iter()
            .map(|(part, (ns, requests))| PartSum { part: self.part(part), ns, requests })
            .collect();
        parts.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| a.part.cmp(&b.part)));
        let chosen = requests.iter().filter(|it| match choice {
            RequestSelection::One { flow, number } => (it.flow, it.number) == (flow, number),
            _ => true,
        });
        let most = match choice {
            RequestSelection::Slowest(most) => most,
            _ => usize::MAX,
        };
        LatencyBreakdown {
            requests_in_all: requests.len(),
            duration_ns: requests.iter().map(Explanation::duration_ns).sum(),
            parts,
            requests: chosen.take(most).map(|it| self.request(it)).collect(),
            problems,
        }
    }

    fn request(&self, explained: &Explanation) -> RequestReport {
        let flow = &self.evidence.flows()[explained.flow as usize];
        let [client, server] = ends(self.evidence, flow);
        let mut parts: Vec<PartTime> = explained
            .parts()
            .into_iter()
            .map(|(part, ns)| PartTime { part: self.part(part), ns })
            .collect();
        parts.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| a.part.cmp(&b.part)));
        let timeline = explained.stretches.iter().map(|stretch| TimelinePart {
            part: self.part(stretch.part),
            begin_ns: self.since(stretch.from),
            ns: stretch.to - stretch.from,
        });
        RequestReport {
            request: format!("{}:{}", explained.flow, explained.number),
            kind: explained.kind,
            protocol: flow.protocol_name().into(),
            client,
            server,
            from: explained.from,
            begin_ns: self.since(explained.begin),
            duration_ns: explained.duration_ns(),
            asked: explained.asked,
            answered: explained.answered,
            parts,
            timeline: timeline.collect(),
            losses: explained.losses.iter().map(|loss| self.loss(loss)).collect(),
        }
    }

    fn since(&self, time: u64) -> u64 {
        time.saturating_sub(self.origin)
    }

    fn part(&self, part: LatencyComponent) -> PartName {
        let side = part.side();
        let lane = part.lane().map(|lane| self.lane(lane));
        PartName { part: part.name(), meaning: part.meaning(), side, lane }
    }

    fn lane(&self, lane: u32) -> LaneName {
        let unknown = || LaneName { link: format!("lane {lane}"), ..LaneName::default() };
        self.lanes.get(lane as usize).cloned().unwrap_or_else(unknown)
    }

    fn loss(&self, loss: &PacketRetransmission) -> LossReport {
        let reason = |number: u32| {
            let mut headers = self.evidence.members().iter().map(|member| &member.header);
            let known = headers.find_map(|header| header.drop_reasons.get(number as usize));
            known.cloned().unwrap_or_else(|| format!("reason {number}"))
        };
        LossReport {
            sender: loss.sender,
            offset: loss.offset,
            sent_ns: self.since(loss.sent_at),
            resent_ns: self.since(loss.resent_at),
            notice: loss.notice,
            dropped: loss.dropped.map(|(lane, at, number)| DropReport {
                lane: self.lane(lane),
                reason: reason(number),
                at_ns: self.since(at),
            }),
        }
    }
}
