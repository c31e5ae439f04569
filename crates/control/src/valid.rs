//! What holds of every message, whatever sent it. Names are those of the file, numbers that index
//! are within what there can be, texts are bounded.

pub mod part;

use windtunnel_model::name;
use windtunnel_model::valid::{PlanValidationError, Validate, ensure, ensure_short, shown};
use windtunnel_model::{LinkPatch, Plan};

use crate::message::{
    CaptureResult, ControlGreeting, ControlReply, ControlRequest, EventInjectionResult, LaneChoice,
    LaneProperties, LaneStatus, NodeStatus, RecordOrder, RecordStatus, RunStatus,
};
use crate::{nats, services};

impl Validate for ControlGreeting {
    fn validate(&self) -> Result<(), PlanValidationError> {
        ensure(name::is_experiment(&self.name), || {
            format!("`{}` cannot name an experiment", shown(&self.name))
        })
    }
}

impl Validate for ControlRequest {
    fn validate(&self) -> Result<(), PlanValidationError> {
        match self {
            ControlRequest::Ps
            | ControlRequest::Snapshot
            | ControlRequest::Links
            | ControlRequest::RecordStop
            | ControlRequest::RecordStatus
            | ControlRequest::Reservations
            | ControlRequest::CaptureEnd
            | ControlRequest::Stop => Ok(()),
            ControlRequest::RecordStart(order) => order.validate(),
            ControlRequest::Exec { argv, cwd, env, .. } => {
                // Unknown names are reported where the names are known.
                let texts = argv.iter().chain(cwd).chain(env.values());
                let sane = texts.chain(env.keys()).all(|text| !text.contains('\0'));
                let command = argv.first().is_some_and(|word| !word.is_empty());
                let variables = env.keys().all(|key| !key.is_empty() && !key.contains('='));
                ensure(command && sane && variables, || "that is not a command".to_owned())
            }
            ControlRequest::Services { service } => {
                service.iter().try_for_each(|it| ensure_label(it))
            }
            ControlRequest::Capture { place, .. } => ensure_short("the name of a place", place),
            ControlRequest::Signal { signal } => ensure_signal(*signal),
            ControlRequest::Set { lanes, patch } => {
                lanes.validate().and_then(|()| is_bounded(patch))
            }
            ControlRequest::State { lanes, .. } => lanes.validate(),
            ControlRequest::Limit { who, demand } => {
                demand.validate()?;
                let can_change = !demand.is_unknown() && *demand == demand.live();
                ensure(can_change, || "that cannot change".to_owned())?;
                ensure_short("the name of a node", who)
            }
            ControlRequest::Do { events } => ensure(events.len() <= EVENTS_MAX, || {
                format!("{} events are more than {EVENTS_MAX}", events.len())
            }),
        }
    }
}

impl Validate for LaneProperties {
    fn validate(&self) -> Result<(), PlanValidationError> {
        ensure_short("the name of a link", &self.link)?;
        ensure_short("a direction", &self.direction)?;
        ensure_short("a state", self.state.as_str())?;
        let all = self.properties.len().max(self.changed_from.len());
        ensure(all <= PROPERTIES_MAX, || format!("a link has {all} properties"))
    }
}

/// Directions of links that a run may have.
fn ensure_lanes(lanes: usize) -> Result<(), PlanValidationError> {
    ensure(lanes <= 2 * Plan::LINKS_MAX, || format!("{lanes} directions of links"))
}

impl Validate for LaneChoice {
    fn validate(&self) -> Result<(), PlanValidationError> {
        let direction = self.direction.as_deref().unwrap_or_default();
        ensure_short("the name of a link", &self.link)?;
        ensure_short("a direction", direction)
    }
}

/// Only the run, which has the plan, can check the values against each other.
fn is_bounded(patch: &LinkPatch) -> Result<(), PlanValidationError> {
    use windtunnel_model::profile::LossModel;
    let Some(LossModel::Listed(numbers)) = &patch.loss else { return Ok(()) };
    ensure(numbers.len() <= EVENTS_MAX, || "too many packets are named".to_owned())
}

impl Validate for ControlReply {
    fn validate(&self) -> Result<(), PlanValidationError> {
        match self {
            ControlReply::Done
            | ControlReply::Elsewhere
            | ControlReply::Started { .. }
            | ControlReply::Exited { .. } => Ok(()),
            ControlReply::Reservations { parts: all } => {
                let most = Plan::NODES_MAX + Plan::RESERVATIONS_MAX;
                ensure(all.len() <= most, || format!("{} nodes and reservations", all.len()))?;
                let names = all.iter().map(|it| &it.name);
                let parents = all.iter().filter_map(|it| it.parent.as_ref());
                names.chain(parents).try_for_each(|name| ensure_label(name))
            }
            ControlReply::Happened(EventInjectionResult { events, later, .. }) => {
                ensure(events.len() <= EVENTS_MAX && *later <= EVENTS_MAX, || {
                    "more events have happened than can".to_owned()
                })
            }
            ControlReply::NotRun { message, .. } => ensure_short("a reason", message),
            ControlReply::Error { message, hint } => {
                ensure_short("a reason", message)?;
                ensure_short("a hint", hint.as_deref().unwrap_or_default())
            }
            ControlReply::Captured(CaptureResult { failure, .. }) => {
                ensure_short("a reason", failure.as_deref().unwrap_or_default())
            }
            ControlReply::Services(list) => list.validate(),
            ControlReply::Ps(status) => status.validate(),
            ControlReply::Records(status) => status.validate(),
            ControlReply::Links(list) => {
                ensure_lanes(list.links.len())?;
                list.links.iter().try_for_each(LaneProperties::validate)
            }
            ControlReply::Snapshot(snapshot) => {
                ensure_lanes(snapshot.links.len())?;
                snapshot.links.iter().try_for_each(LaneStatus::validate)?;
                snapshot.status.validate()
            }
        }
    }
}

