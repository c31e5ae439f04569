//! Changing the limits of a node while it runs.

use windtunnel_budget::processor::Meter;
use windtunnel_limit::choice::without_group;
use windtunnel_limit::{Bounds, Group, Mechanism, Resource};
use windtunnel_model::NodeId;
use windtunnel_node::Request;

use super::Limits;
use super::account::Account;
use super::bound::{Bound, Kind};
use super::limited::{Limited, Metered, resource_of};

/// A new limit of all programs of a node together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// Thousandths of a processor.
    Processor(u32),
    /// Bytes.
    Memory(u64),
    /// Processes and threads.
    Pids(u32),
}

impl Limits {
    /// Gives a node another limit, or its first. Where its init has to hold it, `order` has it do
    /// that.
    pub(crate) fn set(
        &mut self,
        node: NodeId,
        change: Change,
        order: impl FnOnce(&Request) -> Result<(), String>,
    ) -> Result<(), String> {
        if self.of(node.index()).is_none() {
            let (processors, bounds) = (Vec::new(), Vec::new());
            self.nodes.push(Limited { node, groups: None, processors, bounds });
        }
        let origin_ns = self.origin_ns;
        let limited = self.of(node.index()).ok_or("no such node")?;
        match change {
            Change::Processor(share) => limited.set_processor(share, origin_ns, order),
            Change::Memory(bytes) => limited.set_bound((Kind::Memory, bytes), order),
            Change::Pids(count) => limited.set_bound((Kind::Pids, u64::from(count)), order),
        }
    }
}

impl Limited {
    fn set_processor(
        &mut self,
        share: u32,
        origin_ns: u64,
        order: impl FnOnce(&Request) -> Result<(), String>,
    ) -> Result<(), String> {
        let version = self.groups.as_ref().and_then(|groups| groups.version);
        let group = self.group(None, Resource::Processor);
        let is_grouped = group.is_some();
        let mut reading = None;
        if let Some(group) = group {
            let bounds = Bounds { processor: Some(share), ..Bounds::default() };
            group.set(&bounds).map_err(|error| format!("its control group: {error}"))?;
            reading = group.read().and_then(Result::ok);
        } else {
            order(&Request::LimitProcessor { share })?;
        }
        let mut own = self.processors.iter_mut().filter(|it| it.account.program.is_none());
        if let Some(Metered { meter, account }) = own.next() {
            account.asked_millis = share;
            // A window has one share: the one under way is left out.
            *meter = reading.map(Meter::new);
            return Ok(());
        }
        let version = version.filter(|_| is_grouped);
        let mechanism = version.unwrap_or_else(|| without_group(Resource::Processor)).to_string();
        let account = Account { origin_ns, ..Account::new(self.node.index(), share, &mechanism) };
        self.processors.push(Metered { meter: reading.map(Meter::new), account });
        Ok(())
    }

    fn set_bound(
        &mut self,
        (kind, asked): (Kind, u64),
        order: impl FnOnce(&Request) -> Result<(), String>,
    ) -> Result<(), String> {
        let position = self.bounds.iter().position(|it| it.program.is_none() && it.kind == kind);
        let before = position.map(|position| self.bounds[position].asked);
        if let Some(bound) = position.map(|position| &self.bounds[position])
            && bound.mechanism == Mechanism::Namespace.to_string()
            && asked > bound.asked
        {
            return Err("without control groups, `pids` can only become less".to_owned());
        }
        let position = position.unwrap_or_else(|| {
            let mut bound = Bound::new(self.node.index(), None, (kind, asked));
            // Not even for processes: programs that run already are in no namespace of their own.
            bound.mechanism = Mechanism::Watch.to_string();
            self.bounds.push(bound);
            self.bounds.len() - 1
        });
        self.bounds[position].asked = asked;
        let group = resource_of(kind).and_then(|resource| self.group(None, resource));
        let done = match (group, kind) {
            (Some(group), kind) => set_group(group, (kind, asked)),
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

fn set_group(group: &mut Group, (kind, asked): (Kind, u64)) -> Result<(), String> {
    let bounds = match kind {
        Kind::Memory => Bounds { memory: Some(asked), ..Bounds::default() },
        _ => Bounds {
            processes: Some(u32::try_from(asked).unwrap_or(u32::MAX)),
            ..Bounds::default()
        },
    };
    let hint = |error: &std::io::Error| match error.kind() {
        std::io::ErrorKind::ResourceBusy => " (more than that is in use)",
        _ => "",
    };
    group.set(&bounds).map_err(|error| format!("its control group: {error}{}", hint(&error)))
}
