//! What became of a program: where it is in its life, and what brought it there.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use windtunnel_control::part::StopWhy;
use windtunnel_model::plan::{NodeVerb, Program, ReadinessCondition, Restart};
use windtunnel_model::valid::{PlanValidationError, Validate, ensure_short};
use windtunnel_model::word::ProgramState;
use windtunnel_model::{Plan, Span};

/// Names one program of the plan: its node's position and its own among the node's programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProgramKey {
    pub node: usize,
    /// Position among the node's programs.
    pub program: usize,
}

/// A program of the plan and where it is in its life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupervisedProgram {
    /// What the plan says.
    pub spec: Program,
    /// Where it is.
    pub life: ProgramLifecycle,
    /// Whether it has ever been ready.
    pub ready: bool,
    /// When it first was ready, after the run began.
    pub ready_at: Option<Span>,
    /// Times it was started.
    pub starts: u32,
    /// When it was last started.
    pub started_at: Option<Span>,
    /// When it last exited.
    pub exited_at: Option<Span>,
    pub last_exit: Option<ProgramExit>,
    /// Whether an event ended it, so that its exit code says nothing about it.
    pub ended_by_event: bool,
    /// Whether the end of the run ended it.
    pub ended_by_run: bool,
    /// Whether an event has stopped it with SIGSTOP.
    pub paused: bool,
    /// Whether an event has ended it before it started: it does not start until a `restart`.
    pub held: bool,
    /// Whether its node is outside the population that churn makes: not there yet, or left.
    pub absent: bool,
    restart_pending: bool,
    /// When it is to start next, where the plan has a time for that.
    #[serde(default)]
    pub due: Option<Span>,
    /// For when its last start was planned.
    #[serde(default)]
    pub planned: Option<Span>,
    /// Whether it has been reported, since it was last started, that it is waited for.
    pub awaited: bool,
    /// How the last check of whether it is ready failed.
    #[serde(default)]
    pub check_failure: Option<String>,
}

/// Where a program is in its life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProgramLifecycle {
    /// Not (or not again) started.
    Waiting {
        /// It starts no earlier than this after the run began.
        not_before: Span,
    },
    /// Its start was ordered.
    Starting,
    Running {
        /// Its process id inside the node.
        pid: i32,
        since: Span,
    },
    /// It has exited and is not started again.
    Exited { exit: ProgramExit },
    /// It could not be started.
    Failed { message: String },
    /// The machine that it was on is lost.
    Lost,
}

/// How a program exited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramExit {
    /// The exit code, or 128+n for a signal n.
    pub code: u8,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

impl Validate for SupervisedProgram {
    fn validate(&self) -> Result<(), PlanValidationError> {
        let exits = [
            self.last_exit,
            match self.life {
                ProgramLifecycle::Exited { exit } => Some(exit),
                _ => None,
            },
        ];
        let signals = exits.into_iter().flatten().filter_map(|exit| exit.signal);
        signals.map(StopWhy::Signal).try_for_each(|signal| signal.validate())?;
        let failure = self.check_failure.as_deref().unwrap_or_default();
        ensure_short("a reason", failure)?;
        match &self.life {
            ProgramLifecycle::Failed { message } => ensure_short("a reason", message),
            _ => Ok(()),
        }
    }
}

impl SupervisedProgram {
    /// One that has not started yet.
    #[must_use]
    pub fn new(spec: Program) -> Self {
        SupervisedProgram {
            due: (!spec.start.is_zero()).then_some(spec.start),
            planned: None,
            spec,
            life: ProgramLifecycle::Waiting { not_before: Span::ZERO },
            ready: false,
            ready_at: None,
            starts: 0,
            started_at: None,
            exited_at: None,
            last_exit: None,
            ended_by_event: false,
            ended_by_run: false,
            paused: false,
            held: false,
            absent: false,
            restart_pending: false,
            awaited: false,
            check_failure: None,
        }
    }

    /// The state as `ps` shows it.
    #[must_use]
    pub fn state(&self) -> ProgramState {
        match self.life {
            _ if self.absent && !self.life.is_running() => ProgramState::Absent,
            ProgramLifecycle::Waiting { .. } | ProgramLifecycle::Starting => ProgramState::Waiting,
            ProgramLifecycle::Running { .. } if self.paused => ProgramState::Paused,
            ProgramLifecycle::Running { .. } if self.ready && self.spec.ready.is_some() => {
                ProgramState::Ready
            }
            ProgramLifecycle::Running { .. } => ProgramState::Running,
            ProgramLifecycle::Exited { .. } => ProgramState::Exited,
            ProgramLifecycle::Failed { .. } => ProgramState::Failed,
            ProgramLifecycle::Lost => ProgramState::Lost,
        }
    }

    /// It starts.
    pub fn start(&mut self) {
        self.life = ProgramLifecycle::Starting;
        self.starts += 1;
        self.planned = self.due.take();
    }

