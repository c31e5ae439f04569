//! Membership, by foca: the state of each agent, and how updates of it spread.
//!
//! foca neither sends nor waits: its requests are collected here, beside the timers of failure
//! detection, which is the mesh's own (`mesh/probes.rs`): foca would probe all agents
//! at one pace. The rest of the mesh adds a direct suspicion message (see
//! [`crate::config::SwimParameters::notice_period`]), comparison of whole lists, and the search for lost
//! agents.

pub(crate) mod codec;

use alloc::collections::BTreeMap;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;
use core::num::{NonZeroU8, NonZeroUsize};
use core::time::Duration;

use foca::{Foca, Member, NoCustomBroadcast, Notification, OwnedNotification, State, Timer};
use windtunnel_model::{Span, Time};

use crate::config::MeshConfiguration;
use crate::id::{AgentId, Identity};
use crate::rng::SeededRng;
use codec::Codec;

/// How many agents probe indirectly, and how many get an update at once.
pub(crate) const FAN_OUT: usize = 3;
/// Each agent gossips an update so often at the most.
const TELLINGS: u8 = 16;
/// How often updates are gossiped, as long as there are any.
const GOSSIP_PERIOD: Span = Span::from_millis(50);
/// How soon the first of them are gossiped after a silence: near updates share a message.
const GOSSIP_FIRST: Span = Span::from_millis(2);
/// How often something that is due is put off because this agent was not there.
const GRACES_MAX: u8 = 4;
/// For how long the dead are remembered.
pub(crate) const MEMORY: Duration = Duration::from_secs(3600);

/// The agents whose failure is to be detected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureDetectionScope {
    /// Of agents without a common run: slowly.
    Cluster,
    /// Of members of common runs.
    Run,
}

/// A timer of failure detection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureDetectionTimer {
    /// Ask the next one.
    Next(FailureDetectionScope),
    /// This probe should have been answered.
    Unanswered(FailureDetectionScope, u32),
    /// A suspected agent has had some time to object.
    Silent(Identity, u16),
}

/// foca, with its pending requests.
pub(crate) struct Swim {
    foca: Foca<Identity, Codec, SeededRng, NoCustomBroadcast>,
    settings: foca::Config,
    rng: SeededRng,
    timers: BTreeMap<(Time, u64), PendingSwimTimer>,
    timers_made: u64,
    /// foca's next gossip, which waits until there are updates.
    gossip: Option<Timer<Identity>>,
    /// When it last gossiped.
    gossiped: Option<Time>,
    actions: SwimActions,
}

/// A timer.
enum SwimTimer {
    /// A timer of foca.
    Foca(Timer<Identity>),
    Check(FailureDetectionTimer),
}

struct PendingSwimTimer {
    due: SwimTimer,
    /// How often it was put off beyond the time of a stall.
    graces: u8,
}

/// Actions requested by foca, in order.
#[derive(Debug, Default)]
pub(crate) struct SwimActions {
    pub(crate) send: Vec<(Identity, Vec<u8>)>,
    pub(crate) news: Vec<OwnedNotification<Identity>>,
    /// Checks whose time has come.
    pub(crate) checks: Vec<FailureDetectionTimer>,
    incarnation: u16,
}

impl foca::Identity for Identity {
    type Addr = AgentId;

    fn renew(&self) -> Option<Self> {
        Some(Identity { renewal: self.renewal.checked_add(1)?, ..*self })
    }

    fn addr(&self) -> AgentId {
        self.agent
    }

    fn win_addr_conflict(&self, adversary: &Self) -> bool {
        self.follows(adversary)
    }
}

impl Swim {
    pub(crate) fn new(config: &MeshConfiguration, envelope: usize, rng: SeededRng) -> Self {
        let identity = Identity {
            agent: config.agent,
            epoch: config.epoch,
            renewal: 0,
            address: config.address,
        };
        let room = config.mtu.saturating_sub(envelope).max(1);
        let settings = settings(config, room);
        Swim {
            foca: Foca::new(identity, settings.clone(), rng.fork("0"), Codec),
            settings,
            rng,
            timers: BTreeMap::new(),
            timers_made: 0,
            gossip: None,
            gossiped: None,
            actions: SwimActions::default(),
        }
    }

    pub(crate) fn identity(&self) -> Identity {
        *self.foca.identity()
    }

    /// The number by which this life has refuted suspicions.
    pub(crate) fn incarnation(&self) -> u16 {
        self.actions.incarnation
    }

