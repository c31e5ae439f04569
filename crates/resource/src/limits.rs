//! Limits of nodes: the mechanism that holds each, and the account of what programs had.

mod change;
mod check;
mod disks;
mod enforce;
mod groups;
mod limited;
mod outside;
mod reservations;
mod rounds;
mod shares;

use std::path::Path;

use windtunnel_limit::{
    CgroupLimits, ControlGroup, LimitAccount, LimitHit, LimitMechanismChoice, LimiterReport,
    ResourceLimitOwner,
};
use windtunnel_model::demand::Demand;
use windtunnel_model::plan::Node;
use windtunnel_model::{Plan, ReservationId, Resource, ResourceUsage, Time};
use windtunnel_sys::limits;

use disks::DiskNeeds;
use groups::NodeGroups;
use limited::OwnerResourceLimits;
use rounds::{Rounds, TURN_MOST};
use shares::CpuShareAllocation;

use crate::admission::RunAdmission;
use crate::error::ResourceError;

/// The limited nodes and reservations of this machine.
#[derive(Debug, Default)]
pub struct MachineResourceLimits {
    nodes: Vec<OwnerResourceLimits>,
    /// The innermost first: their groups are removed after those of nodes, in this order.
    reservations: Vec<OwnerResourceLimits>,
    /// The group that all nodes of this machine's agent are in: after theirs are gone.
    around: Option<ControlGroup>,
    /// When the run began.
    origin_ns: u64,
    /// When all of these are looked at.
    looks: Rounds,
    /// Whether the run has ended.
    is_over: bool,
    /// Why that group did not hold them, the first reason.
    unheld_by_agent: Option<String>,
    notes: Vec<String>,
    /// Where processors are divided by weight.
    shares: Option<CpuShareAllocation>,
    disks: DiskNeeds,
    /// What is reserved for them.
    admitted: Option<RunAdmission>,
}

/// What is new of limits that a node's init holds itself.
#[derive(Debug, Default)]
pub struct NodeLimiterNews {
    /// Why its limit of processor time is not held.
    pub cpu_failure: Option<String>,
    /// Why another limit is not held.
    pub failure: Option<String>,
    /// What happened at limits.
    pub hits: Vec<(ResourceLimitOwner, LimitHit)>,
}

impl MachineResourceLimits {
    /// Makes what can only be made before the process has left the machine's namespaces.
    ///
    /// # Errors
    /// If what is reserved does not fit, or the machine has no mechanism for a limit.
    pub fn prepare(
        plan: &Plan,
        folder: &Path,
        here: Option<&[bool]>,
        group: Option<&str>,
    ) -> Result<MachineResourceLimits, ResourceError> {
        let is_here = |node: usize| here.is_none_or(|here| here.get(node) == Some(&true));
        let nodes: Vec<(usize, &Node)> =
            plan.nodes.iter().enumerate().filter(|(node, _)| is_here(*node)).collect();
        let (admitted, note) = RunAdmission::begin(plan, folder, here)?;
        let notes = note.into_iter().collect();
        let disks = DiskNeeds::of(plan);
        let mut made = MachineResourceLimits {
            admitted: Some(admitted),
            notes,
            disks,
            ..MachineResourceLimits::default()
        };
        let divided = made.disks.clone();
        let is_grouped = |(index, node): (usize, &Node)| {
            let grouped = is_limited(node) || node.reservation.is_some() || group.is_some();
            grouped || divided.has(index)
        };
        if !nodes.iter().any(|node| is_grouped(*node)) {
            return Ok(made);
        }
        let mut choice = match group {
            Some(address) => made.enter(address)?,
            None => LimitMechanismChoice::of_machine(),
        };
        reservations::check(&choice, plan, &is_here)?;
        refuse_lacking(&choice, &nodes)?;
        nodes.iter().try_for_each(|(index, node)| divided.check(&choice, *index, node))?;
        let processors = limits::cpus().map_or(1, |cpus| cpus.len());
        made.shares = CpuShareAllocation::of(plan, &nodes, processors);
        made.add_reservations(&mut choice, plan, &nodes)?;
        for (index, node) in nodes {
            let guarantee = made.share_of(ResourceLimitOwner::Node(index));
            if is_grouped((index, node)) || guarantee.is_some() {
                made.add(&mut choice, index, node, guarantee)?;
                let within = plan.reservations_from(node.reservation).map(ReservationId::index);
                let within: Vec<usize> = within.collect();
                made.nodes.last_mut().into_iter().for_each(|it| it.within.clone_from(&within));
            }
        }
        Ok(made)
    }

