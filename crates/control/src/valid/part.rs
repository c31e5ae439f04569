//! Messages between agents and the parts of runs.

use std::net::SocketAddr;
use std::path::Path;

use windtunnel_model::flow::FlowChange;
use windtunnel_model::valid::{PlanValidationError, Validate, ensure, ensure_short, shown};
use windtunnel_model::{NodeId, Plan, name};

use super::ensure_signal;
use crate::part::{FlowAnnouncement, FromPart, PartSetup, StopWhy, ToPart, bytes_of};

/// The most machines of a run: each has a node.
pub const MEMBERS_MAX: usize = Plan::NODES_MAX;

impl Validate for ToPart {
    fn validate(&self) -> Result<(), PlanValidationError> {
        match self {
            ToPart::Setup(setup) => setup.validate(),
            ToPart::Peers { addresses } => ensure_peers(addresses),
            ToPart::Measure | ToPart::Begin { .. } => Ok(()),
            ToPart::Flows { changes, .. } => ensure_flows(changes.iter()),
            ToPart::News { news, .. } => ensure(news.len() <= NEWS_BYTES_MAX, || {
                format!("{} bytes of news are more than {NEWS_BYTES_MAX}", news.len())
            }),
            ToPart::Lost { why, .. } | ToPart::NotHeld { why } => ensure_short("a reason", why),
            ToPart::Left { .. } | ToPart::Silent { .. } | ToPart::Answers { .. } => Ok(()),
            ToPart::Clocks { clocks } => ensure(clocks.len() <= MEMBERS_MAX, || {
                format!("the clocks of {} members", clocks.len())
            }),
            ToPart::Stop(why) => why.validate(),
        }
    }
}

impl ToPart {
    /// The member of the run that it is about, if it is about one.
    #[must_use]
    pub fn member(&self) -> Option<u16> {
        match self {
            ToPart::Flows { member, .. }
            | ToPart::News { member, .. }
            | ToPart::Lost { member, .. }
            | ToPart::Silent { member, .. }
            | ToPart::Answers { member }
            | ToPart::Left { member } => Some(*member),
            _ => None,
        }
    }
}

impl Validate for FromPart {
    fn validate(&self) -> Result<(), PlanValidationError> {
        match self {
            FromPart::Bound { port } => ensure(*port > 0, || "port 0 cannot be reached".to_owned()),
            FromPart::Prepared
            | FromPart::Reached
            | FromPart::Measured
            | FromPart::Begun
            | FromPart::Ending
            | FromPart::Refused { .. }
            | FromPart::Ended => Ok(()),
            FromPart::Unreached { members } => ensure(members.len() <= MEMBERS_MAX, || {
                format!("{} members are not reached", members.len())
            }),
            FromPart::Flows { changes } => {
                ensure_audiences(changes)?;
                ensure_flows(changes.iter().map(|it| &it.change))
            }
            FromPart::News { news } => ensure(news.len() <= NEWS_BYTES_MAX, || {
                format!("{} bytes of news are more than {NEWS_BYTES_MAX}", news.len())
            }),
            FromPart::Notice { notice } => ensure(notice.len() <= NEWS_BYTES_MAX, || {
                format!("a notice of {} bytes is longer than {NEWS_BYTES_MAX}", notice.len())
            }),
            FromPart::Failed { message, hint, .. } => {
                ensure_short("a reason", message)?;
                ensure_short("a hint", hint.as_deref().unwrap_or_default())
            }
        }
    }
}

impl Validate for StopWhy {
    fn validate(&self) -> Result<(), PlanValidationError> {
        match self {
            StopWhy::Asked => Ok(()),
            StopWhy::Signal(signal) => ensure_signal(*signal),
            StopWhy::Failed(why) => ensure_short("a reason", why),
        }
    }
}

impl Validate for PartSetup {
    fn validate(&self) -> Result<(), PlanValidationError> {
        self.plan.validate()?;
        let hosts = self.members.iter().map(String::as_str);
        ensure_members(hosts, &self.placement, &self.plan)?;
        ensure(usize::from(self.member) < self.members.len(), || {
            format!("member {} of {}", self.member, self.members.len())
        })?;
        ensure_digits(&self.plan_hash, self.key.as_deref())?;
        let (first, last) = self.ports;
        ensure(first <= last, || format!("no port is from {first} to {last}"))?;
        ensure_folder(&self.folder)?;
        ensure_folder(&self.base_dir)
    }
}

