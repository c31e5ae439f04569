//! Leads the parts of a run through their stages: nothing begins anywhere before it can begin
//! everywhere. Once it has begun, the parts go on without us.

mod part_state;
mod results;
mod stage;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use windtunnel_cluster::PartSessions;
use windtunnel_cluster::parts::PartEvent;
use windtunnel_cluster::protocol::run::{PartCommand, RunSetup};
use windtunnel_control::part::{FromPart, StopWhy};
use windtunnel_folder::RunOutputFolder;
use windtunnel_host::Observer;
use windtunnel_sys::process::Signal;
use windtunnel_sys::signal::SignalReader;

use crate::error::{LeadError, LeadErrorKind};
use crate::notices::Notices;
use crate::overdue::OverdueRunStage;
use crate::proxy::{PartReachability, Proxy};
use part_state::{PartState, PartTermination};

pub(crate) use stage::ClusterRunStage;

/// All parts, and how far they are.
pub(crate) struct ClusterRunCoordinator {
    setup: RunSetup,
    parts: PartSessions,
    notices: Notices,
    signals: SignalReader,
    /// By member.
    members: Vec<PartState>,
    stage: ClusterRunStage,
    /// When that began, or a part was last seen to get on with it.
    last_moved: Instant,
    /// Why the run was stopped before it began.
    error: Option<LeadError>,
    interrupted: Option<i32>,
}

impl ClusterRunCoordinator {
    pub(crate) fn new(
        setup: &RunSetup,
        parts: PartSessions,
        observer: Arc<dyn Observer>,
        stage: ClusterRunStage,
        signals: SignalReader,
    ) -> Self {
        ClusterRunCoordinator {
            notices: Notices::new(setup, observer),
            members: setup.members.iter().map(|_| PartState::default()).collect(),
            setup: setup.clone(),
            parts,
            signals,
            stage,
            last_moved: Instant::now(),
            error: None,
            interrupted: None,
        }
    }

    /// Leads all parts to the beginning of the run.
    pub(crate) fn until_begun(&mut self) -> Result<(), LeadError> {
        while self.stage < ClusterRunStage::Running {
            self.step();
            if let Some(error) = self.error.take() {
                return Err(self.give_up(error));
            }
            if self.members.iter().all(|member| member.through >= Some(self.stage)) {
                self.next_stage();
                self.last_moved = Instant::now();
                self.members.iter_mut().for_each(|member| member.unreached.clear());
            } else if let Some(error) = self.overdue() {
                return Err(self.give_up(error));
            }
        }
        Ok(())
    }

    /// Why the run cannot begin, if nothing has moved for as long as this stage may take.
    fn overdue(&self) -> Option<LeadError> {
        let waiting = (0..).zip(&self.members).filter(|(_, it)| it.through < Some(self.stage));
        let only_unreached = waiting.clone().all(|(_, state)| !state.unreached.is_empty());
        let patience = self.stage.patience(only_unreached);
        if self.last_moved.elapsed() < patience {
            return None;
        }
        let unreached = |state: &PartState| state.unreached.clone();
        let waiting = waiting.map(|(member, state)| (member, unreached(state))).collect();
        let ports = self.members.iter().map(|state| state.port.unwrap_or(0)).collect();
        let overdue = OverdueRunStage { stage: self.stage, patience, waiting, ports };
        Some(overdue.error(&self.setup.members))
    }

    /// Waits until every part knows that the run begins, and none needs us any more.
    pub(crate) fn until_all_know(&mut self) -> Result<(), LeadError> {
        let knows = |member: &PartState| {
            member.through == Some(ClusterRunStage::Running) || member.end.is_some()
        };
        while !self.members.iter().all(knows) {
            self.step();
        }
        self.error.take().map_or(Ok(()), |error| Err(self.give_up(error)))
    }

    /// Watches the run to its end, and serves the clients of the control socket in `folder`.
    pub(crate) fn until_over(&mut self, folder: &RunOutputFolder) -> Result<(), LeadError> {
        let mut proxy = Proxy::open(folder, &self.setup).map_err(|error| {
            LeadError::new(
                LeadErrorKind::Machine,
                format!("cannot open the control socket: {error}"),
            )
        })?;
        while self.members.iter().any(PartState::is_waited_for) {
            self.step();
            let presence = |member: &PartState| match member.end.is_some() || self.is_lost(member) {
                true => PartReachability::Gone,
                false if member.is_silent() => PartReachability::Silent,
                false => PartReachability::There,
            };
            let present: Vec<PartReachability> = self.members.iter().map(presence).collect();
            proxy.serve(self.parts.agents(), &present);
        }
        for state in self.members.iter_mut().filter(|state| state.end.is_none()) {
            state.end = Some(PartTermination::Silent);
        }
        proxy.close();
        Ok(())
    }

    /// Waits for something to happen, a little while at the most, and handles it.
    fn step(&mut self) {
        while let Ok(Some(received)) = self.signals.read() {
            self.interrupted = Some(received.signal);
            let why = StopWhy::Signal(received.signal);
            self.parts.order_all(&PartCommand::Stop { why });
        }
        let mut patience = PATIENCE;
        while let Some((member, event)) = self.parts.next_event(patience) {
            self.handle(member, event);
            patience = Duration::ZERO;
        }
    }

