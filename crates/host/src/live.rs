//! The main loop of a run: programs, events, measurements and control requests meet here. It never
//! touches a packet.

mod connections;
mod control;
mod daemons;
mod ending;
mod events;
mod foreground;
mod orders;
mod overload;
mod part;
mod paths;
mod programs;
mod routes;
mod senders;
mod status;

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use windtunnel_control::Listener;
use windtunnel_model::{NodeId, Plan, Span, Time, Traces};
use windtunnel_node::{Reply, Request, Village};
use windtunnel_routing::Routes;
use windtunnel_sys::poll::{self, Event as Wake, PollFd, PollFlags};
use windtunnel_sys::signal;
use windtunnel_trace::event::{Event, What};

use crate::clock::now;
use crate::dataplane::{Dataplane, Note, Order, Tally};
use crate::echo::{EchoesSeen, Probe};
use crate::ending::Ending;
use crate::folder::Folder;
use crate::freeze::{Freezes, Frost};
use crate::observer::{Notice, Observer};
use crate::options::Options;
use crate::output::{Carried, Matched, Output};
use crate::recorder::Recorder;
use crate::supervisor::Supervisor;
pub(crate) use connections::Connections;
use ending::EndRequest;
use events::Agenda;
use foreground::Front;
use orders::Ordered;
pub(crate) use part::Side;

/// The threads of a run and the ways to talk to them.
pub(crate) struct Threads {
    /// Raised when `matches` or `notes` have something.
    pub(crate) told: Arc<Wake>,
    pub(crate) recorder: Recorder,
    pub(crate) output: Output,
    pub(crate) matches: Receiver<Matched>,
    pub(crate) dataplane: Dataplane,
    pub(crate) notes: Receiver<Note>,
}

/// What is left when a run is over.
pub(crate) struct Ended {
    pub(crate) tally: Tally,
    pub(crate) carried: Carried,
    pub(crate) supervisor: Supervisor,
    pub(crate) echoes: Vec<(Probe, EchoesSeen)>,
    pub(crate) origin: Time,
    /// How long after the origin the clock of the run was started.
    pub(crate) began_late: Span,
    pub(crate) freezes: Freezes,
    /// Clients learn that the run is over when these close: not before its results are written.
    pub(crate) connections: Connections,
    /// Signals end the process again when this is dropped: not before its results are written.
    pub(crate) signals: signal::Reader,
    /// This machine's side of a run over several.
    pub(crate) side: Option<Side>,
}

/// A run that lives.
pub(crate) struct Live {
    plan: Arc<Plan>,
    base_dir: PathBuf,
    folder: Folder,
    observer: Arc<dyn Observer>,
    village: Village,
    /// What the nodes' kernels were told last.
    routes: Arc<Routes>,
    signals: signal::Reader,
    connections: Connections,
    threads: Threads,
    supervisor: Supervisor,
    /// What is still to be done to programs.
    agenda: Agenda,
    /// Changes ordered over the control socket that the packet loop has not confirmed, by number.
    ordered: BTreeMap<u64, Ordered>,
    next_order: u64,
    /// By lane index: what it is like.
    asked: Vec<status::Asked>,
    /// By lane index: the traces that it follows.
    following: Vec<Traces>,
    probes: Vec<Probe>,
    probes_started: BTreeSet<usize>,
    /// Results by the position among `probes`.
    echoes: Vec<(usize, EchoesSeen)>,
    frost: Frost,
    null: Option<OwnedFd>,
    /// The program that stands for this process.
    front: Option<Front>,
    origin: Time,
    began_late: Span,
    last_tick: Time,
    end: EndRequest,
    /// Nodes on this machine whose init has ended: nothing more comes from them.
    dead: BTreeSet<usize>,
    /// This machine's side of a run over several.
    side: Option<Side>,
}

