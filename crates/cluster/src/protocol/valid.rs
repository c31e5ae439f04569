//! Checks of every question and answer and of the messages after them, whatever the sender.

use std::collections::BTreeSet;

use windtunnel_control::ControlRequest;
use windtunnel_control::valid::part::{
    MEMBERS_MAX, ensure_digits, ensure_folder, ensure_members, ensure_peers,
};
use windtunnel_model::valid::{PlanValidationError, Validate, ensure, ensure_short, shown};
use windtunnel_model::{Plan, name};

use super::exec::{FromCommand, ToCommand};
use super::run::{PartCommand, RunCard, RunMemberMessage, RunSetup};
use super::{
    AgentDescription, AgentReply, AgentRequest, AllocatedResources, ClusterHosts,
    MachineIneligibility, PeerAgent, UnresponsiveAgent,
};
use crate::plain_path::is_plain;

impl Validate for AgentRequest {
    fn validate(&self) -> Result<(), PlanValidationError> {
        match self {
            AgentRequest::Part { run, member } | AgentRequest::Look { run, member } => {
                run.validate()?;
                ensure(usize::from(*member) < run.members.len(), || {
                    format!("member {member} of {}", run.members.len())
                })
            }
            AgentRequest::Exec { request, .. } => {
                request.validate()?;
                let is_command = matches!(**request, ControlRequest::Exec { .. });
                ensure(is_command, || "that is not a command".to_owned())
            }
            AgentRequest::Receive { member, .. } => {
                ensure(usize::from(*member) < MEMBERS_MAX, || format!("member {member}"))
            }
            AgentRequest::Card
            | AgentRequest::Hosts { .. }
            | AgentRequest::Take
            | AgentRequest::Send { .. }
            | AgentRequest::Join { .. }
            | AgentRequest::Runs
            | AgentRequest::Watch { .. }
            | AgentRequest::Control { .. }
            | AgentRequest::Fetch { .. }
            | AgentRequest::Forget { .. } => Ok(()),
        }
    }
}

impl Validate for AgentReply {
    fn validate(&self) -> Result<(), PlanValidationError> {
        match self {
            AgentReply::Card(card) => card.validate(),
            AgentReply::Hosts(hosts) => hosts.validate(),
            AgentReply::Part { said, .. } => said.validate(),
            AgentReply::Run(run) => run.validate(),
            AgentReply::Runs { runs } => {
                ensure(runs.len() <= RUNS_MAX, || format!("{} runs", runs.len()))?;
                runs.iter().try_for_each(RunCard::validate)
            }
            AgentReply::File { path, .. } => ensure(is_plain(path), || {
                format!("`{}` is not the name of a file of a run", shown(path))
            }),
            AgentReply::Missing { what } => ensure_reasons(what),
            AgentReply::Error { message } => ensure_short("a reason", message),
            AgentReply::Taken { .. } | AgentReply::Throughput { .. } | AgentReply::Done => Ok(()),
        }
    }
}

fn ensure_reasons(reasons: &[String]) -> Result<(), PlanValidationError> {
    ensure(reasons.len() <= REASONS_MAX, || format!("{} reasons", reasons.len()))?;
    reasons.iter().try_for_each(|why| ensure_short("a reason", why))
}

/// Reasons that one answer has.
pub(crate) const REASONS_MAX: usize = 1000;

impl Validate for AgentDescription {
    fn validate(&self) -> Result<(), PlanValidationError> {
        ensure_agent(&self.agent)?;
        ensure_machine(&self.host)?;
        let texts = [&self.windtunnel, &self.kernel];
        texts.into_iter().try_for_each(|text| ensure_machine(text))?;
        ensure(self.labels.len() <= LABELS_MAX, || format!("{} labels", self.labels.len()))?;
        self.labels.iter().try_for_each(|label| ensure_machine(label))?;
        let numbers = [
            u64::from(self.cpus) << 32,
            self.load_hundredths,
            self.memory.0,
            self.memory_free.0,
            self.uplink.map_or(0, windtunnel_model::Rate::bits_per_second),
            self.cpu_millis_max.unwrap_or(0),
        ];
        ensure(numbers.into_iter().all(|number| number <= AMOUNT_MAX), || {
            format!("`{}` has more than any machine", self.host)
        })?;
        self.reserved.validate()?;
        if let Some(MachineIneligibility { why, hint }) = &self.unfit {
            let texts = [Some(why), hint.as_ref()].into_iter().flatten();
            texts.into_iter().try_for_each(|text| ensure_short("a reason", text))?;
        }
        ensure(self.peers.len() <= AGENTS_MAX, || format!("{} agents", self.peers.len()))?;
        self.peers.iter().try_for_each(PeerAgent::validate)
    }
}

