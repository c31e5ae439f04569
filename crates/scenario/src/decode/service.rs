//! Services: one address with several replicas.

mod event;
mod health;
mod weights;

use std::net::IpAddr;

use serde_json::{Value as Json, json};
use windtunnel_model::Span;
use windtunnel_model::plan::{
    FailOver, FlowPinningScope, Hash, LoadBalancingPolicy, Ping, ReplicaHealthCheck,
    ReplicaLossResponse, Service as Model, ServicePort, TunnelEncapsulation,
};

use crate::grammar::{
    Decoder, Name, NameListForm, RequiredKeyForm, SchemaAlternative, SchemaDefinitions, ValueForm,
    YamlMapEntry, form, map, one_or_two, words,
};
use crate::position::LocatedValue;
use crate::text::{list, shorten};
use crate::tree::YamlValueKind;
pub(crate) use event::ServiceEventDraft;
pub(super) use event::{OfServices, read_service_event};
use health::HealthForm;
pub(super) use health::Period;
pub(crate) use weights::ReplicaWeightDraft;
use weights::WeightsForm;

/// A service as the file has it.
#[derive(Debug)]
pub(crate) struct ServiceDraft {
    pub(crate) name: LocatedValue<String>,
    /// At most one a family.
    pub(crate) addresses: Vec<LocatedValue<IpAddr>>,
    pub(crate) ports: Vec<LocatedValue<ServicePort>>,
    pub(crate) origin: Option<LocatedValue<String>>,
    pub(crate) replicas: Vec<LocatedValue<String>>,
    /// `None`: all routers.
    pub(crate) at: Option<Vec<LocatedValue<String>>>,
    pub(crate) policy: Option<LocatedValue<PolicyDraft>>,
    /// How the policy `hash` does it.
    pub(crate) hash: Option<LocatedValue<Hash>>,
    pub(crate) pins: Option<LocatedValue<FlowPinningScope>>,
    pub(crate) health: Option<LocatedValue<ReplicaHealthCheck>>,
    pub(crate) fail_over: Option<LocatedValue<FailOver>>,
    pub(crate) on_loss: Option<ReplicaLossResponse>,
    pub(crate) encapsulation: TunnelEncapsulation,
    pub(crate) ping: Option<LocatedValue<Ping>>,
    pub(crate) tcp_idle: Span,
    pub(crate) udp_idle: Span,
}

/// Which replica gets what is new.
#[derive(Debug, Clone)]
pub(crate) struct PolicyDraft {
    pub(crate) policy: LoadBalancingPolicy,
    pub(crate) weights: Vec<ReplicaWeightDraft>,
}

map! {
    /// An address that several nodes answer for. Routers redirect each new connection to one of
    /// these nodes, which answers in the name of the address.
    Service, ServiceDraft, by read_service {
        /// Its address, or an IPv4 and an IPv6 one; default: those of the `origin`, else new ones from
        /// the pools. The service's name resolves to them in every node.
        "address" ADDRESS: Addresses,
        /// What is redirected, such as `80/tcp` or `[80/tcp, 53/udp]`. Other ports of the address
        /// are those of the `origin`.
        "ports" PORTS: RequiredKeyForm<ServicePortsForm>,
        /// The node whose address it is: it gets what no router redirects. Without one, that is
        /// unreachable.
        "origin" ORIGIN: Name,
        /// The nodes that packets are redirected to, or groups of them. One gets something as soon
        /// as a program in it listens on the port.
        "replicas" REPLICAS: RequiredKeyForm<NameListForm>,
        /// The routers that redirect; default: all.
        "at" AT: NameListForm,
        /// Which replica gets a new connection; default nearest.
        "policy" POLICY: PolicyForm,
        /// How the policy `hash` spreads what is new; default rendezvous. Alone it says `policy: hash`,
        /// too.
        "hash" HASH: HashWord,
        /// Which routers know the replica of a connection or flow; default shared.
        "pins" PINS: PinsWord,
        /// Probes, beside whether a program listens.
        "health" HEALTH: HealthForm,
        /// What becomes of connections whose replica is lost; default new.
        "fail-over" FAIL_OVER: FailOverWord,
        /// What clients are sent whose connection is lost with the node of its replica; default
        /// silent.
        "on-loss" ON_LOSS: OnLossWord,
        /// How packets get to the replica; default clamp.
        "encapsulation" ENCAPSULATION: EncapsulationWord,
        /// What answers an echo request to its address; default: the `origin`, or nothing.
        "ping" PING: PingWord,
        /// A TCP connection without a packet for so long is forgotten, and may be redirected to
        /// another replica; default 2h4min (RFC 5382).
        "tcp-idle" TCP_IDLE: Idle,
        /// A UDP flow without a packet for so long is forgotten; default 30s.
        "udp-idle" UDP_IDLE: Idle,
    }
}

