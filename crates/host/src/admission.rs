//! What a run reserves of its machine, admitted beside what this user's other runs have reserved.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use windtunnel_budget::admission::{self, Amounts, Holder, Shortfall};
use windtunnel_control::reservations::{self, HoldError, Holding, Reserved};
use windtunnel_model::demand::Demand;
use windtunnel_model::plan::Action;
use windtunnel_model::{NodeId, Plan};
use windtunnel_sys::limits;

use crate::error::RunError;

/// What a run has reserved, until its last process has ended.
#[derive(Debug)]
pub(crate) struct Admitted {
    capacity: Amounts,
    name: String,
    folder: PathBuf,
    /// Of each node that is here, by its position in the plan.
    nodes: Vec<Amounts>,
    /// Where something is reserved, and other runs can know of it.
    holding: Option<Holding>,
}

impl Admitted {
    /// Reserves what nodes ask that are `here`. Where other runs cannot know of it, because this user
    /// has no folder to say it in, that is returned, too.
    ///
    /// # Errors
    /// [`RunError::Admission`].
    pub(crate) fn begin(
        plan: &Plan,
        folder: &Path,
        here: Option<&[bool]>,
    ) -> Result<(Admitted, Option<String>), RunError> {
        let mut admitted = Admitted {
            capacity: capacity(),
            name: plan.name.clone(),
            folder: std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned()),
            nodes: of_nodes(plan, here),
            holding: None,
        };
        let asked = sum(&admitted.nodes);
        if asked.is_none() {
            return Ok((admitted, None));
        }
        match admitted.hold(asked) {
            Ok(()) => Ok((admitted, None)),
            Err(HoldError::Refused(lacking)) => Err(RunError::Admission(lacking)),
            Err(HoldError::Io(error)) => {
                let alone = admission::admit(admitted.capacity, &[], asked);
                alone.map_err(RunError::Admission)?;
                let note = format!("other runs do not know what this one has reserved: {error}");
                Ok((admitted, Some(note)))
            }
        }
    }

    /// Reserves something else for a node. What does not fit changes nothing, and is said.
    pub(crate) fn change(&mut self, node: usize, wanted: Amounts) -> Result<(), String> {
        let had = self.of(node);
        let asked = sum(&self.nodes).minus(had).plus(wanted);
        match self.hold(asked) {
            Ok(()) => {}
            Err(HoldError::Refused(lacking)) => return Err(crate::error::lacking(&lacking)),
            Err(HoldError::Io(_)) => {
                let alone = admission::admit(self.capacity, &[], asked);
                alone.map_err(|lacking| crate::error::lacking(&lacking))?;
            }
        }
        if let Some(had) = self.nodes.get_mut(node) {
            *had = wanted;
        }
        Ok(())
    }

    fn hold(&mut self, asked: Amounts) -> Result<(), HoldError<Vec<Shortfall>>> {
        let capacity = self.capacity;
        let admit = |others: &[Reserved]| admission::admit(capacity, &holders(others), asked);
        let (cpu_millis, memory_bytes) = (asked.cpu_millis, asked.memory_bytes);
        if let Some(holding) = &mut self.holding {
            return holding.change((cpu_millis, memory_bytes), admit);
        }
        let (name, folder) = (self.name.clone(), self.folder.clone());
        let wanted = Reserved { name, folder, cpu_millis, memory_bytes };
        self.holding = Some(Holding::begin(wanted, admit)?);
        Ok(())
    }

    /// What a node has reserved.
    pub(crate) fn of(&self, node: usize) -> Amounts {
        self.nodes.get(node).copied().unwrap_or_default()
    }
}

/// Whether what a plan reserves fits this machine now, beside what this user's runs have reserved.
///
/// # Errors
/// Each resource of which there is too little.
pub fn fits_reservations(plan: &Plan) -> Result<(), Vec<Shortfall>> {
    let asked = sum(&of_nodes(plan, None));
    admission::admit(capacity(), &holders(&reservations::live()), asked)
}

/// What this machine has that can be reserved: the processors that this process may use, and all
/// memory. What cannot be found out counts as nothing.
#[must_use]
pub fn capacity() -> Amounts {
    let cpus = limits::cpus().map_or(0, |cpus| cpus.len());
    Amounts {
        cpu_millis: u64::try_from(cpus).unwrap_or(0).saturating_mul(1000),
        memory_bytes: memory_bytes().unwrap_or(0),
    }
}

