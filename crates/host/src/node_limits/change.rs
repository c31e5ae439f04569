//! Changing the limits of a node while it runs.

use windtunnel_budget::admission::{self, ResourceAmounts};
use windtunnel_budget::processor::CpuUsageMeter;
use windtunnel_limit::choice::without_group;
use windtunnel_limit::group::DiskBounds;
use windtunnel_limit::{CgroupLimits, CgroupResource, ControlGroup, Mechanism};
use windtunnel_model::Rate;
use windtunnel_model::demand::Demand;
use windtunnel_model::quantity::Bytes;
use windtunnel_node::NodeInitRequest;
use windtunnel_verdict::evidence::{
    CpuUsageAccount, ResourceLimit, ResourceLimitKind, ResourceLimitOwner,
};

use super::MachineResourceLimits;
use super::limited::{MeteredCpuLimit, OwnerResourceLimits, resource_of};

/// A new limit of all programs of a node together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeLimitChange {
    /// Thousandths of a processor.
    Processor(u32),
    /// Bytes.
    Memory(u64),
    /// Processes and threads.
    Pids(u32),
    /// Bytes a second of each disk, in each direction.
    Disk(u64),
}

impl NodeLimitChange {
    /// A demand of nothing else.
    pub(crate) fn demand(self) -> Demand {
        let nothing = Demand::default();
        match self {
            NodeLimitChange::Processor(share) => Demand { cpu_millis: Some(share), ..nothing },
            NodeLimitChange::Memory(bytes) => Demand { memory: Some(Bytes(bytes)), ..nothing },
            NodeLimitChange::Pids(count) => Demand { pids: Some(count), ..nothing },
            NodeLimitChange::Disk(bytes) => {
                let disk = Rate::from_bits_per_second(bytes.saturating_mul(8));
                Demand { disk, ..nothing }
            }
        }
    }

    /// All that a demand asks of a node.
    pub(crate) fn all_of(limits: &Demand) -> Vec<NodeLimitChange> {
        let cpu = limits.cpu_millis.map(NodeLimitChange::Processor);
        let memory = limits.memory.map(|memory| NodeLimitChange::Memory(memory.0));
        let disk = limits.disk_bytes().map(NodeLimitChange::Disk);
        [cpu, memory, limits.pids.map(NodeLimitChange::Pids), disk].into_iter().flatten().collect()
    }
}

impl MachineResourceLimits {
    /// Gives a node or reservation another limit, or its first. Where a node's init has to hold it,
    /// `order` has it do that.
    pub(crate) fn set(
        &mut self,
        owner: ResourceLimitOwner,
        change: NodeLimitChange,
        order: impl FnOnce(&NodeInitRequest) -> Result<(), String>,
    ) -> Result<(), String> {
        let (had, limit) = self.reserve(owner, change, false)?;
        let done = self.apply(owner, change, order);
        if done.is_err()
            && let Some(admitted) = &mut self.admitted
        {
            // It is less than what was just admitted, or was admitted before.
            let _ = admitted.change(owner, had, limit);
        }
        done
    }

    /// The same for an event, which has no one to refuse it to: a limit that could not be set fails.
    /// What is reserved never becomes less, as a later event may need it again.
    pub(crate) fn set_by_event(
        &mut self,
        owner: ResourceLimitOwner,
        change: NodeLimitChange,
        order: impl FnOnce(&NodeInitRequest) -> Result<(), String>,
    ) -> Result<(), String> {
        let done = self.reserve(owner, change, true);
        let done = done.and_then(|_| self.apply(owner, change, order));
        if let Err(why) = &done {
            self.fail(owner, change, why);
        }
        done
    }

