//! `run.json`: what a run was, what it did, and whether to believe it.

mod limits;
mod machine;
mod planned;
mod received;
mod records;
mod services;
mod shares;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windtunnel_model::LinkProfile;
use windtunnel_model::plan::NatType;
use windtunnel_model::word::StateWord;

use crate::lateness;
pub use limits::{NodeBound, NodeLimit};
pub use machine::{
    FlowStarts, HostReport, LostHost, MachineReport, PeerClockAccuracy, PeerTrafficReport,
};
pub use planned::{LateEvent, SchedulePunctuality};
pub use received::NodeReceived;
pub use records::{RecordLayer, RecordingReport};
pub use services::{FailOverReport, ReplicaReport, ReplicasWatched, ServiceReport};
pub use shares::{NodeShares, ProgramShare};

/// A whole run. Field names carry their units.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// Version of windtunnel.
    pub windtunnel: String,
    /// Name of the experiment.
    pub name: String,
    /// Seed of every random stream.
    pub seed: u64,
    /// SHA-256 of the resolved plan: equal hashes mean equal experiments.
    pub plan_hash: String,
    /// When the run began: seconds since 1970 (UTC) of the machine's clock.
    pub began_unix_s: u64,
    /// Release of the kernel.
    pub kernel: String,
    /// How long it ran, in nanoseconds.
    pub elapsed_ns: u64,
    /// How long the network took to set up, in nanoseconds.
    pub setup_ns: u64,
    /// Why it ended.
    pub ended: String,
    /// The judgement.
    pub verdict: RunVerdict,
    /// Whether this is not the run but a part of it: the network between the machines was cut, and
    /// the run is what the machines on the other side did.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// The attempts before this one that `run --attempts` has repeated, the first one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<RunAttempt>,
    /// Machines that were lost during the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<LostHost>,
    /// Lateness over all packets delivered to nodes.
    pub lateness: lateness::LatenessSummary,
    /// What was planned for times of the run.
    #[serde(default)]
    pub planned: SchedulePunctuality,
    /// What the machine did meanwhile.
    pub machine: MachineReport,
    /// Each machine, of a run over several; `machine` has the sums then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostReport>,
    /// Every program.
    pub programs: Vec<ProgramReport>,
    /// Every node with a limit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<NodeLimit>,
    /// What came to nodes that pay for receiving.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub received: Vec<NodeReceived>,
    /// What routers redirected for each service.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<ServiceReport>,
    /// How the sockets of their replicas were looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas_watched: Option<ReplicasWatched>,
    /// What programs had of links that they shared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<NodeShares>,
    /// Every other limit of a node or of a program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<NodeBound>,
    /// What the node `internet` has carried and refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub internet: Option<InternetAccessReport>,
    /// What was expected, and seen.
    pub expectations: Vec<ExpectationResult>,
    /// Every link direction.
    pub links: Vec<LinkReport>,
    /// Every router.
    pub routers: Vec<RouterReport>,
    /// What was recorded as evidence; absent if nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<RecordingReport>,
}

/// What the way to the machine's outside has carried and refused; `internet.csv` has each flow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InternetAccessReport {
    /// Flows by their protocol: `tcp`, `udp`, `echo`, `dns`, `publish`.
    pub flows: BTreeMap<String, u64>,
    /// Bytes of payload from the network to the outside.
    pub sent_bytes: u64,
    /// Bytes of payload from the outside to the network.
    pub received_bytes: u64,
    /// Packets that were refused, by why.
    pub refused: BTreeMap<String, u64>,
    /// Packets that made no sense, by why.
    pub ignored: BTreeMap<String, u64>,
    /// What should have been carried and was not.
    pub lost: BTreeMap<String, u64>,
    /// Echo requests that the machine does not let an ordinary program send.
    pub echo_denied: u64,
}

/// Whether the run may be believed and did what was expected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunVerdict {
    /// Whether every packet left when it should have (within the bound).
    pub faithful: bool,
    /// Whether it was unfaithful for no other reason than that a machine did not keep up: packets
    /// were late, or the kernel dropped what was not taken in time. Another attempt may be
    /// faithful.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disturbed: bool,
    /// Whether every program and expectation did what it should.
    pub passed: bool,
    /// The exit code of windtunnel.
    pub exit_code: u8,
    /// The verdict in one line.
    pub text: String,
    /// Why it was not faithful: when, which links, the likely cause.
    pub unfaithful: Vec<String>,
    /// What failed.
    pub failures: Vec<String>,
    /// Why the evidence is incomplete: events that were lost, layers that are missing. Neither the
    /// emulation nor the programs are worse for it, so it fails a run only if the file says so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub incomplete: Vec<String>,
    /// What to look at before trusting the results.
    pub warnings: Vec<String>,
}