impl Validate for PeerAgent {
    fn validate(&self) -> Result<(), PlanValidationError> {
        ensure_agent(&self.agent)?;
        let sane = |clock: super::AgentClockOffset| {
            clock.rtt_ns <= RTT_NS_MAX && clock.offset_ns.unsigned_abs() <= AMOUNT_MAX
        };
        ensure(self.clock.is_none_or(sane), || {
            format!("agent {} is further away than a machine can be", self.agent)
        })
    }
}

impl Validate for AllocatedResources {
    fn validate(&self) -> Result<(), PlanValidationError> {
        let numbers = [self.cpu_millis, self.memory.0, self.up_bit_per_s, self.down_bit_per_s];
        let sane = numbers.into_iter().all(|number| number <= AMOUNT_MAX);
        ensure(sane, || "runs have more than any machine has".to_owned())
    }
}

impl Validate for ClusterHosts {
    fn validate(&self) -> Result<(), PlanValidationError> {
        let (hosts, silent) = (self.hosts.len(), self.silent.len());
        ensure(self.asked < hosts && hosts <= AGENTS_MAX && silent <= AGENTS_MAX, || {
            format!("{hosts} agents, of which number {} was asked", self.asked)
        })?;
        ensure(self.throughput.len() <= AGENTS_MAX * LABELS_MAX, || {
            format!("{} throughputs", self.throughput.len())
        })?;
        self.hosts.iter().try_for_each(AgentDescription::validate)?;
        let reasons = self.silent.iter().map(|UnresponsiveAgent { why, .. }| why);
        let mut reasons = reasons;
        reasons.try_for_each(|why| ensure_short("a reason", why))
    }
}

impl Validate for RunSetup {
    fn validate(&self) -> Result<(), PlanValidationError> {
        self.plan.validate()?;
        let hosts = self.members.iter().map(|member| member.host.as_str());
        ensure_members(hosts, &self.placement, &self.plan)?;
        let mut agents = BTreeSet::new();
        for member in &self.members {
            ensure_agent(&member.agent)?;
            ensure(agents.insert(&member.agent), || {
                format!("agent {} is two of its machines", member.agent)
            })?;
            member.has.validate()?;
        }
        ensure_digits(&self.plan_hash, self.key.as_deref())?;
        ensure_short("a user", &self.by)?;
        ensure_folder(&self.base_dir)
    }
}

impl Validate for RunCard {
    fn validate(&self) -> Result<(), PlanValidationError> {
        ensure(name::is_experiment(&self.name) && self.nodes <= Plan::NODES_MAX, || {
            format!("`{}` cannot name an experiment", shown(&self.name))
        })
    }
}

impl Validate for PartCommand {
    fn validate(&self) -> Result<(), PlanValidationError> {
        match self {
            PartCommand::Peers { addresses } => ensure_peers(addresses),
            PartCommand::Measure => Ok(()),
            PartCommand::Begin { agent, .. } => ensure_agent(agent),
            PartCommand::Stop { why } => why.validate(),
        }
    }
}

impl Validate for RunMemberMessage {
    fn validate(&self) -> Result<(), PlanValidationError> {
        match self {
            // The part that receives it checks it; a stream has no longer messages.
            RunMemberMessage::News { .. } => Ok(()),
            RunMemberMessage::Failed { why } => ensure_short("a reason", why),
        }
    }
}

impl Validate for ToCommand {
    fn validate(&self) -> Result<(), PlanValidationError> {
        match self {
            ToCommand::Signal { signal } => ControlRequest::Signal { signal: *signal }.validate(),
            ToCommand::Input { .. } | ToCommand::InputEnds | ToCommand::Size { .. } => Ok(()),
        }
    }
}

impl Validate for FromCommand {
    fn validate(&self) -> Result<(), PlanValidationError> {
        match self {
            FromCommand::Output { .. } => Ok(()),
            FromCommand::Reply { reply } => reply.validate(),
        }
    }
}

fn ensure_agent(text: &str) -> Result<(), PlanValidationError> {
    let digits = text.len() <= 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    ensure(digits && !text.is_empty(), || {
        format!("`{}` is not the number of an agent", shown(text))
    })
}

fn ensure_machine(text: &str) -> Result<(), PlanValidationError> {
    ensure(name::is_machine(text), || format!("`{}` cannot name a machine", shown(text)))
}

/// Agents of a cluster.
const AGENTS_MAX: usize = 100_000;
/// Labels of a machine.
const LABELS_MAX: usize = 1_000;
/// Runs with parts at one agent.
const RUNS_MAX: usize = 1 << 20;
/// An exabyte, a billion gigabits a second, a nanosecond's clock of 36 years: sums of what runs and
/// machines have fit.
pub(crate) const AMOUNT_MAX: u64 = 1 << 60;
/// A day.
const RTT_NS_MAX: u64 = 86_400 * 1_000_000_000;

#[cfg(test)]
pub(crate) mod tests;