impl Validate for RecordOrder {
    fn validate(&self) -> Result<(), PlanValidationError> {
        let all = self.nodes.len().max(self.flows.len());
        ensure(all <= Plan::NODES_MAX, || format!("{all} nodes or flows to be recorded"))?;
        self.nodes.iter().try_for_each(|name| ensure_label(name))
    }
}

impl Validate for RecordStatus {
    fn validate(&self) -> Result<(), PlanValidationError> {
        ensure(self.layers.len() <= LAYERS_MAX, || format!("{} layers", self.layers.len()))?;
        ensure_short("a reason", self.failure.as_deref().unwrap_or_default())?;
        self.layers.iter().try_for_each(|layer| {
            ensure_short("a reason", layer.why.as_deref().unwrap_or_default())?;
            ensure(is_word(layer.layer.as_str()) && is_word(layer.state.as_str()), || {
                format!("layer `{}` is in no state", shown(layer.layer.as_str()))
            })
        })
    }
}

impl Validate for RunStatus {
    fn validate(&self) -> Result<(), PlanValidationError> {
        ensure(name::is_experiment(&self.name), || {
            format!("`{}` cannot name an experiment", shown(&self.name))
        })?;
        ensure(self.nodes.len() <= Plan::NODES_MAX, || format!("{} nodes", self.nodes.len()))?;
        services::validate_all(&self.services)?;
        nats::validate_all(&self.nats)?;
        self.nodes.iter().try_for_each(NodeStatus::validate)
    }
}

impl Validate for NodeStatus {
    fn validate(&self) -> Result<(), PlanValidationError> {
        ensure_label(&self.node)?;
        let addresses = &self.addresses;
        let are = addresses.iter().all(|text| text.parse::<std::net::IpAddr>().is_ok());
        ensure(are, || format!("node `{}` has an address that is none", self.node))?;
        let words = self.programs.iter().all(|program| is_word(program.state.as_str()));
        ensure(words, || format!("node `{}` has a program in no state", self.node))
    }
}

impl Validate for LaneStatus {
    fn validate(&self) -> Result<(), PlanValidationError> {
        let ends = self.direction.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        let named = name::is_link(&self.link, name::PLAN_LINK_LETTERS_MAX) && ends;
        ensure(named && self.direction.len() <= name::PLAN_LINK_LETTERS_MAX, || {
            format!("`{}` cannot name a link", shown(&self.link))
        })?;
        ensure(is_word(self.state.as_str()) && self.traced.iter().all(|it| is_word(it)), || {
            format!("link `{}` is in no state", self.link)
        })
    }
}

pub(crate) fn ensure_label(text: &str) -> Result<(), PlanValidationError> {
    name::check_label(text, name::LABEL_LETTERS_MAX).map_err(|error| {
        PlanValidationError::new(format!("`{}` cannot name a node: {error}", shown(text)))
    })
}

pub(crate) fn ensure_signal(signal: i32) -> Result<(), PlanValidationError> {
    ensure((1..=SIGNAL_MAX).contains(&signal), || format!("{signal} is not a signal"))
}

/// A word of our own, such as `running`.
pub(crate) fn is_word(text: &str) -> bool {
    text.len() <= 32 && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
}

/// What churn can come to, and packets that can be named.
/// More than there are.
const LAYERS_MAX: usize = 32;
/// More than a link has.
const PROPERTIES_MAX: usize = 64;
const EVENTS_MAX: usize = 1_000_000;
/// The last signal of Linux (signal(7)).
const SIGNAL_MAX: i32 = 64;

#[cfg(test)]
mod tests {
    use crate::frame::decode;
    use crate::message::{ControlReply, ControlRequest};

    #[test]
    fn a_request_with_impossible_values_is_refused() {
        let lines: [&[u8]; 6] = [
            br#"{"request":"signal","signal":2147483647}"#,
            br#"{"request":"signal","signal":0}"#,
            br#"{"request":"exec","node":"a","argv":[],"cwd":null,"env":{},"terminal":false}"#,
            br#"{"request":"exec","node":"a","argv":["a\u0000b"],"cwd":null,"env":{},"terminal":false}"#,
            br#"{"request":"exec","node":"a","argv":["a"],"cwd":null,"env":{"A=B":"c"},"terminal":false}"#,
            br#"{"request":"exec","node":"a","argv":["a"],"cwd":null,"env":{"":"c"},"terminal":false}"#,
        ];
        for line in lines {
            let text = decode::<ControlRequest>(line).unwrap_err().to_string();
            assert!(text.starts_with("a message is not valid: "), "{text}");
        }
        decode::<ControlRequest>(br#"{"request":"signal","signal":15}"#).unwrap();
    }

    #[test]
    fn names_in_a_reply_are_names() {
        let ps = |node: &str| {
            format!(
                r#"{{"reply":"ps","name":"net","elapsed_ns":1,"nodes":[{{"node":"{node}","addresses":["10.0.0.1"],"init_pid":1,"programs":[]}}]}}"#
            )
        };
        decode::<ControlReply>(ps("a-1").as_bytes()).unwrap();
        decode::<ControlReply>(ps("\\u001b[2J").as_bytes()).unwrap_err();
        decode::<ControlReply>(ps("../../.ssh").as_bytes()).unwrap_err();
    }
}