impl Live {
    #[expect(clippy::too_many_arguments, reason = "each is made in its own stage of the run")]
    pub(crate) fn new(
        plan: Arc<Plan>,
        options: &Options,
        folder: Folder,
        observer: Arc<dyn Observer>,
        village: Village,
        routes: Arc<Routes>,
        signals: signal::Reader,
        control: Listener,
        threads: Threads,
        side: Option<Side>,
    ) -> Self {
        let supervisor = match &side {
            Some(side) => Supervisor::of_part(&plan, side.here()),
            None => Supervisor::new(&plan),
        };
        let mut live = Live {
            agenda: Agenda::default(),
            supervisor,
            base_dir: options.base_dir.clone(),
            folder,
            observer,
            village,
            routes,
            signals,
            connections: Connections::new(control),
            threads,
            ordered: BTreeMap::new(),
            next_order: 0,
            asked: status::Asked::all(&plan),
            following: plan
                .links
                .iter()
                .flat_map(|link| link.profiles.each_ref().map(|profile| profile.traces))
                .collect(),
            probes: Probe::all(&plan),
            probes_started: BTreeSet::new(),
            echoes: Vec::new(),
            frost: Frost::default(),
            null: None,
            front: None,
            origin: now(),
            began_late: Span::ZERO,
            last_tick: Time::ZERO,
            end: EndRequest::default(),
            dead: BTreeSet::new(),
            side,
            plan,
        };
        for event in &Arc::clone(&live.plan).events {
            if event.action.is_about_programs() {
                live.plan_for_programs(event.at, event.action.clone());
            }
        }
        live
    }

    pub(crate) fn village(&self) -> &Village {
        &self.village
    }

    /// Time since the run began.
    pub(crate) fn elapsed(&self) -> Span {
        now().since(self.origin)
    }

    /// Starts the clock of the run, which shows zero at `origin`.
    pub(crate) fn begin(&mut self, origin: Time) {
        self.origin = origin;
        self.began_late = now().since(origin);
        self.threads.dataplane.order(Order::Begin(self.origin));
        self.tell(None, What::RunBegan);
        self.tell_late_begin();
    }

    /// Runs until the run is to end, and says why.
    pub(crate) fn until_end(&mut self) -> Ending {
        loop {
            let elapsed = self.elapsed();
            self.do_node_events(elapsed);
            self.start_probes(elapsed);
            self.supervisor.tick(elapsed);
            self.do_commands();
            self.tell_others();
            self.tick(elapsed);
            if let Some(ending) = self.reason_to_end(elapsed) {
                self.end.ask(ending.clone());
                return ending;
            }
            self.wait(self.next_wake(elapsed));
        }
    }

    /// Ends programs: SIGTERM, some patience; the nodes' end is the end of what is left.
    pub(crate) fn end_programs(&mut self, ending: &Ending) {
        let reason = ending.reason();
        self.observer.notice(&Notice::Stopping { reason: &reason });
        self.tell(None, What::RunEnded { reason });
        self.supervisor.stop();
        self.end_probes();
        self.thaw();
        self.let_daemons_end(ending);
        self.terminate_all();
        let deadline = now() + GRACE;
        while self.supervisor.any_running() && now() < deadline {
            if self.end.is_hurried() {
                self.observer.notice(&Notice::Hurried);
                return;
            }
            self.wait(Some(deadline.since(now())));
        }
    }

    /// Reads the counters, lets the nodes vanish and closes all files.
    pub(crate) fn close(mut self) -> Ended {
        let await_datagrams = self.settle();
        // In this order: no packets, no processes; then their pipes are at their end.
        let tally = self.threads.dataplane.finish(await_datagrams);
        self.village.close();
        let carried = self.threads.output.finish();
        self.threads.recorder.end();
        Ended {
            tally,
            carried,
            supervisor: self.supervisor,
            echoes: self
                .echoes
                .into_iter()
                .map(|(index, seen)| (self.probes[index], seen))
                .collect(),
            origin: self.origin,
            began_late: self.began_late,
            freezes: self.frost.total(),
            connections: self.connections,
            signals: self.signals,
            side: self.side,
        }
    }

