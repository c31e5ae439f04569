//! Leads the parts of a run through their stages: nothing begins anywhere before it can begin
//! everywhere. Once it has begun, the parts go on without us.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use windtunnel_cluster::Parts;
use windtunnel_cluster::parts::Heard;
use windtunnel_cluster::protocol::run::{Order, RunSetup};
use windtunnel_control::part::{FromPart, StopWhy};
use windtunnel_host::{Folder, Observer, gather};
use windtunnel_sys::process::Signal;
use windtunnel_sys::signal::Reader;

use crate::error::{Kind, LeadError};
use crate::notices::Notices;
use crate::overdue::Overdue;
use crate::progress::Progress;
use crate::proxy::Proxy;

/// All parts, and how far they are.
pub(crate) struct Conductor {
    setup: RunSetup,
    parts: Parts,
    notices: Notices,
    signals: Reader,
    /// By member.
    members: Vec<State>,
    stage: Stage,
    /// When that began, or a part was last seen to get on with it.
    progress: Instant,
    /// Why the run was stopped before it began.
    error: Option<LeadError>,
    interrupted: Option<i32>,
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Parts open their sockets.
    Binding,
    /// Parts make their nodes.
    Preparing,
    /// Parts look for each other.
    Reaching,
    /// Parts measure paths.
    Measuring,
    Running,
}

/// What is known of a part.
#[derive(Debug)]
struct State {
    port: Option<u16>,
    /// The last stage that it is through with.
    through: Option<Stage>,
    over: Option<Over>,
    /// Members that say that its machine is lost.
    lost_to: BTreeSet<u16>,
    /// Its agent's clock when something was last heard.
    clock: Option<(u64, Instant)>,
    /// The last known round trip to its agent.
    rtt: Duration,
    /// Members that it has not heard yet.
    unreached: Vec<u16>,
}

/// How a part is over.
#[derive(Debug)]
enum Over {
    /// Its results are there.
    Ended,
    /// There are none.
    Failed(String),
    /// Its agent is.
    Gone(String),
}

impl Conductor {
    pub(crate) fn new(
        setup: &RunSetup,
        parts: Parts,
        observer: Arc<dyn Observer>,
        stage: Stage,
        signals: Reader,
    ) -> Self {
        let state = || State {
            port: None,
            through: None,
            over: None,
            lost_to: BTreeSet::new(),
            clock: None,
            rtt: Duration::ZERO,
            unreached: Vec::new(),
        };
        Conductor {
            notices: Notices::new(setup, observer),
            members: setup.members.iter().map(|_| state()).collect(),
            setup: setup.clone(),
            parts,
            signals,
            stage,
            progress: Instant::now(),
            error: None,
            interrupted: None,
        }
    }

