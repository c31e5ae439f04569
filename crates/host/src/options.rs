//! How a run is done.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use windtunnel_control::part::SharedOptions;
use windtunnel_model::{Bytes, NodeId, Span};
use windtunnel_trace::report::RunAttempt;
use windtunnel_verdict::JudgingTerms;

/// How a run is done.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// The run folder; must not exist or be empty.
    pub folder: PathBuf,
    /// Whether `latest` beside the folder shall point to it.
    pub link_latest: bool,
    /// Where programs start that name no folder of their own: the folder of the file. Absolute.
    pub base_dir: PathBuf,
    /// Identifies the plan in the report.
    pub plan_hash: String,
    /// A packet that leaves later than this after it should have counts as late; more than 0.1 %
    /// late packets, of all or of a link direction, or one that is 20 times as late, make the
    /// run unfaithful.
    pub max_lateness: Span,
    /// Bytes kept of each stream that a program writes.
    pub output_limit: Bytes,
    /// Whether packets of up to 64 KiB may travel as one.
    pub offload: bool,
    /// Bytes that packets in queues and in flight may hold.
    pub packet_memory: Bytes,
    /// Files and folders that no program of a node may see, such as the keys of clusters.
    pub hidden: Vec<PathBuf>,
    /// Nodes and links whose frames are captured, each to a file in the run folder.
    pub captures: Vec<String>,
    /// Attempts at the same run that have been disturbed; the report names them.
    pub attempts: Vec<RunAttempt>,
    /// The number and the name of this machine, in a run over several.
    pub member: Option<(u16, String)>,
    /// Whether the cost of records is measured before the run.
    pub measure_overhead: bool,
    /// The control group that all nodes are to be in, by its address; `None`: that of the process.
    pub group: Option<String>,
    /// Whether the file's node `internet` may reach what an ordinary program of the machine reaches.
    pub allow_internet: bool,
    /// Whether it may reach servers of the machine's loopback.
    pub allow_host: bool,
}

impl RunOptions {
    /// The usual options.
    #[must_use]
    pub fn new(folder: PathBuf, base_dir: PathBuf) -> Self {
        RunOptions {
            folder,
            link_latest: false,
            base_dir,
            plan_hash: String::new(),
            max_lateness: Span::from_millis(1),
            output_limit: Bytes(64_000_000),
            offload: true,
            packet_memory: Bytes(1_000_000_000),
            hidden: Vec::new(),
            captures: Vec::new(),
            attempts: Vec::new(),
            member: None,
            measure_overhead: false,
            group: None,
            allow_internet: false,
            allow_host: false,
        }
    }

    /// Options of a run over several machines, which all of them do in the same way.
    #[must_use]
    pub fn with_shared(
        folder: PathBuf,
        base_dir: PathBuf,
        plan_hash: &str,
        shared: &SharedOptions,
    ) -> Self {
        let SharedOptions { max_lateness, output_limit, offload, packet_memory } = *shared;
        let plan_hash = plan_hash.to_owned();
        let usual = RunOptions::new(folder, base_dir);
        RunOptions { plan_hash, max_lateness, output_limit, offload, packet_memory, ..usual }
    }

    /// How the run is judged.
    #[must_use]
    pub fn terms(&self) -> JudgingTerms<'_> {
        let RunOptions { plan_hash, max_lateness, attempts, .. } = self;
        JudgingTerms { plan_hash, late_above: *max_lateness, attempts }
    }

    /// What other machines have to know of these.
    #[must_use]
    pub fn shared(&self) -> SharedOptions {
        let RunOptions { max_lateness, output_limit, offload, packet_memory, .. } = *self;
        SharedOptions { max_lateness, output_limit, offload, packet_memory }
    }
}

/// A program that stands for the process that runs windtunnel.
#[derive(Debug)]
pub struct Foreground {
    pub node: NodeId,
    /// Its position among the node's programs.
    pub program: usize,
    /// Its standard input, output and error. What it writes there is not in the run folder.
    pub stdio: [OwnedFd; 3],
    /// Whether standard input is a terminal that is to control the program's session.
    pub has_terminal: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_machines_of_a_run_do_it_with_the_options_of_the_one_that_began_it() {
        let mut options = RunOptions::new("/r/one".into(), "/e".into());
        options.max_lateness = Span::from_micros(300);
        options.output_limit = Bytes(5);
        options.offload = false;
        options.packet_memory = Bytes(7);
        options.plan_hash = "abc".to_owned();
        let there = RunOptions::with_shared("/r/two".into(), "/f".into(), "abc", &options.shared());
        assert_eq!(there.shared(), options.shared());
        assert_eq!(there.plan_hash, "abc");
        // What is of one machine stays there.
        assert_eq!((there.folder, there.base_dir), ("/r/two".into(), "/f".into()));
        assert!(there.hidden.is_empty() && !there.link_latest);
    }
}