    fn reason_to_end(&mut self, elapsed: Span) -> Option<Ending> {
        if let Some(ending) = self.end.reason() {
            return Some(ending.clone());
        }
        if let Some(fatal) = self.supervisor.fatal() {
            return Some(Ending::Fatal(fatal.to_owned()));
        }
        if self.plan.duration.is_some_and(|duration| elapsed >= duration) {
            return Some(Ending::Duration);
        }
        self.all_finished().then_some(Ending::Finished)
    }

    fn next_wake(&self, elapsed: Span) -> Option<Span> {
        let event = self.agenda.next();
        // A program that could start already waits for news, not for time.
        let program = self.supervisor.next_wake(elapsed);
        let times = [event, program, self.next_probe(), self.plan.duration, Some(elapsed + TICK)];
        let next = times.into_iter().flatten().min()?;
        Some(next.saturating_sub(elapsed))
    }

    fn tick(&mut self, elapsed: Span) {
        if now().since(self.last_tick) >= TICK {
            self.last_tick = now();
            let running = self.supervisor.workers_running();
            self.observer.notice(&Notice::Tick { elapsed, running });
        }
        self.connections.end_abandoned(&self.village);
    }

    /// Waits for something to happen, at most `timeout`, and handles it.
    fn wait(&mut self, timeout: Option<Span>) {
        let (readable_nodes, readable) = self.poll(timeout.map(Duration::from));
        for node in readable_nodes {
            self.hear_node(node);
        }
        if readable.signals {
            self.take_signals();
        }
        if readable.told {
            self.hear_threads();
        }
        if readable.control || self.connections.has_more() {
            self.serve();
        }
        if readable.agent {
            self.hear_agent();
        }
    }

    fn poll(&self, timeout: Option<Duration>) -> (Vec<usize>, Readable) {
        // What has been read and not answered makes nothing readable.
        let timeout = if self.connections.has_more() { Some(Duration::ZERO) } else { timeout };
        let is_alive = |node: &&windtunnel_node::Node| !self.dead.contains(&node.id().index());
        // A channel without its other end stays readable for ever.
        let nodes: Vec<_> = self.village.nodes().iter().filter(is_alive).collect();
        let mut watched: Vec<PollFd<'_>> =
            nodes.iter().map(|node| PollFd::new(*node, PollFlags::IN)).collect();
        watched.push(PollFd::new(&self.signals, PollFlags::IN));
        watched.push(PollFd::new(&*self.threads.told, PollFlags::IN));
        let fixed = watched.len();
        let agent = self.side.as_ref().map(|side| PollFd::new(side, PollFlags::IN));
        let behind = agent.map_or(0, |agent| {
            watched.push(agent);
            1
        });
        for (descriptor, interest) in self.connections.interests() {
            watched.push(PollFd::from_borrowed_fd(descriptor, interest));
        }
        match poll::wait(&mut watched, timeout) {
            Ok(0) => return (Vec::new(), Readable::default()),
            Err(error) if error.kind() != ErrorKind::Interrupted => {
                // Nothing sensible is left to do but not to spin.
                std::thread::sleep(Duration::from_millis(10));
            }
            _ => {}
        }
        let happened = |watched: &PollFd<'_>| !watched.revents().is_empty();
        let ids = nodes.iter().map(|node| node.id().index());
        let readable = Readable {
            signals: happened(&watched[fixed - 2]),
            told: happened(&watched[fixed - 1]),
            agent: watched[fixed..fixed + behind].iter().any(happened),
            control: watched[fixed + behind..].iter().any(happened),
        };
        let nodes = ids.zip(&watched).filter(|(_, watched)| happened(watched));
        (nodes.map(|(node, _)| node).collect(), readable)
    }

    fn take_signals(&mut self) {
        while let Ok(Some(received)) = self.signals.read() {
            if !self.pass_on(received.signal) {
                self.end.insist(Ending::Interrupted(received.signal));
            }
        }
    }