    fn handle(&mut self, member: u16, event: PartEvent) {
        let index = usize::from(member);
        if let PartEvent::Said { said, .. } = &event
            && !matches!(said, FromPart::Unreached { .. })
        {
            self.last_moved = Instant::now();
        }
        match event {
            PartEvent::Said { now_ns, at, rtt, said } => {
                self.members[index].clock = Some((now_ns, at));
                self.members[index].rtt = rtt;
                self.said(member, said);
            }
            PartEvent::Refused(why) | PartEvent::Gone(why) if self.members[index].end.is_some() => {
                drop(why);
            }
            PartEvent::Refused(why) => {
                self.part_is_over(
                    member,
                    PartTermination::Failed(why),
                    LeadErrorKind::Machine.exit_code(),
                    None,
                );
            }
            PartEvent::Gone(why) => {
                self.part_is_over(
                    member,
                    PartTermination::Gone(why),
                    LeadErrorKind::Machine.exit_code(),
                    None,
                );
            }
        }
    }

    fn said(&mut self, member: u16, said: FromPart) {
        let state = &mut self.members[usize::from(member)];
        match said {
            FromPart::Bound { port } => {
                state.port = Some(port);
                state.through = Some(ClusterRunStage::Binding);
            }
            FromPart::Unreached { members } => state.unreached = members,
            FromPart::Prepared => state.through = Some(ClusterRunStage::Preparing),
            FromPart::Reached => state.through = Some(ClusterRunStage::Reaching),
            FromPart::Measured => state.through = Some(ClusterRunStage::Measuring),
            FromPart::Begun => state.through = Some(ClusterRunStage::Running),
            FromPart::Ending => state.is_ending = true,
            FromPart::Notice { notice } => {
                if let Some(host) = self.notices.notice(member, &notice) {
                    self.lose(&host, member);
                }
            }
            FromPart::Ended => {
                // The code counts only if the run has not begun.
                self.part_is_over(
                    member,
                    PartTermination::Ended,
                    LeadErrorKind::Machine.exit_code(),
                    None,
                );
            }
            FromPart::Failed { message, hint, code } => {
                self.part_is_over(member, PartTermination::Failed(message), code, hint);
            }
            // Between agents only.
            FromPart::Flows { .. } | FromPart::News { .. } | FromPart::Refused { .. } => {}
        }
    }

    /// A part says that another's machine is lost.
    fn lose(&mut self, host: &str, by: u16) {
        for (state, member) in self.members.iter_mut().zip(&self.setup.members) {
            if member.host == host {
                state.lost_to.insert(by);
            }
        }
    }

    /// Whether a member is on the smaller side of a cut network, of which each takes the other for
    /// lost.
    fn is_lost(&self, state: &PartState) -> bool {
        let votes = |member: &u16| self.members[usize::from(*member)].lost_to.len();
        state.lost_to.iter().map(votes).max().is_some_and(|most| state.lost_to.len() > most)
    }

    fn part_is_over(&mut self, member: u16, end: PartTermination, code: u8, hint: Option<String>) {
        if self.stage < ClusterRunStage::Running && self.error.as_ref().is_none_or(is_consequence) {
            let why = match &end {
                PartTermination::Ended => "its part is over before the run began".to_owned(),
                PartTermination::Failed(why) | PartTermination::Gone(why) => why.clone(),
                PartTermination::Silent => SILENT.to_owned(),
            };
            let host = self.setup.members[usize::from(member)].host.clone();
            let code = self.interrupted.map_or(code, code_of);
            self.error = Some(LeadError::Part { host, why, hint, code });
        }
        self.members[usize::from(member)].end = Some(end);
    }

    /// Stops what has begun, and waits a little for it.
    fn give_up(&mut self, error: LeadError) -> LeadError {
        let why = StopWhy::Failed(ANOTHER.to_owned());
        self.parts.order_all(&PartCommand::Stop { why });
        let until = Instant::now() + FAREWELL;
        while self.members.iter().any(|member| member.end.is_none()) && Instant::now() < until {
            self.step();
        }
        // The machine that has failed may report after one that it has failed by that.
        match self.error.take() {
            Some(cause) if is_consequence(&error) && !is_consequence(&cause) => cause,
            _ => error,
        }
    }
}

/// Whether a part has only failed because another had.
fn is_consequence(error: &LeadError) -> bool {
    matches!(error, LeadError::Part { why, .. } if why.contains(ANOTHER) || why.ends_with(" is lost"))
}

/// Why parts are stopped before the run begins.
const ANOTHER: &str = "another machine cannot do its part";

/// Signals that end a run, to be read. All threads that are to leave them alone start later.
pub(crate) fn signals() -> Result<SignalReader, LeadError> {
    SignalReader::open(&[Signal::INT, Signal::TERM, Signal::HUP]).map_err(|error| {
        LeadError::new(LeadErrorKind::Machine, format!("cannot take over signals: {error}"))
    })
}

fn code_of(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

/// Why there are no results of a machine that does not answer.
const SILENT: &str = "it is lost to the other machines";
/// How soon signals and requests are seen.
const PATIENCE: Duration = Duration::from_millis(20);
const FAREWELL: Duration = Duration::from_secs(5);