    /// An event could not set it: the limit of before still holds.
    fn fail(&mut self, owner: ResourceLimitOwner, change: NodeLimitChange, why: &str) {
        let why = format!("an event could not change it: {why}");
        let origin_ns = self.origin_ns;
        let Some(limited) = self.limited(owner) else { return };
        let (kind, asked) = match change {
            NodeLimitChange::Processor(share) => {
                if limited.processor().is_none() {
                    let account =
                        CpuUsageAccount { origin_ns, ..CpuUsageAccount::new(owner, share, "none") };
                    limited.processors.push(MeteredCpuLimit { meter: None, account });
                }
                return limited.processor().into_iter().for_each(|it| it.fail(why.clone()));
            }
            NodeLimitChange::Memory(bytes) => (ResourceLimitKind::Memory, bytes),
            NodeLimitChange::Pids(count) => (ResourceLimitKind::Pids, u64::from(count)),
            NodeLimitChange::Disk(bytes) => (ResourceLimitKind::Disk, bytes),
        };
        let is_own = |it: &&mut ResourceLimit| it.owner.program().is_none() && it.kind == kind;
        if let Some(bound) = limited.bounds.iter_mut().find(is_own) {
            return bound.fail(why);
        }
        let mut bound = ResourceLimit::new(owner, kind, asked);
        "none".clone_into(&mut bound.mechanism);
        bound.fail(why);
        limited.bounds.push(bound);
    }

    /// The account of a node, begun if it had no limits; that of a reservation, if it is here.
    fn limited(&mut self, owner: ResourceLimitOwner) -> Option<&mut OwnerResourceLimits> {
        let is_known = self.nodes.iter().any(|limited| limited.owner == owner);
        if !is_known && matches!(owner, ResourceLimitOwner::Node(_)) {
            self.nodes.push(OwnerResourceLimits::new(owner, &Demand::default(), None));
        }
        self.all().find(|limited| limited.owner == owner)
    }

    /// Reserves what follows from a new limit, and no less than before if it is to `keep` that.
    /// Returns what was reserved before.
    fn reserve(
        &mut self,
        owner: ResourceLimitOwner,
        change: NodeLimitChange,
        keep: bool,
    ) -> Result<(ResourceAmounts, Option<(admission::ReservableResource, Option<u64>)>), String>
    {
        let (mut cpu, mut memory) = (None, None);
        if let Some(limited) = self.all().find(|limited| limited.owner == owner) {
            cpu = limited.processor().map(|own| u64::from(own.asked_millis));
            let mut bounds = limited.bounds.iter();
            let bound = bounds
                .find(|it| it.owner.program().is_none() && it.kind == ResourceLimitKind::Memory);
            memory = bound.map(|bound| bound.asked);
        }
        let Some(admitted) = &mut self.admitted else {
            return Ok((ResourceAmounts::default(), None));
        };
        let had = admitted.of(owner);
        let least = if keep { had } else { ResourceAmounts::default() };
        let (wanted, resource, limit, before) = match change {
            NodeLimitChange::Processor(share) => {
                let share = u64::from(share);
                let cpu_millis = reserved(had.cpu_millis, cpu, share).max(least.cpu_millis);
                (
                    ResourceAmounts { cpu_millis, ..had },
                    admission::ReservableResource::Processor,
                    share,
                    cpu,
                )
            }
            NodeLimitChange::Memory(bytes) => {
                let memory_bytes = reserved(had.memory_bytes, memory, bytes);
                let memory_bytes = memory_bytes.max(least.memory_bytes);
                (
                    ResourceAmounts { memory_bytes, ..had },
                    admission::ReservableResource::Memory,
                    bytes,
                    memory,
                )
            }
            NodeLimitChange::Pids(_) | NodeLimitChange::Disk(_) => return Ok((had, None)),
        };
        admitted.change(owner, wanted, Some((resource, Some(limit))))?;
        Ok((had, Some((resource, before))))
    }