    /// Whether an agent is suspected in this incarnation.
    pub(crate) fn suspects(&self, life: &Identity, incarnation: u16) -> bool {
        self.foca.iter_members().any(|member| {
            member.id() == life
                && member.state() == State::Suspect
                && member.incarnation() == incarnation
        })
    }

    /// The incarnation in which an agent is known.
    pub(crate) fn incarnation_of(&self, life: &Identity) -> u16 {
        let known = self.foca.iter_members().find(|member| member.id() == life);
        known.map_or(0, Member::incarnation)
    }

    /// Something is due `wait` from now.
    pub(crate) fn check_after(&mut self, now: Time, check: FailureDetectionTimer, wait: Span) {
        self.timers_made += 1;
        let due = now + wait.max(Span::from_nanos(1));
        let waiting = PendingSwimTimer { due: SwimTimer::Check(check), graces: 0 };
        self.timers.insert((due, self.timers_made), waiting);
    }

    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.timers.first_key_value().map(|((at, _), _)| *at)
    }

    /// Handles one due timer. Returns whether there was one.
    pub(crate) fn handle_timeout(&mut self, now: Time) -> bool {
        let due = self.timers.first_entry().filter(|first| first.key().0 <= now);
        match due.map(|due| due.remove().due) {
            // An error means that the timer is about something that is over.
            Some(SwimTimer::Foca(timer)) => {
                if matches!(timer, Timer::PeriodicGossip(_)) {
                    self.gossiped = Some(now);
                }
                let _over = self.with(now, |foca, actions| foca.handle_timer(timer, actions));
            }
            Some(SwimTimer::Check(check)) => self.actions.checks.push(check),
            None => return false,
        }
        true
    }

    /// This agent did not run for a time that ends now: its timers are put off by as much. Timers
    /// that were due meanwhile are due `slack` from now, in which pending datagrams can be
    /// received; the number of times is bounded, so that an agent that is always late goes on.
    pub(crate) fn make_up_for(&mut self, late: Span, now: Time, slack: Span) {
        for ((at, number), mut waiting) in core::mem::take(&mut self.timers) {
            let mut due = at + late;
            if due < now + slack && waiting.graces < GRACES_MAX {
                waiting.graces += 1;
                due = now + slack;
            }
            self.timers.insert((due, number), waiting);
        }
    }

    /// Takes in a message of another agent's foca; false if it makes no sense.
    pub(crate) fn handle_data(&mut self, now: Time, data: &[u8]) -> bool {
        self.with(now, |foca, actions| foca.handle_data(data, actions)).is_ok()
    }

    /// Asks to be let in by an agent.
    pub(crate) fn announce(&mut self, now: Time, to: Identity) {
        let _cannot_fail = self.with(now, |foca, actions| foca.announce(to, actions));
    }

    /// Applies an agent's state, and gossips it.
    pub(crate) fn learn(&mut self, now: Time, life: Identity, incarnation: u16, state: State) {
        let member = core::iter::once(Member::new(life, incarnation, state));
        let _ = self.with(now, |foca, actions| foca.apply_many(member, true, actions));
        if life == self.identity() && state == State::Suspect {
            self.actions.incarnation = self.actions.incarnation.max(incarnation.saturating_add(1));
        }
    }

    /// Gossips at once.
    pub(crate) fn gossip(&mut self, now: Time) {
        let _ = self.with(now, |foca, actions| foca.gossip(actions));
    }

    /// Becomes a later life of the same agent.
    pub(crate) fn become_life(&mut self, now: Time, life: Identity) {
        self.actions.incarnation = 0;
        let _ = self.with(now, |foca, actions| foca.change_identity(life, actions));
    }

    /// Forgets which agents are down, and its updates about that: this agent was cut off from the
    /// others, so its findings about them meanwhile are wrong. `agents` are those that are there.
    pub(crate) fn forget_downs(&mut self, now: Time, agents: Vec<Identity>) {
        let rng = self.rng.fork(&self.identity().renewal.to_string());
        self.foca = Foca::new(self.identity(), self.settings.clone(), rng, Codec);
        self.timers.retain(|_, waiting| {
            matches!(waiting.due, SwimTimer::Check(FailureDetectionTimer::Next(_)))
        });
        self.gossip = None;
        self.actions.incarnation = 0;
        let members = agents.into_iter().map(Member::alive);
        let _ = self.with(now, |foca, actions| foca.apply_many(members, false, actions));
        self.gossip(now);
    }

    /// Announces that this agent leaves.
    pub(crate) fn leave(&mut self, now: Time) {
        let _ = self.with(now, |foca, actions| foca.leave_cluster(actions));
        self.timers.clear();
    }

    /// Takes the actions to perform.
    pub(crate) fn take_actions(&mut self) -> SwimActions {
        let incarnation = self.actions.incarnation;
        core::mem::replace(&mut self.actions, SwimActions { incarnation, ..SwimActions::default() })
    }

    pub(crate) fn has_actions(&self) -> bool {
        let SwimActions { send, news, checks, .. } = &self.actions;
        !(send.is_empty() && news.is_empty() && checks.is_empty())
    }

    fn with<R>(
        &mut self,
        now: Time,
        act: impl FnOnce(&mut Foca<Identity, Codec, SeededRng, NoCustomBroadcast>, Runtime<'_>) -> R,
    ) -> R {
        let Swim { foca, timers, timers_made, gossip, gossiped, actions, .. } = self;
        let done = act(foca, Runtime { now, timers, timers_made, gossip, actions });
        if let Some(timer) = gossip.take_if(|_| foca.updates_backlog() > 0) {
            *timers_made += 1;
            let waiting = PendingSwimTimer { due: SwimTimer::Foca(timer), graces: 0 };
            let soon = now + GOSSIP_FIRST;
            let due = gossiped.map_or(soon, |last| soon.max(last + GOSSIP_PERIOD));
            timers.insert((due, *timers_made), waiting);
        }
        done
    }
}

