//! Network address translation.

use serde_json::Value as Json;
use windtunnel_model::plan::{
    IpTransport, NatBehaviour as Model, NatFilteringBehaviour, NatMappingBehaviour,
    NatRefreshBehaviour, PortAllocation, PortRange, Timeouts,
};

use super::timeouts::{TimeoutKeys, read_timeouts};
use crate::grammar::{
    BoundedInteger, Decoder, ListElement, ListForm, Name, RequiredKeyForm, SchemaAlternative,
    SchemaDefinitions, ValueForm, YamlMapEntry, form, map, words,
};
use crate::position::LocatedValue;
use crate::text::shorten;
use crate::tree::YamlValueKind;

/// A NAT as the file has it.
#[derive(Debug)]
pub(crate) struct NatDraft {
    pub(crate) kind: (NatMappingBehaviour, NatFilteringBehaviour),
    pub(crate) ports: Option<PortRange>,
    pub(crate) allocation: Option<PortAllocation>,
    pub(crate) timeouts: Timeouts,
    pub(crate) refresh: NatRefreshBehaviour,
    pub(crate) hairpin: bool,
    pub(crate) forwards: Vec<ForwardDraft>,
}

/// A forwarded port as the file has it.
#[derive(Debug)]
pub(crate) struct ForwardDraft {
    pub(crate) transport: IpTransport,
    pub(crate) port: LocatedValue<u16>,
    /// A node, and its port behind a colon.
    pub(crate) to: LocatedValue<String>,
}

words! {
    /// The type of a NAT (RFC 3489): which external endpoint packets get, and what passes to it
    /// (RFC 4787).
    Type as "NatType"; (NatMappingBehaviour, NatFilteringBehaviour) {
        /// Each internal endpoint has one external endpoint, to which all may send.
        "full-cone" => (NatMappingBehaviour::EndpointIndependent, NatFilteringBehaviour::EndpointIndependent),
        /// Each internal endpoint has one external endpoint, to which the addresses may send that it has
        /// sent to.
        "address-restricted" => (NatMappingBehaviour::EndpointIndependent, NatFilteringBehaviour::AddressDependent),
        /// Each internal endpoint has one external endpoint, to which the endpoints may send that it has
        /// sent to.
        "port-restricted" => (NatMappingBehaviour::EndpointIndependent, NatFilteringBehaviour::AddressAndPortDependent),
        /// Each internal endpoint has another external endpoint for each remote endpoint, which alone
        /// may send to it.
        "symmetric" => (NatMappingBehaviour::AddressAndPortDependent, NatFilteringBehaviour::AddressAndPortDependent),
    }
}

map! {
    /// A NAT.
    Nat {
        /// Which external endpoints internal ones get, and what passes to them.
        "type" TYPE: RequiredKeyForm<Type>,
        /// The external ports, such as 40000-49999; default: all, those below 1024 for ports below 1024.
        "ports" PORTS: PortsForm,
        /// How an external port is chosen; default preserve, for a symmetric NAT random.
        "port-allocation" ALLOCATION: Allocation,
        /// Which packets keep a mapping alive; default both.
        "refresh" REFRESH: RefreshWord,
        /// Whether nodes inside reach each other by their external endpoints; default true.
        "hairpin" HAIRPIN: bool,
        /// Ports of the external address that are for nodes inside.
        "forward" FORWARD: ListForm<ForwardForm>,
        ..TimeoutKeys,
    }
}

words! {
    /// How an external port is chosen for a new mapping.
    Allocation as "PortAllocation"; PortAllocation {
        /// The internal port where it is free, else one at random.
        "preserve" => PortAllocation::Preserve,
        /// The next free one after the last that was chosen, so that others can predict it.
        "sequential" => PortAllocation::Sequential,
        /// One at random, by the seed.
        "random" => PortAllocation::Random,
    }
}

words! {
    /// Which packets keep a mapping alive (RFC 4787, REQ-6).
    RefreshWord as "Refresh"; NatRefreshBehaviour {
        /// Those from inside.
        "outbound" => NatRefreshBehaviour::Outbound,
        /// Those from inside and those that pass to inside.
        "both" => NatRefreshBehaviour::Both,
    }
}