words! {
    /// Which replica gets a new connection.
    PolicyWord: LoadBalancingPolicy {
        /// The nearest by latency, from the router that redirects and as links and routes are then.
        "nearest" => LoadBalancingPolicy::Nearest,
        /// The nearest by the number of links.
        "hops" => LoadBalancingPolicy::Hops,
        /// That with the fewest live connections and flows; of equals, the first.
        "least-connections" => LoadBalancingPolicy::LeastConnections,
        /// By a hash, so that most stay at their replica where others come and go: `hash` says how.
        "hash" => LoadBalancingPolicy::Hash,
        /// The first that is there.
        "ordered" => LoadBalancingPolicy::Ordered,
        /// Each in its turn, in the order of the file.
        "round-robin" => LoadBalancingPolicy::RoundRobin,
        /// By a random draw for each connection, by the seed; all alike.
        "random" => LoadBalancingPolicy::Random,
    }
}

words! {
    /// How the policy `hash` spreads connections and flows.
    HashWord as "ServiceHash"; Hash {
        /// Always the same for one client, by its address. Where a replica goes, only its own clients
        /// move (highest random weight).
        "rendezvous" => Hash::Rendezvous,
        /// By addresses, ports and protocol, with a table of equal shares to one place (Maglev). Where
        /// a replica goes, few others move.
        "maglev" => Hash::Maglev,
    }
}

words! {
    /// Which routers know the replica of an established connection or flow.
    PinsWord as "Pins"; FlowPinningScope {
        /// All: it stays with its replica where routes change.
        "shared" => FlowPinningScope::Shared,
        /// Those that redirected it. Where routes change, another one gives it what its own policy
        /// says, as routers and load balancers do that do not talk to each other.
        "per-router" => FlowPinningScope::PerRouter,
    }
}

map! {
    /// A policy with weights.
    WeightedForm as "Weighted" {
        /// The share of each replica in new connections; 1 for one that is not named, and none for
        /// one that weighs 0.
        "weighted" WEIGHTED: RequiredKeyForm<WeightsForm>,
    }
}

words! {
    /// What becomes of connections whose replica is lost.
    FailOverWord as "FailOver"; FailOver {
        /// They are lost. New ones go to another replica at once.
        "new" => FailOver::New,
        /// They go on at another replica.
        "transparent" => FailOver::Transparent,
    }
}

words! {
    /// What clients are sent whose connection is lost with the node of its replica.
    OnLossWord as "OnLoss"; ReplicaLossResponse {
        /// Nothing: their packets are dropped.
        "silent" => ReplicaLossResponse::Silent,
        /// A reset, in the name of the replica.
        "reset" => ReplicaLossResponse::Reset,
    }
}

words! {
    /// How packets get from the router that redirects them to the replica.
    EncapsulationWord as "Encapsulation"; TunnelEncapsulation {
        /// In another IP header: each is 20 bytes longer (IPv6: 40). The segments of TCP are made
        /// small enough, and the sender of what is too large gets an ICMP message.
        "clamp" => TunnelEncapsulation::Clamp,
        /// In another IPv4 header, and what is too large with it travels in fragments.
        "fragment" => TunnelEncapsulation::Fragment,
        /// As they are, by their route alone. Only routers may be on the way.
        "none" => TunnelEncapsulation::None,
    }
}

words! {
    /// What answers an echo request to the address of a service.
    PingWord as "ServicePing"; Ping {
        /// The nearest replica in which a program listens, whatever the policy.
        "replica" => Ping::Replica,
        /// The first router on the way that redirects.
        "router" => Ping::Router,
    }
}

/// A map of services by name.
pub(super) struct ServiceMapForm;

impl ValueForm for ServiceMapForm {
    type Value = Vec<ServiceDraft>;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Vec<ServiceDraft>> {
        let entries = from.map(field, "a map of names and services")?;
        Some(entries.all().filter_map(|entry| read_service(from, entry)).collect())
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        let service = Service::schema(definitions);
        json!({"type": "object", "additionalProperties": service})
    }
}

