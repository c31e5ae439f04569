//! Changing the limits of a node while it runs.

use windtunnel_limit::{CgroupLimits, ResourceLimitOwner};
use windtunnel_model::demand::Demand;
use windtunnel_model::{Resource, ResourceAmounts};

use super::MachineResourceLimits;
use super::limited::OwnerResourceLimits;

impl MachineResourceLimits {
    /// Gives a node or reservation another limit, or its first. Where a node's init has to hold it,
    /// `hold` has it do that: it gets all that the init is to hold.
    pub fn set(
        &mut self,
        owner: ResourceLimitOwner,
        resource: Resource,
        asked: u64,
        hold: impl FnOnce(&ResourceAmounts) -> Result<(), String>,
    ) -> Result<(), String> {
        let before = self.reserve(owner, resource, asked, false)?;
        let done = self.apply(owner, resource, asked, hold);
        if let (Err(_), Some((had, limit)), Some(admitted)) = (&done, before, &mut self.admitted) {
            // It is less than what was just admitted, or was admitted before.
            let _ = admitted.change(owner, had, Some((resource, limit)));
        }
        done
    }

    /// The same for an event, which has no one to refuse it to: a limit that could not be set fails.
    /// What is reserved never becomes less, as a later event may need it again.
    pub fn set_by_event(
        &mut self,
        owner: ResourceLimitOwner,
        resource: Resource,
        asked: u64,
        hold: impl FnOnce(&ResourceAmounts) -> Result<(), String>,
    ) -> Result<(), String> {
        let done = self.reserve(owner, resource, asked, true);
        let done = done.and_then(|_| self.apply(owner, resource, asked, hold));
        if let (Err(why), Some(limited)) = (&done, self.limited(owner)) {
            // The limit of before still holds.
            let why = format!("an event could not change it: {why}");
            limited.limits.fail_to_set(resource, asked, why);
        }
        done
    }

    /// The limits of a node, begun if it had none; those of a reservation, if it is here.
    fn limited(&mut self, owner: ResourceLimitOwner) -> Option<&mut OwnerResourceLimits> {
        let is_known = self.nodes.iter().any(|limited| limited.owner == owner);
        if !is_known && matches!(owner, ResourceLimitOwner::Node(_)) {
            let mut limited = OwnerResourceLimits::new(owner, &Demand::default(), [], None);
            if self.origin_ns > 0 {
                limited.limits.begin(self.origin_ns);
            }
            self.nodes.push(limited);
        }
        self.all().find(|limited| limited.owner == owner)
    }

    /// Reserves what follows from a new limit, and no less than before if it is to `keep` that.
    /// Returns what was reserved before, and the limit; `None`: nothing is reserved of that.
    fn reserve(
        &mut self,
        owner: ResourceLimitOwner,
        resource: Resource,
        asked: u64,
        keep: bool,
    ) -> Result<Option<(ResourceAmounts, Option<u64>)>, String> {
        let limited = self.all().find(|limited| limited.owner == owner);
        let limit = limited.and_then(|it| Some(it.limits.limit(resource)?.held.asked));
        let is_reserved = matches!(resource, Resource::Cpu | Resource::Memory);
        let Some(admitted) = self.admitted.as_mut().filter(|_| is_reserved) else {
            return Ok(None);
        };
        let all = admitted.of(owner);
        let had = all.of(resource).unwrap_or(0);
        let least = if keep { had } else { 0 };
        let wanted = all.with(resource, Some(reserved(had, limit, asked).max(least)));
        admitted.change(owner, wanted, Some((resource, Some(asked))))?;
        Ok(Some((all, limit)))
    }

    fn apply(
        &mut self,
        owner: ResourceLimitOwner,
        resource: Resource,
        asked: u64,
        hold: impl FnOnce(&ResourceAmounts) -> Result<(), String>,
    ) -> Result<(), String> {
        let limited = self.limited(owner).ok_or("it is on another machine")?;
        limited.limits.set(resource, asked, hold)?;
        let min = self.admitted.as_ref().map(|admitted| admitted.of(owner).cpu_millis);
        if let (Resource::Cpu, Some(shares), Some(min)) = (resource, &mut self.shares, min) {
            shares.change(owner, |part| (part.limit, part.min) = (Some(asked), min.unwrap_or(0)));
            self.weigh()?;
        }
        Ok(())
    }

    /// Changes what a node or reservation has of processors that are divided by weight.
    pub fn set_share(
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
            let wanted = admitted.of(owner).with(Resource::Cpu, Some(u64::from(min)));
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
            let Some(group) = limited.limits.group(Resource::Cpu) else { continue };
            let weight =
                CgroupLimits { cpu_guarantee_millis: Some(share), ..CgroupLimits::default() };
            group.set(&weight).map_err(|error| format!("its control group: {error}"))?;
        }
        Ok(())
    }
}

/// What is reserved after a limit has become `wanted`, which was `limit`: all of it where all was, or
/// nothing was limited. Where only a part was, or nothing, that stays.
fn reserved(had: u64, limit: Option<u64>, wanted: u64) -> u64 {
    if limit.is_none_or(|limit| limit == had) { wanted } else { had.min(wanted) }
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