/// The names of a run's machines, and which node is on which of them.
///
/// # Errors
/// If they cannot be those of the plan.
pub fn ensure_members<'a>(
    hosts: impl ExactSizeIterator<Item = &'a str>,
    placement: &[u16],
    plan: &Plan,
) -> Result<(), PlanValidationError> {
    let members = hosts.len();
    ensure((1..=MEMBERS_MAX).contains(&members), || format!("a run on {members} machines"))?;
    let mut hosts = hosts;
    hosts.try_for_each(|host| {
        ensure(name::is_machine(host), || format!("`{}` cannot name a machine", shown(host)))
    })?;
    let placed = placement.iter().all(|place| usize::from(*place) < members);
    ensure(placed && placement.len() == plan.nodes.len(), || {
        "the placement is not one of this plan on these machines".to_owned()
    })
}

/// The hash of a plan, and a key if there is one, as hexadecimal digits.
///
/// # Errors
/// If one of them is something else.
pub fn ensure_digits(plan_hash: &str, key: Option<&str>) -> Result<(), PlanValidationError> {
    ensure(bytes_of(plan_hash).is_some(), || "the plan's hash is none".to_owned())?;
    ensure(key.is_none_or(|key| bytes_of(key).is_some()), || {
        "the key of the packets is none".to_owned()
    })
}

/// Where programs start: absolute, and a path at all.
///
/// # Errors
/// If it is not.
pub fn ensure_folder(folder: &Path) -> Result<(), PlanValidationError> {
    let text = folder.as_os_str().as_encoded_bytes();
    let sane = folder.is_absolute() && text.len() <= PATH_BYTES_MAX && !text.contains(&0);
    ensure(sane, || "a folder is not an absolute path".to_owned())
}

/// Where the packets of members go: not more than there can be, and each with a port.
///
/// # Errors
/// If they are not that.
pub fn ensure_peers(addresses: &[Option<SocketAddr>]) -> Result<(), PlanValidationError> {
    let reached = addresses.iter().flatten().all(|address| address.port() != 0);
    ensure(reached && addresses.len() <= MEMBERS_MAX, || {
        "where members are reached cannot be so".to_owned()
    })
}

fn ensure_flows<'a>(
    mut changes: impl ExactSizeIterator<Item = &'a FlowChange>,
) -> Result<(), PlanValidationError> {
    let node = |node: NodeId| node.index() < Plan::NODES_MAX;
    let few = changes.len() <= FLOWS_MAX;
    let sane = few && changes.all(|it| node(it.key.source) && node(it.key.destination));
    ensure(sane, || "news of flows that no plan has".to_owned())
}

fn ensure_audiences(announcements: &[FlowAnnouncement]) -> Result<(), PlanValidationError> {
    let lists = announcements.iter().flat_map(|it| [&it.audience, &it.at_once]);
    let sane = lists.flatten().all(|members| members.len() <= MEMBERS_MAX);
    ensure(sane, || "a flow is announced to more members than a run has".to_owned())
}

/// Flows in one message.
const FLOWS_MAX: usize = 1 << 20;
/// The longest news that parts have for each other: the state of a program, or an order.
const NEWS_BYTES_MAX: usize = 16 << 20;
/// The longest path (path_resolution(7)).
const PATH_BYTES_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_accepts_only_signals_and_ports_that_exist() {
        for signal in [0, -1, 65, i32::MIN, i32::MAX] {
            ToPart::Stop(StopWhy::Signal(signal)).validate().unwrap_err();
        }
        ToPart::Stop(StopWhy::Signal(2)).validate().unwrap();
        FromPart::Bound { port: 0 }.validate().unwrap_err();
        ToPart::Peers { addresses: vec![Some(([10, 0, 0, 1], 0).into())] }.validate().unwrap_err();
        ToPart::Peers { addresses: vec![None; MEMBERS_MAX + 1] }.validate().unwrap_err();
    }

    #[test]
    fn where_programs_start_is_an_absolute_path() {
        ensure_folder(Path::new("/home/ann")).unwrap();
        for wrong in ["", "home", "../x", "/a\0b"] {
            ensure_folder(Path::new(wrong)).unwrap_err();
        }
        ensure_folder(Path::new(&format!("/{}", "x".repeat(4096)))).unwrap_err();
    }
}