    /// Has all groups be made in the one that this machine's agent has made for all runs.
    fn enter(&mut self, address: &str) -> Result<LimitMechanismChoice, ResourceError> {
        let entered = LimitMechanismChoice::within(address).and_then(|mut choice| {
            let around = choice.group(None, &CgroupLimits::default())?;
            Ok((choice, around))
        });
        let (choice, around) = entered.map_err(|error| ResourceError::Limit {
            who: "the agent of this machine".to_owned(),
            key: "--max-cpu",
            why: error.to_string(),
        })?;
        self.around = Some(around);
        Ok(choice)
    }

    fn add(
        &mut self,
        choice: &mut LimitMechanismChoice,
        index: usize,
        node: &Node,
        guarantee: Option<u32>,
    ) -> Result<(), ResourceError> {
        let within = node.reservation.and_then(|it| self.reservation(it.index()));
        let within = within.and_then(|it| it.limits.groups()?.around()).or(self.around.as_ref());
        let groups = match NodeGroups::make(choice, index, node, within, guarantee, &self.disks) {
            Ok(groups) => Some(groups),
            // It would be outside of its reservation.
            Err(error) if within.is_some() => {
                let (who, why) = (format!("node {}", node.name), error.to_string());
                return Err(ResourceError::Limit { who, key: "reserve", why });
            }
            Err(error) => {
                let name = &node.name;
                let note = format!("node {name} has no control group, but other limits: {error}");
                self.notes.push(note);
                None
            }
        };
        self.nodes.push(OwnerResourceLimits::of_node(index, node, groups));
        Ok(())
    }

    /// What could not be done as it should.
    pub fn take_notes(&mut self) -> Vec<String> {
        let unheld = self.unheld_by_agent.take().map(|why| {
            format!(
                "what this machine's agent allows (--max-cpu, --max-memory) was not held: {why}"
            )
        });
        std::mem::take(&mut self.notes).into_iter().chain(unheld).collect()
    }

    /// The run begins: what was used before does not count.
    pub fn begin(&mut self, origin: Time) {
        self.origin_ns = origin.as_nanos();
        self.looks = Rounds::beginning(origin.as_nanos());
        self.all().for_each(|limited| limited.limits.begin(origin.as_nanos()));
    }

    /// When the next window of a group is complete, or the next groups are to be looked at, by the
    /// monotonic clock.
    pub fn next_wake(&self) -> Option<Time> {
        let all = || self.nodes.iter().chain(&self.reservations);
        let due = all().filter_map(|limited| limited.limits.due_ns());
        let looks =
            all().any(OwnerResourceLimits::is_looked_at).then(|| self.looks.due_ns(self.count()));
        due.chain(looks.flatten()).min().map(Time::from_nanos)
    }

    /// The run has ended: programs that are being stopped hold no limit, and break none. What they did
    /// until now counts.
    pub fn end(&mut self, now: Time, pid: impl Fn(usize) -> Option<u32>) {
        self.check(pid);
        self.all().for_each(|limited| limited.limits.end(now.as_nanos()));
        self.is_over = true;
    }

    /// Reads groups whose windows are complete, and looks at some others, whether they hold what they
    /// are to hold; `pid` is a node's init. What is due beyond a few waits for the next turn. Returns
    /// what happened at limits.
    pub fn sample(
        &mut self,
        now: Time,
        pid: impl Fn(usize) -> Option<u32>,
    ) -> Vec<(ResourceLimitOwner, LimitHit)> {
        let now_ns = now.as_nanos();
        let is_due = |it: &&mut OwnerResourceLimits| {
            it.limits.due_ns().is_some_and(|due_ns| due_ns <= now_ns)
        };
        let complete = self.all().filter(is_due);
        complete.take(TURN_MOST).for_each(|limited| limited.limits.meter(now_ns));
        let at_ns = now_ns.saturating_sub(self.origin_ns);
        let due = self.looks.due(now_ns, self.count());
        let mut reached = Vec::new();
        for position in due {
            self.check_one(position, &pid);
            let Some(limited) = self.all().nth(position) else { break };
            reached.extend(limited.look());
            limited.limits.write_down(at_ns);
        }
        reached
    }

