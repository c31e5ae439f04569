//! Starting programs: their words, variables and standard streams.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use regex::Regex;
use windtunnel_model::expect::{ExpectationClaim, ProgramFact, StandardStream};
use windtunnel_model::plan::{Program, ReadinessCondition};
use windtunnel_model::{Plan, Time};
use windtunnel_node::{NodeInitRequest, ProgramSpawnRequest};
use windtunnel_verdict::evidence::ProgramKey;

use super::context::RunContext;
use super::foreground::ForegroundProgram;
use crate::output::{LogWatch, OutputCollector, OutputStreamSetup};

/// Starts programs in their nodes.
pub(super) struct Launcher {
    /// Where programs start that name no folder of their own.
    base_dir: PathBuf,
    output: OutputCollector,
    /// `/dev/null` for the standard input of programs.
    null: Option<OwnedFd>,
    foreground: Option<ForegroundProgram>,
}

impl Launcher {
    pub(super) fn new(base_dir: PathBuf, output: OutputCollector) -> Self {
        Launcher { base_dir, output, null: None, foreground: None }
    }

    pub(super) fn put_in_foreground(&mut self, program: ForegroundProgram) {
        self.foreground = Some(program);
    }

    /// The program in the foreground and the number of its start, once it has been started.
    pub(super) fn foreground(&self) -> Option<(ProgramKey, u64)> {
        self.foreground.as_ref()?.started()
    }

    /// No program writes any more.
    pub(super) fn into_output(self) -> OutputCollector {
        self.output
    }

    /// Has a node start a program. The node replies with the number `spawn`.
    pub(super) fn launch(
        &mut self,
        cx: &RunContext,
        key: ProgramKey,
        spawn: u64,
        spec: &Program,
    ) -> Result<(), String> {
        let mut order = self.order(cx, key, spawn, spec);
        if let Some((streams, has_terminal)) =
            self.foreground.as_mut().and_then(|program| program.take_streams(key, spawn))
        {
            order.terminal = has_terminal;
            let streams = streams.each_ref().map(AsFd::as_fd);
            return cx.nodes.send(key.node, &NodeInitRequest::Spawn(order), &streams);
        }
        let pattern = match &spec.ready {
            Some(ReadinessCondition::Log(pattern)) => {
                Some(Regex::new(pattern).map_err(|error| error.to_string())?)
            }
            _ => None,
        };
        let failed = |error: io::Error| format!("cannot make pipes for its output: {error}");
        let input = self.null().map_err(failed)?;
        let output = self.carry(cx, key, false, pattern.clone()).map_err(failed)?;
        let error = self.carry(cx, key, true, pattern).map_err(failed)?;
        let stdio = [input.as_fd(), output.as_fd(), error.as_fd()];
        cx.nodes.send(key.node, &NodeInitRequest::Spawn(order), &stdio)
    }

    /// Gives a command what programs without settings of their own have: the folder in which they
    /// start, and their variables. Neither is of use in a file system of the node's own.
    pub(super) fn complete(&self, cx: &RunContext, node: usize, command: &mut ProgramSpawnRequest) {
        if cx.plan.nodes[node].root.is_some() {
            return;
        }
        let run = cx.folder.path().to_string_lossy().into_owned();
        command.env.insert("WINDTUNNEL_RUN".into(), run);
        let base = || self.base_dir.to_string_lossy().into_owned();
        command.cwd.get_or_insert_with(base);
    }

    /// Has a node run a command beside a program, as that one is run. What it writes comes out of what
    /// is returned.
    pub(super) fn check(
        &mut self,
        cx: &RunContext,
        key: ProgramKey,
        token: u64,
        spec: &Program,
        argv: &[String],
    ) -> Result<OwnedFd, String> {
        let failed = |error: io::Error| format!("cannot make a pipe for its output: {error}");
        let order = ProgramSpawnRequest { argv: argv.to_vec(), ..self.order(cx, key, token, spec) };
        let input = self.null().map_err(failed)?;
        let pipe = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC);
        let (reader, writer) = pipe.map_err(|error| failed(error.into()))?;
        // Of this end alone: the command's is as those of programs are.
        rustix::io::ioctl_fionbio(&reader, true).map_err(|error| failed(error.into()))?;
        let stdio = [input.as_fd(), writer.as_fd(), writer.as_fd()];
        cx.nodes.send(key.node, &NodeInitRequest::Spawn(order), &stdio)?;
        Ok(reader)
    }

    fn order(
        &self,
        cx: &RunContext,
        key: ProgramKey,
        spawn: u64,
        spec: &Program,
    ) -> ProgramSpawnRequest {
        let (env, cwd, program) = (spec.env.clone(), spec.cwd.clone(), Some(key.program));
        let argv = spec.argv.clone();
        let mut order = ProgramSpawnRequest { id: spawn, argv, env, cwd, terminal: false, program };
        self.complete(cx, key.node, &mut order);
        order
    }

    /// Makes a pipe whose reading end the output thread carries; returns the writing end.
    fn carry(
        &self,
        cx: &RunContext,
        key: ProgramKey,
        error: bool,
        ready: Option<Regex>,
    ) -> io::Result<OwnedFd> {
        let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let (source, file) = names(&cx.plan, key, error);
        let inner = Path::new("nodes").join(cx.node_of(key)).join(file);
        let (folder, file) = (Arc::clone(cx.folder.below()), cx.folder.path().join(&inner));
        let watches = log_watches(&cx.plan, key, error, cx.journal.origin());
        let pipe = reader;
        self.output.carry(OutputStreamSetup {
            key,
            source,
            error,
            pipe,
            folder,
            inner,
            file,
            ready,
            watches,
        });
        Ok(writer)
    }

    fn null(&mut self) -> io::Result<OwnedFd> {
        let null = match self.null.take() {
            Some(null) => null,
            None => std::fs::File::open("/dev/null")?.into(),
        };
        let copy = null.as_fd().try_clone_to_owned();
        self.null = Some(null);
        copy
    }
}