impl RunVerdict {
    /// Adds what has failed after the verdict was made: the run has not passed then.
    pub fn add_failure(&mut self, failure: String) {
        if self.passed && self.faithful {
            let words = self.text.split(':').next().unwrap_or_default();
            self.text = format!("{}: {failure}", words.replace("PASSED", "FAILED"));
        } else if self.passed {
            self.text = self.text.replacen("PASSED", "FAILED", 1);
        }
        self.passed = false;
        self.exit_code = self.exit_code.max(1);
        self.failures.push(failure);
    }
}

/// An attempt at a run that was disturbed, and so repeated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunAttempt {
    /// The name of its run folder, which is beside that of the last attempt.
    pub folder: String,
    /// Its verdict in one line.
    pub verdict: String,
}

/// One program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramReport {
    /// Its node.
    pub node: String,
    /// Its position among the node's programs, from 0.
    pub program: usize,
    /// Its words.
    pub argv: Vec<String>,
    /// Whether it is a daemon.
    pub daemon: bool,
    /// Whether it failed: it ended as it should not have, and no expectation speaks of that.
    pub failed: bool,
    /// Times it was started.
    pub starts: u32,
    /// When it was last started, in nanoseconds after the run began; absent if never.
    pub started_ns: Option<u64>,
    /// When it first was ready, likewise.
    pub ready_ns: Option<u64>,
    /// When it last exited, likewise; absent while it ran until the end.
    pub exited_ns: Option<u64>,
    /// Its last exit code, or 128+n for a signal n; absent while it ran until the end, or never
    /// started.
    pub exit: Option<u8>,
    /// How its life ended, in words.
    pub ended: String,
    /// Bytes it wrote, standard output and error together.
    pub output_bytes: u64,
    /// Bytes of output that were not kept, beyond the limit.
    pub output_discarded_bytes: u64,
}

/// An expectation and what was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpectationResult {
    /// The line of the scenario that asks for it; 0 where there is no file.
    pub line: u32,
    /// What it was about: `node probe exit`, `path client-1 to web rtt p99, 10s to 20s`.
    pub about: String,
    /// What was asked.
    pub asked: String,
    /// What was seen.
    pub seen: String,
    /// Whether it held.
    pub met: bool,
    /// Where to look: files of the run folder with their lines, and what to look for in them.
    pub look: String,
}

impl ExpectationResult {
    /// What is said of it where it was not met.
    #[must_use]
    pub fn failure(&self) -> String {
        format!("{}: expected {}, saw {}", self.about, self.asked, self.seen)
    }
}

/// One link direction: asked and achieved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkReport {
    /// Name of the link.
    pub link: String,
    /// `from-to`.
    pub direction: String,
    /// What was asked when the run began.
    pub asked: LinkProfile,
    /// The queue that holds at the beginning, with the default filled in; absent without a rate.
    pub queue: Option<String>,
    /// Packets (MTU segments) offered.
    pub offered_packets: u64,
    /// IP bytes offered.
    pub offered_bytes: u64,
    /// Packets delivered.
    pub delivered_packets: u64,
    /// IP bytes delivered.
    pub delivered_bytes: u64,
    /// Packets dropped, by reason.
    pub dropped_packets: BTreeMap<String, u64>,
    /// Packets that came out twice.
    pub duplicated_packets: u64,
    /// Packets that were cut because of the link's MTU.
    pub fragmented_packets: u64,
    /// The pieces that came of them. At any time offered + duplicated + pieces − cut = delivered +
    /// dropped + in flight.
    pub fragments_packets: u64,
    /// Packets with a flipped bit.
    pub corrupted_packets: u64,
    /// Packets held back so that others overtook them.
    pub reordered_packets: u64,
    /// Packets marked with ECN congestion experienced.
    pub marked_packets: u64,
    /// Packets still under way at the end.
    pub in_flight_packets: u64,
    /// The most packets that waited.
    pub queue_max_packets: u64,
    /// The most bytes that waited.
    pub queue_max_bytes: u64,
    /// What was achieved; beside `asked`, unless that was changed.
    pub achieved: AchievedLinkFigures,
    /// Lateness of what left this link.
    pub lateness: lateness::LatenessSummary,
    /// Packets that left this link later than the bound.
    #[serde(default)]
    pub late_packets: u64,
    /// The times between changes of its properties, each with what was asked and achieved in it;
    /// absent if nothing was changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<LinkPhaseReport>,
}