fn memory_bytes() -> io::Result<u64> {
    let text = fs::read_to_string("/proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok());
    let kilobytes: u64 = kilobytes.ok_or(io::ErrorKind::InvalidData)?;
    Ok(kilobytes.saturating_mul(1024))
}

fn of_nodes(plan: &Plan, here: Option<&[bool]>) -> Vec<Amounts> {
    let is_here = |node: usize| here.is_none_or(|here| here.get(node) == Some(&true));
    let nodes = plan.nodes.iter().enumerate().map(|(index, node)| {
        let cpu_millis = node.reserved_cpu_millis();
        let amounts = Amounts { cpu_millis, memory_bytes: node.reserved_memory() };
        if is_here(index) { amounts } else { Amounts::default() }
    });
    let mut nodes: Vec<Amounts> = nodes.collect();
    for (node, limits) in plan.events.iter().flat_map(|event| set_by(&event.action)) {
        if is_here(node.index()) {
            let most = &mut nodes[node.index()];
            let demand = &plan.nodes[node.index()].demand;
            // What only limits stays so.
            if demand.cpu_millis == demand.cpu_reserved_millis {
                let millis = limits.cpu_millis.map_or(0, u64::from);
                most.cpu_millis = most.cpu_millis.max(millis);
            }
            if demand.memory == demand.memory_reserved {
                let bytes = limits.memory.map_or(0, |memory| memory.0);
                most.memory_bytes = most.memory_bytes.max(bytes);
            }
        }
    }
    nodes
}

/// The nodes that an event limits.
fn set_by(action: &Action) -> impl Iterator<Item = (NodeId, Demand)> + '_ {
    let found = match action {
        Action::Limit { nodes, limits } => Some((nodes, *limits)),
        _ => None,
    };
    found.into_iter().flat_map(|(nodes, limits)| nodes.iter().map(move |node| (*node, limits)))
}

fn sum(nodes: &[Amounts]) -> Amounts {
    nodes.iter().fold(Amounts::default(), |sum, node| sum.plus(*node))
}

fn holders(runs: &[Reserved]) -> Vec<Holder> {
    let holder = |run: &Reserved| Holder {
        name: run.name.clone(),
        amounts: Amounts { cpu_millis: run.cpu_millis, memory_bytes: run.memory_bytes },
    };
    runs.iter().map(holder).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reserved(nodes: &str) -> Vec<(u64, u64)> {
        let plan =
            crate::testing::plan(&format!("nodes: {{{nodes}}}\nlinks: [{{between: [a, b]}}]"));
        let amounts = of_nodes(&plan, None);
        amounts.iter().map(|it| (it.cpu_millis, it.memory_bytes)).collect()
    }

    #[test]
    fn a_limit_is_reserved_unless_it_is_only_a_limit() {
        assert_eq!(reserved("a: {cpu: 25%, memory: 64MB}, b: {}"), [(250, 64_000_000), (0, 0)]);
        let only = reserved("a: {cpu: {limit: 25%}, memory: {limit: 64MB}}, b: {}");
        assert_eq!(only, [(0, 0), (0, 0)]);
        let less = "a: {cpu: {limit: 2, min: 0.5}, memory: {limit: 2GB, min: 1MB}}, b: {}";
        assert_eq!(reserved(less), [(500, 1_000_000), (0, 0)]);
    }

    #[test]
    fn the_most_that_an_event_gives_a_node_is_reserved_from_the_beginning() {
        let plan = crate::testing::plan(
            "nodes:\n\
             \x20 a: {cpu: 25%, run: x}\n\
             \x20 b: {run: x}\n\
             \x20 c: {cpu: {limit: 25%}, run: x}\n\
             links: [{between: [a, b]}, {between: [b, c]}]\n\
             events:\n\
             - {at: 1s, node: [a, b, c], limit: {cpu: 50%, memory: 2MB}}\n\
             - {at: 2s, node: a, limit: {cpu: 10%}}\n",
        );
        let all = of_nodes(&plan, None);
        let cpu: Vec<u64> = all.iter().map(|it| it.cpu_millis).collect();
        assert_eq!(cpu, [500, 500, 0]);
        assert!(all.iter().all(|it| it.memory_bytes == 2_000_000));
    }

    #[test]
    fn programs_reserve_what_their_node_does_not() {
        let programs = "run: [{run: x, cpu: 10%, memory: 2MB}, {run: y, cpu: 20%}]";
        assert_eq!(reserved(&format!("a: {{{programs}}}, b: {{}}"))[0], (300, 2_000_000));
        assert_eq!(reserved(&format!("a: {{cpu: 50%, {programs}}}, b: {{}}"))[0], (500, 2_000_000));
    }

    #[test]
    fn this_machine_has_something_to_reserve() {
        let capacity = capacity();
        assert!(capacity.cpu_millis >= 1000 && capacity.memory_bytes > 100_000_000);
    }
}