    /// It could start, and waits for others: from now on no time is planned for that.
    pub fn wait_for_others(&mut self) {
        self.due = None;
    }

    /// It has started.
    pub fn begin(&mut self, pid: i32, now: Span) {
        self.life = ProgramLifecycle::Running { pid, since: now };
        self.awaited = false;
        self.started_at = Some(now);
    }

    /// It could not be started.
    pub fn fail(&mut self, message: String) {
        self.life = ProgramLifecycle::Failed { message };
    }

    /// It is ready; whether that is news.
    pub fn note_ready(&mut self, now: Span) -> bool {
        self.ready_at.get_or_insert(now);
        !std::mem::replace(&mut self.ready, true)
    }

    /// It has exited. Where the run is not `stopping`, it may be started again.
    pub fn exit(&mut self, exit: ProgramExit, now: Span, stopping: bool) {
        self.paused = false;
        self.last_exit = Some(exit);
        self.exited_at = Some(now);
        self.life = match self.restart_delay(exit) {
            Some(delay) if !stopping => ProgramLifecycle::Waiting { not_before: now + delay },
            _ => ProgramLifecycle::Exited { exit },
        };
    }

    /// The run is ending, and ends it.
    pub fn end_with_run(&mut self) {
        self.ended_by_run |= self.life.is_running();
    }

    /// What is missing where a condition has not come true.
    #[must_use]
    pub fn missing(&self, condition: &ReadinessCondition) -> String {
        match condition {
            ReadinessCondition::Tcp(port) => format!("nothing listens on tcp:{port}"),
            ReadinessCondition::Listen => "nothing listens on any port".to_owned(),
            ReadinessCondition::Unix(path) => format!("nothing listens on unix:{path}"),
            ReadinessCondition::Log(pattern) => {
                format!("no line of its output matches {pattern:?}")
            }
            ReadinessCondition::Exit => "it still runs".to_owned(),
            ReadinessCondition::Command(check) => match &self.check_failure {
                Some(failure) => failure.clone(),
                None => format!("`{}` has not ended", check.command()),
            },
            ReadinessCondition::OfImage(_) => "its image has not been looked at".to_owned(),
        }
    }

    /// It is where its own machine says that it is. What the program is, the plan says.
    pub fn follow(&mut self, mut theirs: SupervisedProgram) {
        theirs.spec.clone_from(&self.spec);
        *self = theirs;
    }

    /// Its machine is lost.
    pub fn lose(&mut self) {
        if !matches!(self.life, ProgramLifecycle::Exited { .. } | ProgramLifecycle::Failed { .. }) {
            self.life = ProgramLifecycle::Lost;
        }
    }

    /// When something is due, if nothing else happens before.
    #[must_use]
    pub fn next_wake(&self) -> Option<Span> {
        match self.life {
            ProgramLifecycle::Waiting { not_before } => Some(not_before.max(self.spec.start)),
            ProgramLifecycle::Running { since, .. } => {
                self.awaited_condition()?;
                let report = (!self.awaited).then_some(since + AWAITED_AFTER);
                report.into_iter().chain(self.ready_before()).min()
            }
            _ => None,
        }
    }

    /// What this running program must do to be ready; `None` if it is.
    #[must_use]
    pub fn awaited_condition(&self) -> Option<&ReadinessCondition> {
        self.spec.ready.as_ref().filter(|_| !self.ready && self.life.is_running())
    }

    /// When a running program that is not ready has had its time; `None`: it may take as long as it
    /// takes.
    #[must_use]
    pub fn ready_before(&self) -> Option<Span> {
        let ProgramLifecycle::Running { since, .. } = self.life else { return None };
        Some(since + self.ready_within()?)
    }

    /// How long it may take to be ready.
    #[must_use]
    pub fn ready_within(&self) -> Option<Span> {
        let usual = match self.awaited_condition()? {
            ReadinessCondition::Exit => None,
            ReadinessCondition::Command(check) if check.fall.is_some() => None,
            _ => Some(READY_WITHIN),
        };
        self.spec.ready_within.or(usual)
    }

    /// How long to wait before starting it again; `None` if it is not.
    fn restart_delay(&mut self, exit: ProgramExit) -> Option<Span> {
        if std::mem::take(&mut self.restart_pending) {
            return Some(Span::ZERO);
        }
        let wanted = match self.spec.restart {
            Restart::Never => false,
            Restart::OnFailure => exit.code != 0,
            Restart::Always => true,
        };
        let backoff = RESTART_DELAY.as_nanos() << self.starts.saturating_sub(1).min(10);
        let delay = Span::from_nanos(backoff).min(RESTART_DELAY_MAX);
        (wanted && !self.ended_by_event).then_some(delay)
    }