/// A part of a run in which the properties of a link direction stayed the same. Packets count where
/// they come to each step: one that was offered in a phase may be delivered in the next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkPhaseReport {
    /// Its beginning, in nanoseconds after the run began.
    pub from_ns: u64,
    /// Its end, likewise.
    pub until_ns: u64,
    /// What was asked in it.
    pub asked: LinkProfile,
    /// Packets (MTU segments) offered in it.
    pub offered_packets: u64,
    /// Packets delivered in it.
    pub delivered_packets: u64,
    /// Packets dropped in it, by reason.
    pub dropped_packets: BTreeMap<String, u64>,
    /// What was achieved in it.
    pub achieved: AchievedLinkFigures,
    /// Lateness of what left the link in it.
    pub lateness: lateness::LatenessSummary,
}

/// Achieved figures of a link direction; absent where nothing was there to measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct AchievedLinkFigures {
    /// Mean time from the end of a packet's transmission to the link's end, of the packets
    /// delivered: what latency, jitter, reordering and the order that is kept made of it, and
    /// the mean lateness; in nanoseconds.
    pub latency_mean_ns: Option<u64>,
    /// Wire bits a second while packets followed one another without a gap; absent if fewer than
    /// 10 packets did.
    pub rate_busy_bit_per_s: Option<u64>,
    /// Wire bits a second over the best whole second (over the run if it was shorter); not of
    /// phases.
    pub rate_peak_bit_per_s: Option<u64>,
    /// Packets lost by the link's loss, in parts per billion of those offered to it.
    pub loss_ppb: Option<u32>,
}

/// One router.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouterReport {
    /// Its name.
    pub router: String,
    /// Packets by what became of them.
    pub packets: BTreeMap<String, u64>,
    /// What its NAT did, if it has one; its mappings are in `nat.csv`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nat: Option<RouterNat>,
}

/// The NAT of a router.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouterNat {
    /// `full-cone`, `address-restricted`, `port-restricted` or `symmetric`.
    #[serde(rename = "type")]
    pub kind: StateWord<NatType>,
    /// Mappings that packets made.
    pub mappings_made: u64,
    /// Of these, those whose time was over.
    pub mappings_expired: u64,
    /// Mappings at the end, forwarded ports among them.
    pub mappings_held: u64,
    /// Sessions that began: mappings with a remote endpoint.
    pub sessions_made: u64,
    /// Sessions at the end.
    pub sessions_held: u64,
    /// Mappings that were over and are not in `nat.csv`, because there were too many.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub mappings_unlisted: u64,
}

/// For serde.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(text: &str, faithful: bool, exit_code: u8) -> RunVerdict {
        RunVerdict {
            faithful,
            disturbed: false,
            passed: true,
            exit_code,
            text: text.to_owned(),
            unfaithful: Vec::new(),
            failures: Vec::new(),
            incomplete: Vec::new(),
            warnings: Vec::new(),
        }
    }

    #[test]
    fn a_failure_after_the_verdict_makes_it_one_that_failed() {
        let failed = |mut verdict: RunVerdict| {
            verdict.add_failure("cannot write x".to_owned());
            assert!(!verdict.passed && verdict.failures == ["cannot write x"]);
            (verdict.text, verdict.exit_code)
        };
        let good = verdict("FAITHFUL, PASSED: 0 of 9 packets late", true, 0);
        assert_eq!(failed(good), ("FAITHFUL, FAILED: cannot write x".to_owned(), 1));
        let late = verdict("NOT FAITHFUL, PASSED: 9 of 9 packets late", false, 1);
        assert_eq!(failed(late), ("NOT FAITHFUL, FAILED: 9 of 9 packets late".to_owned(), 1));
        let interrupted = verdict("INTERRUPTED, FAITHFUL, PASSED: x", true, 130);
        let text = "INTERRUPTED, FAITHFUL, FAILED: cannot write x".to_owned();
        assert_eq!(failed(interrupted), (text, 130));
    }
}