fn read_service(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<ServiceDraft> {
    let name = LocatedValue { value: field.key.to_owned(), place: field.place };
    let fields = from.table::<Service>(field, "a service")?;
    let ports = from.need(&fields, Service::PORTS, "this service");
    let replicas = from.need(&fields, Service::REPLICAS, "this service");
    let draft = ServiceDraft {
        name,
        addresses: from.read_or(&fields, Service::ADDRESS, Vec::new())?,
        ports: ports?,
        origin: from.read(&fields, Service::ORIGIN)?,
        replicas: replicas?,
        at: from.read(&fields, Service::AT)?,
        policy: from.read_at(&fields, Service::POLICY),
        hash: from.read_at(&fields, Service::HASH),
        pins: from.read_at(&fields, Service::PINS),
        health: from.read_at_key(&fields, Service::HEALTH),
        fail_over: from.read_at(&fields, Service::FAIL_OVER),
        on_loss: from.read(&fields, Service::ON_LOSS)?,
        encapsulation: from.read_or(&fields, Service::ENCAPSULATION, TunnelEncapsulation::Clamp)?,
        ping: from.read_at(&fields, Service::PING),
        tcp_idle: from.read_or(&fields, Service::TCP_IDLE, Model::TCP_IDLE)?,
        udp_idle: from.read_or(&fields, Service::UDP_IDLE, Model::UDP_IDLE)?,
    };
    Some(draft)
}

form! {
    /// An address, or one of each family.
    Addresses: Vec<LocatedValue<IpAddr>>, by read_addresses, like one_or_two
}

fn read_addresses(
    from: &mut Decoder<'_>,
    field: YamlMapEntry<'_>,
) -> Option<Vec<LocatedValue<IpAddr>>> {
    let mut addresses: Vec<LocatedValue<IpAddr>> = Vec::new();
    for text in from.names(field, "an address such as 10.1.0.80, or a list of two")? {
        let (place, shown) = (text.place, shorten(&text.value));
        let Ok(value) = text.value.parse::<IpAddr>() else {
            from.mistake(place, format!("address: `{shown}` is not an address such as 10.1.0.80"));
            return None;
        };
        if addresses.iter().any(|known| known.value.is_ipv4() == value.is_ipv4()) {
            let family = if value.is_ipv4() { "IPv4" } else { "IPv6" };
            let message = format!("address: `{shown}` is a second {family} address of a service");
            from.mistake(place, message);
            return None;
        }
        addresses.push(LocatedValue { value, place });
    }
    Some(addresses)
}

/// Ports: one, or a list of them.
struct ServicePortsForm;

impl ValueForm for ServicePortsForm {
    type Value = Vec<LocatedValue<ServicePort>>;

    fn read(
        from: &mut Decoder<'_>,
        field: YamlMapEntry<'_>,
    ) -> Option<Vec<LocatedValue<ServicePort>>> {
        let mut ports: Vec<LocatedValue<ServicePort>> = Vec::new();
        for text in from.names(field, "a port such as 80/tcp, or a list of them")? {
            let port = read_port(from, &text)?;
            if ports.iter().any(|known| known.value == port) {
                from.mistake(text.place, format!("ports: `{port}` is there twice"));
                return None;
            }
            ports.push(LocatedValue { value: port, place: text.place });
        }
        if ports.is_empty() || ports.len() > Model::PORTS_MAX {
            let (count, most) = (ports.len(), Model::PORTS_MAX);
            from.mistake(field.wrong(), format!("ports: {count} are not between 1 and {most}"));
            return None;
        }
        Some(ports)
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        let several = |definitions: &mut SchemaDefinitions| {
            let port = port_schema(definitions);
            json!({"type": "array", "items": port, "minItems": 1})
        };
        definitions.any_of(
            "ServicePorts",
            "Ports of a service.",
            &[SchemaAlternative("One.", port_schema), SchemaAlternative("Several.", several)],
        )
    }
}

fn port_schema(definitions: &mut SchemaDefinitions) -> Json {
    let description = "A port of a transport protocol.";
    definitions.text("ServicePort", description, "^[1-9][0-9]{0,4}/(tcp|udp)$", "80/tcp")
}

fn read_port(from: &mut Decoder<'_>, text: &LocatedValue<String>) -> Option<ServicePort> {
    let shown = shorten(&text.value);
    let port = text.value.parse::<ServicePort>().ok();
    if port.is_none() {
        let message = format!("ports: `{shown}` is not a port such as 80/tcp or 53/udp");
        match text.value.parse::<u16>() {
            Ok(number) if number > 0 => {
                let hint = format!("did you mean `{number}/tcp`?");
                from.mistake_with_hint(text.place, message, hint);
            }
            _ => from.mistake(text.place, message),
        }
    }
    port
}

/// A policy: a word, or a map of weights.
struct PolicyForm;

impl ValueForm for PolicyForm {
    type Value = PolicyDraft;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<PolicyDraft> {
        if let YamlValueKind::Map(_) = field.value.kind {
            let fields = from.table::<WeightedForm>(field, "a policy")?;
            let weights = from.need(&fields, WeightedForm::WEIGHTED, "this policy")?;
            return Some(PolicyDraft { policy: LoadBalancingPolicy::Weighted, weights });
        }
        let words: Vec<&str> = PolicyWord::WORDS.iter().map(|(word, _)| *word).collect();
        let needed = format!("{}, or {{weighted: {{…}}}}", list(&words));
        if from.text(field, &needed)? == "weighted" {
            let message = "policy: `weighted` says no weights";
            let hint = "write `policy: {weighted: {s1: 3, s2: 1}}`";
            from.mistake_with_hint(field.wrong(), message, hint);
            return None;
        }
        let policy = PolicyWord::read(from, field)?;
        Some(PolicyDraft { policy, weights: Vec::new() })
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        definitions.any_of(
            "Policy",
            "Which replica gets a new connection.",
            &[
                SchemaAlternative("By a rule.", PolicyWord::schema),
                SchemaAlternative("By weights.", WeightedForm::definition),
            ],
        )
    }
}

form! {
    /// How long a flow without packets is remembered.
    Idle: Span, by read_idle, like Span::schema
}

fn read_idle(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Span> {
    let idle = Span::read(from, field)?;
    let (least, most) = (Span::from_millis(1), Model::IDLE_MAX);
    if !(least..=most).contains(&idle) {
        let message = format!("{}: `{idle}` is not between {least} and {most}", field.key);
        from.mistake(field.wrong(), message);
        return None;
    }
    Some(idle)
}