    /// An event does this to its node.
    pub fn on_verb(&mut self, verb: NodeVerb, now: Span) {
        if self.absent && verb == NodeVerb::Restart {
            // Only joining brings it back.
            return;
        }
        match verb {
            NodeVerb::Kill | NodeVerb::Stop => {
                self.ended_by_event = true;
                self.restart_pending = false;
                self.due = None;
                if let ProgramLifecycle::Waiting { .. } = self.life {
                    self.held = true;
                }
            }
            NodeVerb::Pause => self.paused = self.life.is_running(),
            NodeVerb::Resume => self.paused = false,
            NodeVerb::Restart => {
                self.held = false;
                self.ended_by_event = false;
                match self.life {
                    ProgramLifecycle::Running { .. } | ProgramLifecycle::Starting => {
                        self.restart_pending = true;
                    }
                    ProgramLifecycle::Exited { .. } => {
                        self.life = ProgramLifecycle::Waiting { not_before: now }
                    }
                    ProgramLifecycle::Waiting { .. }
                    | ProgramLifecycle::Failed { .. }
                    | ProgramLifecycle::Lost => {}
                }
            }
        }
    }
}

/// Churn.
impl SupervisedProgram {
    /// Its node leaves, or is not there from the beginning.
    pub fn leave(&mut self, now: Span) {
        // How it ended by itself, before, stays its own doing.
        if !matches!(self.life, ProgramLifecycle::Exited { .. } | ProgramLifecycle::Failed { .. }) {
            self.on_verb(NodeVerb::Kill, now);
        }
        self.absent = true;
    }

    /// Its node joins: it starts, again or for the first time. If it still ends, it starts when it
    /// has.
    pub fn join(&mut self, now: Span, planned: Option<Span>) {
        if !std::mem::take(&mut self.absent) {
            return;
        }
        let is_ending = self.life.is_running();
        self.due = planned.filter(|_| !is_ending).map(|joins| joins.max(self.spec.start));
        self.held = false;
        match self.life {
            ProgramLifecycle::Running { .. } | ProgramLifecycle::Starting => {
                self.restart_pending = self.ended_by_event;
            }
            ProgramLifecycle::Exited { .. } => {
                self.last_exit = None;
                self.life = ProgramLifecycle::Waiting { not_before: now };
            }
            ProgramLifecycle::Waiting { .. }
            | ProgramLifecycle::Failed { .. }
            | ProgramLifecycle::Lost => {}
        }
        self.ended_by_event = false;
    }

    /// Whether nothing more is to be expected of it, if its node does not join again.
    #[must_use]
    pub fn is_over(&self) -> bool {
        match self.life {
            ProgramLifecycle::Exited { .. }
            | ProgramLifecycle::Failed { .. }
            | ProgramLifecycle::Lost => true,
            ProgramLifecycle::Waiting { .. } => self.absent,
            ProgramLifecycle::Starting | ProgramLifecycle::Running { .. } => false,
        }
    }
}

/// All programs of a plan, of which none has started.
#[must_use]
pub fn programs_of(plan: &Plan) -> BTreeMap<ProgramKey, SupervisedProgram> {
    let nodes = plan.nodes.iter().enumerate();
    let programs = nodes.flat_map(|(node, spec)| {
        let numbered = spec.programs.iter().enumerate();
        numbered.map(move |(program, spec)| {
            (ProgramKey { node, program }, SupervisedProgram::new(spec.clone()))
        })
    });
    programs.collect()
}

impl ProgramKey {
    /// The program in words: `web`, or `web (program 2: redis-server)` where a node has several.
    #[must_use]
    pub fn describe(self, plan: &Plan) -> String {
        let ProgramKey { node, program } = self;
        let (name, programs) = (&plan.nodes[node].name, &plan.nodes[node].programs);
        match programs.get(program).and_then(|program| program.argv.first()) {
            Some(command) if programs.len() > 1 => {
                format!("{name} (program {}: {command})", program + 1)
            }
            Some(command) => format!("{name} ({command})"),
            None => name.clone(),
        }
    }
}

impl ProgramLifecycle {
    /// Whether a process exists.
    #[must_use]
    pub fn is_running(&self) -> bool {
        matches!(self, ProgramLifecycle::Running { .. } | ProgramLifecycle::Starting)
    }
}

impl fmt::Display for ProgramExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.signal {
            Some(signal) => write!(f, "was ended by signal {signal}"),
            None => write!(f, "exited with {}", self.code),
        }
    }
}

/// How long a program may take to be ready where the file does not say: better than hanging.
const READY_WITHIN: Span = Span::from_secs(60);
/// After this it is reported what is waited for: most programs are ready sooner.
pub const AWAITED_AFTER: Span = Span::from_secs(1);
/// First delay of a restart; doubles with each start.
const RESTART_DELAY: Span = Span::from_millis(100);
const RESTART_DELAY_MAX: Span = Span::from_secs(5);