map! {
    /// A port of the external address that is for a node inside.
    ForwardForm as "ForwardedPort", ForwardDraft, by read_forward {
        /// The external port.
        "port" PORT: RequiredKeyForm<BoundedInteger<1, 65_535>>,
        /// The node inside, with its port behind a colon; default: the same port.
        "to" TO: RequiredKeyForm<Name>,
        /// The protocol; default tcp.
        "protocol" PROTOCOL: ForwardProtocol,
    }
}

impl ListElement for ForwardForm {
    const LIST: &'static str = "a list of ports such as {port: 8080, to: \"web:80\"}";
}

words! {
    /// A protocol whose ports are forwarded.
    ForwardProtocol: IpTransport {
        /// TCP.
        "tcp" => IpTransport::Tcp,
        /// UDP.
        "udp" => IpTransport::Udp,
    }
}

/// A NAT: its type, or a map that says more.
pub(super) struct NatForm;

impl ValueForm for NatForm {
    type Value = NatDraft;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<NatDraft> {
        if !matches!(field.value.kind, YamlValueKind::Map(_)) {
            let kind = Type::read(from, field)?;
            return Some(NatDraft::new(kind));
        }
        let fields = from.table::<Nat>(field, "a nat")?;
        let kind = from.need(&fields, Nat::TYPE, "this nat")?;
        let plain = NatDraft::new(kind);
        Some(NatDraft {
            kind,
            ports: from.read(&fields, Nat::PORTS)?,
            allocation: from.read(&fields, Nat::ALLOCATION)?,
            timeouts: read_timeouts(from, &fields)?,
            refresh: from.read_or(&fields, Nat::REFRESH, plain.refresh)?,
            hairpin: from.read_or(&fields, Nat::HAIRPIN, plain.hairpin)?,
            forwards: from.read_or(&fields, Nat::FORWARD, Vec::new())?,
        })
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        definitions.any_of(
            "NatOrType",
            "A NAT.",
            &[
                SchemaAlternative("Its type.", Type::schema),
                SchemaAlternative("With all that it does.", Nat::definition),
            ],
        )
    }
}

impl NatDraft {
    fn new(kind: (NatMappingBehaviour, NatFilteringBehaviour)) -> Self {
        let Model { timeouts, refresh, hairpin, .. } = Model::new(kind.0, kind.1);
        let (ports, allocation) = (None, None);
        NatDraft { kind, ports, allocation, timeouts, refresh, hairpin, forwards: Vec::new() }
    }
}

fn read_forward(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<ForwardDraft> {
    let fields = from.table::<ForwardForm>(field, "a forwarded port")?;
    let port = from.required(&fields, ForwardForm::PORT, "this forwarded port");
    let to = from.need(&fields, ForwardForm::TO, "this forwarded port");
    let transport = from.read_or(&fields, ForwardForm::PROTOCOL, IpTransport::Tcp)?;
    let port = port?;
    let value = BoundedInteger::<1, 65_535>::read(from, port)?;
    let port = LocatedValue { value: u16::try_from(value).ok()?, place: port.value.place };
    Some(ForwardDraft { transport, port, to: to? })
}

fn read_ports(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<PortRange> {
    let needed = "a range of ports such as 40000-49999";
    let text = from.text(field, needed)?;
    let range = PortRange::of(text);
    if range.is_none() {
        let message = format!("{}: `{}` is not {needed}", field.key, shorten(text));
        from.mistake(field.wrong(), message);
    }
    range
}

form! {
    /// A range of ports.
    PortsForm: PortRange, by read_ports, like ports_schema
}

fn ports_schema(definitions: &mut SchemaDefinitions) -> Json {
    let description = "A port, or ports from the first to the last.";
    let pattern = "^[1-9][0-9]{0,4}(-[1-9][0-9]{0,4})?$";
    definitions.text("PortRange", description, pattern, "40000-49999")
}