    /// Takes what a node's init says of limits that it holds itself. Once the run has ended, what was not
    /// held counts no more.
    pub fn take_report(&mut self, node: usize, report: LimiterReport) -> NodeLimiterNews {
        let LimiterReport { windows, cpu_failure, mut used } = report;
        let (owner, is_over) = (ResourceLimitOwner::Node(node), self.is_over);
        let Some(limited) = self.nodes.iter_mut().find(|limited| limited.owner == owner) else {
            return NodeLimiterNews::default();
        };
        let cpu_failure = cpu_failure.filter(|_| !is_over);
        limited.limits.take_windows(windows, cpu_failure.clone());
        let Some(used) = &mut used else {
            return NodeLimiterNews { cpu_failure, ..NodeLimiterNews::default() };
        };
        used.failure.take_if(|_| is_over);
        let mut limits = limited.limits.limits().iter();
        let is_new =
            limits.all(|limit| limit.resource == Resource::Cpu || limit.held.failure.is_none());
        let hits = limited.limits.take_used(used, true).into_iter();
        let hits = hits.map(|hit| (owner, hit)).collect();
        NodeLimiterNews { cpu_failure, failure: used.failure.take().filter(|_| is_new), hits }
    }

    /// Whether a program that was killed just now may have been by a limit: what its node's groups
    /// say. Named is that program.
    pub fn killed(&mut self, node: usize, program: usize) -> Vec<(ResourceLimitOwner, LimitHit)> {
        if self.is_over {
            return Vec::new();
        }
        let own = ResourceLimitOwner::Node(node);
        let limited = self.nodes.iter_mut().filter(|limited| limited.owner == own);
        let limited = limited.chain(&mut self.reservations);
        let mut reached: Vec<_> = limited.flat_map(OwnerResourceLimits::look).collect();
        for (owner, hit) in &mut reached {
            if *owner == own && hit.program.is_none() && hit.ended > 0 {
                hit.program = Some(program);
            }
        }
        reached
    }

    /// What limits each limited node now, and what it uses of that.
    pub fn statuses(&self) -> impl Iterator<Item = (usize, ResourceUsage)> + '_ {
        let nodes = self.nodes.iter();
        nodes.filter_map(|limited| Some((limited.owner.node()?, limited.limits.usage())))
    }

    /// What one has of processors when all want as much as they can get.
    fn share_of(&self, owner: ResourceLimitOwner) -> Option<u32> {
        self.shares.as_ref()?.of_owner(owner)
    }

    fn count(&self) -> usize {
        self.nodes.len() + self.reservations.len()
    }

    fn all(&mut self) -> impl Iterator<Item = &mut OwnerResourceLimits> {
        self.nodes.iter_mut().chain(&mut self.reservations)
    }

    /// What came of all limits: of those of processor time, and of the others. Groups go away, as the
    /// nodes have.
    pub fn into_accounts(self) -> (Vec<LimitAccount>, Vec<LimitAccount>) {
        // Groups of nodes go before those around them.
        let all = self.nodes.into_iter().chain(self.reservations);
        let accounts = all.flat_map(|limited| limited.into_accounts(self.origin_ns));
        accounts.partition(|account| account.resource == Resource::Cpu)
    }
}

fn is_limited(node: &Node) -> bool {
    !node.demand.is_unknown() || node.programs.iter().any(|program| !program.demand.is_unknown())
}

/// Refuses what no mechanism of this machine can hold.
fn refuse_lacking(
    choice: &LimitMechanismChoice,
    nodes: &[(usize, &Node)],
) -> Result<(), ResourceError> {
    let refuse = |who, key, resource| lacking(choice, who, key, resource);
    for (_, node) in nodes {
        if node.demand.is_weighted() && choice.group_of(Resource::Cpu).is_none() {
            let key = if node.demand.cpu_min_millis.is_some() { "cpu: min" } else { "cpu: weight" };
            return refuse(format!("node {}", node.name), key, Resource::Cpu);
        }
        for (index, program) in node.programs.iter().enumerate() {
            if let Some(resource) = ungrouped(choice, &program.demand) {
                let who = format!("program {index} of node {}", node.name);
                return refuse(who, resource.key(), resource);
            }
        }
    }
    Ok(())
}

/// The first resource that is asked for, disks apart, and that no group can limit here.
fn ungrouped(choice: &LimitMechanismChoice, demand: &Demand) -> Option<Resource> {
    let limits = demand.limits();
    let is_asked = |resource: &Resource| {
        limits.of(*resource).is_some() || *resource == Resource::Cpu && demand.is_weighted()
    };
    let mut asked = [Resource::Cpu, Resource::Memory, Resource::Pids].into_iter().filter(is_asked);
    asked.find(|resource| choice.group_of(*resource).is_none())
}

/// There is no group for a limit.
fn lacking(
    choice: &LimitMechanismChoice,
    who: String,
    key: &'static str,
    resource: Resource,
) -> Result<(), ResourceError> {
    let why = choice.refusals_of(resource).join("; ");
    Err(ResourceError::Limit { who, key, why })
}