    fn hear_threads(&mut self) {
        let _ = self.threads.told.clear();
        while let Ok(Matched(key)) = self.threads.matches.try_recv() {
            self.program_ready(key);
        }
        while let Ok(note) = self.threads.notes.try_recv() {
            self.hear_dataplane(note);
        }
    }

    fn hear_node(&mut self, node: usize) {
        let id = NodeId::from_index(node);
        loop {
            let Some(heard) = self.village.node(id).map(windtunnel_node::Node::recv) else {
                return;
            };
            match heard {
                Ok(Some(reply)) if self.may_say(node, &reply) => self.hear_reply(node, reply),
                Ok(Some(_)) => {}
                Ok(None) => return,
                Err(error) => {
                    self.node_died(node, &error);
                    return;
                }
            }
        }
    }

    /// A node's init has ended, and with it everything in the node: the kernel sees to that.
    fn node_died(&mut self, node: usize, error: &windtunnel_node::ChannelError) {
        self.dead.insert(node);
        let now = self.elapsed();
        for key in self.supervisor.on_node_died(node, now) {
            let (node, program) = (self.plan.nodes[key.node].name.clone(), key.program);
            self.tell(None, What::ProgramExited { node, program, code: 137, signal: Some(9) });
        }
        let name = &self.plan.nodes[node].name;
        self.end.ask(Ending::Fatal(format!("node {name} has failed: {error}")));
    }

    fn hear_reply(&mut self, node: usize, reply: Reply) {
        match reply {
            Reply::Spawned { id, pid } => self.spawned(id, pid),
            Reply::SpawnFailed { id, message, errno, by_program } => {
                self.spawn_failed(id, &message, errno, by_program);
            }
            Reply::Exited { id, status } => self.exited(id, status),
            Reply::Listening { token } => self.listening(token),
            Reply::EchoDone { token, began_ns, echoes, error } => {
                self.echo_done(token, began_ns, &echoes, error);
            }
            Reply::SignalFailed { message, .. } => {
                let name = &self.plan.nodes[node].name;
                let message = format!("a signal did not reach node {name}: {message}");
                self.tell(None, What::Warning { message });
            }
            Reply::RoutesFailed { message } => self.routes_failed(node, &message),
            _ => {}
        }
    }

    /// Asks something of a node on this machine.
    fn send(
        &self,
        node: usize,
        request: &Request,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), String> {
        let id = NodeId::from_index(node);
        let node = self.village.node(id).ok_or("the node is on another machine")?;
        node.send(request, descriptors).map_err(|error| error.to_string())
    }

    /// Logs an event of this moment and shows it.
    fn tell(&self, intended: Option<Span>, what: What) -> Event {
        self.tell_at(self.elapsed(), intended, what)
    }

    fn tell_at(&self, at: Span, intended: Option<Span>, what: What) -> Event {
        let event = Event { at_ns: at.as_nanos(), intended_ns: intended.map(Span::as_nanos), what };
        self.observer.notice(&Notice::Event(&event));
        self.threads.recorder.event(event.clone());
        event
    }

    /// `/dev/null` for the standard input of programs.
    fn null(&mut self) -> std::io::Result<OwnedFd> {
        let null = match self.null.take() {
            Some(null) => null,
            None => std::fs::File::open("/dev/null")?.into(),
        };
        let copy = null.as_fd().try_clone_to_owned();
        self.null = Some(null);
        copy
    }
}

#[derive(Default)]
struct Readable {
    signals: bool,
    told: bool,
    control: bool,
    agent: bool,
}

/// Nodes by name, used by the parts of the loop.
impl Live {
    fn node_names(&self, nodes: &[NodeId]) -> BTreeMap<usize, String> {
        nodes.iter().map(|id| (id.index(), self.plan.nodes[id.index()].name.clone())).collect()
    }
}

const TICK: Span = Span::from_millis(250);
/// How long programs may take to end after SIGTERM.
const GRACE: Span = Span::from_secs(2);