impl fmt::Debug for Swim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Swim").field("identity", self.foca.identity()).finish_non_exhaustive()
    }
}

/// Where foca's actions go.
struct Runtime<'a> {
    now: Time,
    timers: &'a mut BTreeMap<(Time, u64), PendingSwimTimer>,
    timers_made: &'a mut u64,
    gossip: &'a mut Option<Timer<Identity>>,
    actions: &'a mut SwimActions,
}

impl foca::Runtime<Identity> for Runtime<'_> {
    fn notify(&mut self, notification: Notification<'_, Identity>) {
        if matches!(notification, Notification::Rejoin(_)) {
            self.actions.incarnation = 0;
        }
        self.actions.news.push(notification.to_owned());
    }

    fn send_to(&mut self, to: Identity, data: &[u8]) {
        if let Some(incarnation) = codec::own_incarnation(data) {
            self.actions.incarnation = incarnation;
        }
        self.actions.send.push((to, data.to_vec()));
    }

    fn submit_after(&mut self, event: Timer<Identity>, after: Duration) {
        match event {
            // The mesh probes.
            Timer::ProbeRandomMember(_) => return,
            Timer::PeriodicGossip(_) => {
                *self.gossip = Some(event);
                return;
            }
            _ => {}
        }
        *self.timers_made += 1;
        // At least a nanosecond later, so that handling the timers due now terminates.
        let after = Span::from(after).max(Span::from_nanos(1));
        let waiting = PendingSwimTimer { due: SwimTimer::Foca(event), graces: 0 };
        self.timers.insert((self.now + after, *self.timers_made), waiting);
    }
}

fn settings(config: &MeshConfiguration, room: usize) -> foca::Config {
    let several = NonZeroUsize::new(FAN_OUT).unwrap_or(NonZeroUsize::MIN);
    foca::Config {
        // foca does not probe.
        probe_period: config.detection.probe_period.into(),
        probe_rtt: config.detection.probe_wait.into(),
        num_indirect_probes: several,
        max_transmissions: NonZeroU8::new(TELLINGS).unwrap_or(NonZeroU8::MIN),
        suspect_to_down_after: config.detection.suspicion.into(),
        remove_down_after: Some(MEMORY),
        max_packet_size: NonZeroUsize::new(room).unwrap_or(NonZeroUsize::MIN),
        // foca 2.0 informs a member that it is down also when it has refuted that in time; the mesh
        // does it instead.
        notify_down_members: false,
        // Whole lists are compared, and lost agents searched for, by the mesh itself.
        periodic_announce: None,
        periodic_announce_to_down_members: None,
        periodic_gossip: Some(foca::PeriodicParams {
            frequency: GOSSIP_PERIOD.into(),
            num_members: several,
        }),
    }
}