    fn apply(
        &mut self,
        owner: ResourceLimitOwner,
        change: NodeLimitChange,
        order: impl FnOnce(&NodeInitRequest) -> Result<(), String>,
    ) -> Result<(), String> {
        let origin_ns = self.origin_ns;
        let limited = self.limited(owner).ok_or("it is on another machine")?;
        match change {
            NodeLimitChange::Processor(share) => limited.set_processor(share, origin_ns, order),
            NodeLimitChange::Memory(bytes) => {
                limited.set_bound(ResourceLimitKind::Memory, bytes, order)
            }
            NodeLimitChange::Pids(count) => {
                limited.set_bound(ResourceLimitKind::Pids, u64::from(count), order)
            }
            NodeLimitChange::Disk(bytes) => limited.set_disk(bytes),
        }?;
        let min = self.admitted.as_ref().map(|admitted| admitted.of(owner).cpu_millis);
        if let (NodeLimitChange::Processor(share), Some(shares), Some(min)) =
            (change, &mut self.shares, min)
        {
            shares.change(owner, |part| {
                (part.limit, part.min) = (Some(u64::from(share)), min);
            });
            self.weigh()?;
        }
        Ok(())
    }

    /// Changes what a node or reservation has of processors that are divided by weight.
    pub(crate) fn set_share(
        &mut self,
        owner: ResourceLimitOwner,
        min: Option<u32>,
        weight: Option<u32>,
    ) -> Result<(), String> {
        if self.shares.is_none() {
            return Err("processors are not divided by weight: no `min` or `weight` in the file \
                        says so"
                .to_owned());
        }
        if let (Some(min), Some(admitted)) = (min, &mut self.admitted) {
            let wanted = ResourceAmounts { cpu_millis: u64::from(min), ..admitted.of(owner) };
            admitted.change(owner, wanted, None)?;
        }
        if let Some(shares) = &mut self.shares {
            shares.change(owner, |part| {
                part.min = min.map_or(part.min, u64::from);
                part.weight = weight.unwrap_or(part.weight);
            });
        }
        self.weigh()
    }

    /// Has all groups follow the shares.
    fn weigh(&mut self) -> Result<(), String> {
        let Some(shares) = &self.shares else { return Ok(()) };
        for (owner, share) in shares.all() {
            let own = self.nodes.iter_mut().chain(&mut self.reservations);
            let Some(limited) = own.into_iter().find(|it| it.owner == owner) else { continue };
            let Some(group) = limited.group(None, CgroupResource::Processor) else { continue };
            let bounds = CgroupLimits { guarantee: Some(share), ..CgroupLimits::default() };
            group.set(&bounds).map_err(|error| format!("its control group: {error}"))?;
        }
        Ok(())
    }
}

impl OwnerResourceLimits {
    fn set_processor(
        &mut self,
        share: u32,
        origin_ns: u64,
        order: impl FnOnce(&NodeInitRequest) -> Result<(), String>,
    ) -> Result<(), String> {
        let version = self.groups.as_ref().and_then(|groups| groups.version);
        let group = self.group(None, CgroupResource::Processor);
        let is_grouped = group.is_some();
        let mut reading = None;
        if let Some(group) = group {
            let bounds = CgroupLimits { processor: Some(share), ..CgroupLimits::default() };
            group.set(&bounds).map_err(|error| format!("its control group: {error}"))?;
            reading = group.read().and_then(Result::ok);
        } else {
            order(&NodeInitRequest::LimitProcessor { share })?;
        }
        let mut own = self.processors.iter_mut().filter(|it| it.account.owner.program().is_none());
        if let Some(MeteredCpuLimit { meter, account }) = own.next() {
            account.asked_millis = share;
            // A window has one share: the one under way is left out.
            *meter = reading.map(CpuUsageMeter::new);
            return Ok(());
        }
        let version = version.filter(|_| is_grouped);
        let mechanism =
            version.unwrap_or_else(|| without_group(CgroupResource::Processor)).to_string();
        let account =
            CpuUsageAccount { origin_ns, ..CpuUsageAccount::new(self.owner, share, &mechanism) };
        self.processors.push(MeteredCpuLimit { meter: reading.map(CpuUsageMeter::new), account });
        Ok(())
    }