    /// Leads all parts to the beginning of the run.
    pub(crate) fn until_begun(&mut self) -> Result<(), LeadError> {
        while self.stage < Stage::Running {
            self.step();
            if let Some(error) = self.error.take() {
                return Err(self.give_up(error));
            }
            if self.members.iter().all(|member| member.through >= Some(self.stage)) {
                self.next_stage();
                self.progress = Instant::now();
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
        if self.progress.elapsed() < patience {
            return None;
        }
        let unreached = |state: &State| state.unreached.clone();
        let waiting = waiting.map(|(member, state)| (member, unreached(state))).collect();
        let ports = self.members.iter().map(|state| state.port.unwrap_or(0)).collect();
        let overdue = Overdue { stage: self.stage, patience, waiting, ports };
        Some(overdue.error(&self.setup.members))
    }

    /// Waits until every part knows that the run begins, and none needs us any more.
    pub(crate) fn until_all_know(&mut self) -> Result<(), LeadError> {
        let knows =
            |member: &State| member.through == Some(Stage::Running) || member.over.is_some();
        while !self.members.iter().all(knows) {
            self.step();
        }
        self.error.take().map_or(Ok(()), |error| Err(self.give_up(error)))
    }

    /// Watches the run to its end, and serves who asks in `folder`.
    pub(crate) fn until_over(&mut self, folder: &Folder) -> Result<(), LeadError> {
        let mut proxy = Proxy::open(folder, &self.setup).map_err(|error| {
            LeadError::new(Kind::Machine, format!("cannot open the control socket: {error}"))
        })?;
        while self.anybody_is_left() {
            self.step();
            let alive = |member: &State| member.over.is_none() && !self.is_lost(member);
            let alive: Vec<bool> = self.members.iter().map(alive).collect();
            proxy.serve(&self.parts, &alive);
        }
        for state in self.members.iter_mut().filter(|state| state.over.is_none()) {
            state.over = Some(Over::Gone("it is lost to the other machines".to_owned()));
        }
        Ok(())
    }

    /// A machine that is lost to another and is not heard here either is not waited for. (On both
    /// sides of a cut network all take the others for lost, and may still be heard.)
    fn anybody_is_left(&self) -> bool {
        let silent = |state: &State| state.clock.is_none_or(|(_, at)| at.elapsed() > SILENCE);
        let is_waited_for =
            |state: &State| state.over.is_none() && (state.lost_to.is_empty() || !silent(state));
        self.members.iter().any(is_waited_for)
    }

    /// Copies what the parts have written.
    pub(crate) fn fetch(&self, folder: &Folder) -> Result<gather::Parts, LeadError> {
        let mut members = Vec::new();
        for (number, (state, member)) in (0..).zip(self.members.iter().zip(&self.setup.members)) {
            let path = self.staging(folder).join(number.to_string());
            let path = match &state.over {
                Some(Over::Ended) if self.is_lost(state) => {
                    Err("the other machines went on without it".to_owned())
                }
                Some(Over::Ended) => {
                    self.parts.fetch(number, &path)?;
                    Ok(path)
                }
                Some(Over::Failed(why) | Over::Gone(why)) => Err(why.clone()),
                None => Err("its part is not over".to_owned()),
            };
            members.push((member.host.clone(), path));
        }
        Ok(gather::Parts { members, placement: self.setup.placement.clone() })
    }

    /// Nothing of the run is left at the agents, and nothing but the run folder here.
    pub(crate) fn forget(&self, folder: &Folder, progress: &dyn Progress) {
        for (number, state) in (0..).zip(&self.members) {
            if let Some(Over::Ended) = state.over
                && let Err(error) = self.parts.forget(number)
            {
                progress.warn(&error.to_string());
            }
        }
        let _ = fs::remove_dir_all(self.staging(folder));
    }

    fn staging(&self, folder: &Folder) -> PathBuf {
        folder.file(".parts")
    }

    /// Waits for something to happen, a little while at the most, and handles it.
    fn step(&mut self) {
        while let Ok(Some(received)) = self.signals.read() {
            self.interrupted = Some(received.signal);
            let why = StopWhy::Signal(received.signal);
            self.parts.order_all(&Order::Stop { why });
        }
        let mut patience = PATIENCE;
        while let Some((member, heard)) = self.parts.hear(patience) {
            self.handle(member, heard);
            patience = Duration::ZERO;
        }
    }

    fn handle(&mut self, member: u16, heard: Heard) {
        let index = usize::from(member);
        if let Heard::Said { said, .. } = &heard
            && !matches!(said, FromPart::Unreached { .. })
        {
            self.progress = Instant::now();
        }
        match heard {
            Heard::Said { now_ns, at, rtt, said } => {
                self.members[index].clock = Some((now_ns, at));
                self.members[index].rtt = rtt;
                self.said(member, said);
            }
            Heard::Refused(why) | Heard::Gone(why) if self.members[index].over.is_some() => {
                drop(why);
            }
            Heard::Refused(why) => {
                self.over(member, Over::Failed(why), Kind::Machine.exit_code(), None)
            }
            Heard::Gone(why) => self.over(member, Over::Gone(why), Kind::Machine.exit_code(), None),
        }
    }

    fn said(&mut self, member: u16, said: FromPart) {
        let state = &mut self.members[usize::from(member)];
        match said {
            FromPart::Bound { port } => {
                state.port = Some(port);
                state.through = Some(Stage::Binding);
            }
            FromPart::Unreached { members } => state.unreached = members,
            FromPart::Prepared => state.through = Some(Stage::Preparing),
            FromPart::Reached => state.through = Some(Stage::Reaching),
            FromPart::Measured => state.through = Some(Stage::Measuring),
            FromPart::Begun => state.through = Some(Stage::Running),
            FromPart::Notice { notice } => {
                if let Some(host) = self.notices.notice(member, &notice) {
                    self.lose(&host, member);
                }
            }
            FromPart::Ended => self.over(member, Over::Ended, 0, None),
            FromPart::Failed { message, hint, code } => {
                self.over(member, Over::Failed(message), code, hint);
            }
            // Between agents only.
            FromPart::Flows { .. } | FromPart::News { .. } => {}
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
    fn is_lost(&self, state: &State) -> bool {
        let votes = |member: &u16| self.members[usize::from(*member)].lost_to.len();
        state.lost_to.iter().map(votes).max().is_some_and(|most| state.lost_to.len() > most)
    }

    fn over(&mut self, member: u16, over: Over, code: u8, hint: Option<String>) {
        if self.stage < Stage::Running && self.error.is_none() {
            let why = match &over {
                Over::Ended => "its part is over before the run began",
                Over::Failed(why) | Over::Gone(why) => why.as_str(),
            };
            let (host, why) =
                (self.setup.members[usize::from(member)].host.clone(), why.to_owned());
            let code = self.interrupted.map_or(code, code_of);
            self.error = Some(LeadError::Part { host, why, hint, code });
        }
        self.members[usize::from(member)].over = Some(over);
    }

    /// All parts are through with a stage.
    fn next_stage(&mut self) {
        self.stage = match self.stage {
            Stage::Binding => {
                self.tell_addresses();
                Stage::Preparing
            }
            Stage::Preparing => Stage::Reaching,
            Stage::Reaching => {
                self.parts.order_all(&Order::Measure);
                Stage::Measuring
            }
            Stage::Measuring | Stage::Running => {
                self.begin();
                Stage::Running
            }
        };
    }

    fn tell_addresses(&self) {
        let address = |(member, state): (&windtunnel_cluster::protocol::run::Member, &State)| {
            state.port.map(|port| SocketAddr::new(member.address.ip(), port))
        };
        let all: Vec<Option<SocketAddr>> =
            self.setup.members.iter().zip(&self.members).map(address).collect();
        for member in 0..self.members.len() {
            let mut addresses = all.clone();
            addresses[member] = None;
            let number = u16::try_from(member).unwrap_or(u16::MAX);
            self.parts.order(number, Order::Peers { addresses });
        }
    }

    /// At the same time everywhere: a little later on the first machine's clock.
    fn begin(&self) {
        let Some((now_ns, at)) = self.members.first().and_then(|member| member.clock) else {
            return;
        };
        let rtts: Vec<Duration> = self.members.iter().map(|member| member.rtt).collect();
        let lead = u64::try_from((at.elapsed() + lead(&rtts)).as_nanos()).unwrap_or(u64::MAX);
        let agent = self.setup.members[0].agent.clone();
        self.parts.order_all(&Order::Begin { agent, at_ns: now_ns.saturating_add(lead) });
    }

    /// Stops what has begun, and waits a little for it.
    fn give_up(&mut self, error: LeadError) -> LeadError {
        let why = StopWhy::Failed("another machine cannot do its part".to_owned());
        self.parts.order_all(&Order::Stop { why });
        let until = Instant::now() + FAREWELL;
        while self.members.iter().any(|member| member.over.is_none()) && Instant::now() < until {
            self.step();
        }
        error
    }
}

/// How much later than the last word of the first machine (whose clock it was said by) a run can
/// begin. That word has taken up to a round trip to come, and the order takes up to one to each
/// machine, and some more if it is lost on the way and sent again.
fn lead(rtts: &[Duration]) -> Duration {
    let first = rtts.first().copied().unwrap_or_default();
    let longest = rtts.iter().copied().max().unwrap_or_default();
    LEAD + first + longest * 4
}

/// Signals that end a run, to be read. All threads that are to leave them alone start later.
pub(crate) fn signals() -> Result<Reader, LeadError> {
    Reader::open(&[Signal::INT, Signal::TERM, Signal::HUP]).map_err(|error| {
        LeadError::new(Kind::Machine, format!("cannot take over signals: {error}"))
    })
}

fn code_of(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

/// How soon signals and requests are seen.
const PATIENCE: Duration = Duration::from_millis(20);
/// The time in which every machine hears that the run begins, beside what the network takes.
const LEAD: Duration = Duration::from_millis(300);
/// Parts that live say something four times a second.
const SILENCE: Duration = Duration::from_secs(1);
const FAREWELL: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_begins_after_every_machine_has_heard_of_it_however_far_each_is() {
        let ms = Duration::from_millis;
        let rtts = [[500, 1, 1], [1, 500, 1], [500, 500, 500], [0, 0, 0], [2, 40, 900]];
        for rtts in rtts.map(|all| all.map(ms)) {
            // Shares of a round trip that the way there takes.
            for (up, there) in [(0, 100), (50, 50), (100, 100)] {
                let word_took = rtts[0] * up / 100;
                let arrives = rtts.map(|rtt| word_took + rtt * there / 100);
                let slowest = arrives.into_iter().max().unwrap();
                assert!(lead(&rtts) >= slowest + LEAD, "{rtts:?}");
            }
        }
        // A quiet network does not pay for a far one.
        assert_eq!(lead(&[ms(0), ms(0)]), LEAD);
    }
}