/// What stands in front of a stream's lines, and the name of its file.
fn names(plan: &Plan, key: ProgramKey, error: bool) -> (String, String) {
    let node = &plan.nodes[key.node];
    let stream = if error { "stderr" } else { "stdout" };
    if node.programs.len() > 1 {
        (format!("{}.{}", node.name, key.program), format!("{stream}.{}", key.program))
    } else {
        (node.name.clone(), stream.to_owned())
    }
}

/// What expectations want to know of a stream.
fn log_watches(plan: &Plan, key: ProgramKey, error: bool, origin: Time) -> Vec<LogWatch> {
    let expectations = plan.expectations.iter().enumerate();
    expectations
        .filter_map(|(index, expectation)| {
            let ExpectationClaim::Program { nodes, fact } = &expectation.claim else { return None };
            let ProgramFact::Log { pattern, stream, .. } = fact else { return None };
            let own = if error { StandardStream::Stderr } else { StandardStream::Stdout };
            let named = nodes.iter().any(|node| node.index() == key.node);
            if !named || stream.is_some_and(|stream| stream != own) {
                return None;
            }
            // The scenario has built it before.
            let pattern = Regex::new(pattern).ok()?;
            let window = expectation.window;
            let at = |span| (origin + span).as_nanos();
            let from_ns = window.map_or(0, |window| at(window.from));
            let to_ns = window.and_then(|window| window.to).map_or(u64::MAX, at);
            Some(LogWatch { expectation: index, pattern, from_ns, to_ns })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::testing::{context, output, plan};

    const FILE: &str = r#"
nodes:
  web:
    run: [{run: serve --port 80, env: {A: "1"}, cwd: /srv}, {run: log}]
  client: {run: get}
links: [{between: [web, client]}]
expect:
  - {node: client, log: done, between: [2s, 5s]}
  - {node: client, log: {match: err, stream: stderr}}
  - {node: web, log: up}
"#;

    fn key(node: usize, program: usize) -> ProgramKey {
        ProgramKey { node, program }
    }

    #[test]
    fn a_program_is_started_with_its_own_words_variables_and_folder() {
        let (context, sent, _) = context(plan(FILE), None);
        let mut launcher = Launcher::new("/experiment".into(), output());
        let programs: Vec<Program> =
            context.plan.nodes.iter().flat_map(|node| node.programs.clone()).collect();
        launcher.launch(&context, key(0, 0), 7, &programs[0]).unwrap();
        launcher.launch(&context, key(1, 0), 8, &programs[2]).unwrap();
        let spawns: Vec<(usize, ProgramSpawnRequest)> = sent.spawns();
        let run = context.folder.path().to_string_lossy().into_owned();
        let (node, web) = &spawns[0];
        assert_eq!((*node, web.id, web.terminal), (0, 7, false));
        assert_eq!(web.argv, ["serve", "--port", "80"]);
        assert_eq!(web.cwd.as_deref(), Some("/srv"));
        assert_eq!(web.env.get("A").map(String::as_str), Some("1"));
        assert_eq!(web.env.get("WINDTUNNEL_RUN"), Some(&run));
        let (node, client) = &spawns[1];
        assert_eq!((*node, client.id), (1, 8));
        assert_eq!(client.cwd.as_deref(), Some("/experiment"), "the folder of the file");
        assert_eq!(sent.descriptors(), [3, 3], "standard input, output and error");
    }

    #[test]
    fn files_of_a_nodes_several_programs_have_their_numbers() {
        let plan = plan(FILE);
        let named = |source: &str, file: &str| (source.to_owned(), file.to_owned());
        assert_eq!(names(&plan, key(0, 1), true), named("web.1", "stderr.1"));
        assert_eq!(names(&plan, key(1, 0), false), named("client", "stdout"));
    }

    #[test]
    fn lines_are_watched_on_the_stream_and_in_the_window_of_the_expectation() {
        let plan = plan(FILE);
        let origin = Time::from_nanos(1_000);
        let watched = |node, error| {
            let all = log_watches(&plan, key(node, 0), error, origin).into_iter();
            all.map(|it| (it.expectation, it.from_ns, it.to_ns)).collect::<Vec<_>>()
        };
        let windowed = (0, 2_000_001_000, 5_000_001_000);
        assert_eq!(watched(1, false), [windowed]);
        assert_eq!(watched(1, true), [windowed, (1, 0, u64::MAX)]);
        assert_eq!(watched(0, false), [(2, 0, u64::MAX)]);
    }

    #[test]
    fn a_node_that_takes_no_request_is_named_with_the_cause() {
        let (context, sent, _) = context(plan(FILE), None);
        sent.refuse("the node's init has ended");
        let mut launcher = Launcher::new("/experiment".into(), output());
        let spec = context.plan.nodes[1].programs[0].clone();
        let error = launcher.launch(&context, key(1, 0), 1, &spec).unwrap_err();
        assert_eq!(error, "the node's init has ended");
    }
}