    /// Only a group holds that, and it was made with the run.
    fn set_disk(&mut self, asked: u64) -> Result<(), String> {
        self.look_at_disks();
        let Some(group) = self.group(None, CgroupResource::Disk) else {
            return Err(
                "no control group limits its disks: nothing in the file asks for that".to_owned()
            );
        };
        set_group(group, ResourceLimitKind::Disk, asked)?;
        let is_own =
            |it: &ResourceLimit| it.owner.program().is_none() && it.kind == ResourceLimitKind::Disk;
        let position = self.bounds.iter().position(is_own).unwrap_or_else(|| {
            let mut bound = ResourceLimit::new(self.owner, ResourceLimitKind::Disk, asked);
            bound.mechanism = Mechanism::GroupV2.to_string();
            self.bounds.push(bound);
            self.bounds.len() - 1
        });
        self.bounds[position].set_rate(asked);
        // The first look at a limit that is new.
        self.look_at_disks();
        Ok(())
    }

    fn set_bound(
        &mut self,
        kind: ResourceLimitKind,
        asked: u64,
        order: impl FnOnce(&NodeInitRequest) -> Result<(), String>,
    ) -> Result<(), String> {
        let position =
            self.bounds.iter().position(|it| it.owner.program().is_none() && it.kind == kind);
        let before = position.map(|position| self.bounds[position].asked);
        if let Some(bound) = position.map(|position| &self.bounds[position])
            && bound.mechanism == Mechanism::Namespace.to_string()
            && asked > bound.asked
        {
            return Err("without control groups, `pids` can only become less".to_owned());
        }
        let position = position.unwrap_or_else(|| {
            let mut bound = ResourceLimit::new(self.owner, kind, asked);
            // Not even for processes: programs that run already are in no namespace of their own.
            bound.mechanism = Mechanism::Watch.to_string();
            self.bounds.push(bound);
            self.bounds.len() - 1
        });
        self.bounds[position].asked = asked;
        let group = resource_of(kind).and_then(|resource| self.group(None, resource));
        let done = match (group, kind) {
            (Some(group), kind) => set_group(group, kind, asked),
            (None, _) => self.watch().map_or(Ok(()), |request| order(&request)),
        };
        if done.is_err() {
            match before {
                Some(before) => self.bounds[position].asked = before,
                None => drop(self.bounds.remove(position)),
            }
        }
        done
    }
}

/// What is reserved after a limit has become `wanted`, which was `limit`: all of it where all was, or
/// nothing was limited. Where only a part was, or nothing, that stays.
fn reserved(had: u64, limit: Option<u64>, wanted: u64) -> u64 {
    if limit.is_none_or(|limit| limit == had) { wanted } else { had.min(wanted) }
}

fn set_group(group: &mut ControlGroup, kind: ResourceLimitKind, asked: u64) -> Result<(), String> {
    let bounds = match kind {
        ResourceLimitKind::Memory => {
            CgroupLimits { memory: Some(asked), ..CgroupLimits::default() }
        }
        ResourceLimitKind::Disk => {
            let disk = Some(DiskBounds { rate: Some(asked), weight: None });
            CgroupLimits { disk, ..CgroupLimits::default() }
        }
        _ => CgroupLimits {
            processes: Some(u32::try_from(asked).unwrap_or(u32::MAX)),
            ..CgroupLimits::default()
        },
    };
    let hint = |error: &std::io::Error| match error.kind() {
        std::io::ErrorKind::ResourceBusy => " (more than that is in use)",
        _ => "",
    };
    group.set(&bounds).map_err(|error| format!("its control group: {error}{}", hint(&error)))
}

#[cfg(test)]
mod tests {
    use super::reserved;

    #[test]
    fn a_limit_that_was_reserved_stays_so_and_one_that_was_not_does_not_become_it() {
        assert_eq!(reserved(0, None, 300), 300, "the first limit");
        assert_eq!(reserved(250, Some(250), 300), 300);
        assert_eq!(reserved(0, Some(250), 300), 0, "only a limit");
        assert_eq!(reserved(100, Some(250), 300), 100, "a minimum below the limit");
        assert_eq!(reserved(100, Some(250), 50), 50);
    }
}
