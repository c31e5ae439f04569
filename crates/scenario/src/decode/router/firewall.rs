//! Firewalls.

use serde_json::{Value as Json, json};
use windtunnel_model::plan::{
    Firewall as Model, FirewallPolicy, IpTransport, PortRange, Timeouts, TrafficSelector,
};

use super::timeouts::{TimeoutKeys, read_timeouts};
use crate::grammar::{
    Decoder, ListElement, ListForm, NameListForm, SchemaAlternative, SchemaDefinitions, ValueForm,
    YamlMapEntry, map, words,
};
use crate::position::{LocatedValue, SourceLocation};
use crate::text::shorten;

/// A firewall as the file has it.
#[derive(Debug)]
pub(crate) struct FirewallDraft {
    pub(crate) inbound: FirewallPolicy,
    pub(crate) outbound: FirewallPolicy,
    pub(crate) stateful: bool,
    pub(crate) timeouts: Timeouts,
    pub(crate) rules: Vec<RuleDraft>,
}

/// A rule as the file has it.
#[derive(Debug)]
pub(crate) struct RuleDraft {
    pub(crate) place: SourceLocation,
    pub(crate) policy: FirewallPolicy,
    pub(crate) traffic: Vec<TrafficSelector>,
    pub(crate) from: Vec<LocatedValue<String>>,
    pub(crate) to: Vec<LocatedValue<String>>,
}

map! {
    /// A firewall. The first rule that fits a packet holds; of ends the packet has those that it has
    /// inside.
    FirewallForm as "Firewall", FirewallDraft, by read_firewall {
        /// What holds from outside to inside where no rule fits; default deny.
        "in" INBOUND: PolicyWord,
        /// What holds from inside to outside where no rule fits; default allow.
        "out" OUTBOUND: PolicyWord,
        /// Whether answers to what has passed do, and ICMP errors about it; default true.
        "stateful" STATEFUL: bool,
        /// What holds for some packets.
        "rules" RULES: ListForm<RuleForm>,
        ..TimeoutKeys,
    }
}

words! {
    /// What a firewall does with a packet.
    PolicyWord as "FirewallPolicy"; FirewallPolicy {
        /// It passes.
        "allow" => FirewallPolicy::Allow,
        /// It is dropped.
        "deny" => FirewallPolicy::Deny,
        /// It is dropped, and its sender gets an ICMP message.
        "reject" => FirewallPolicy::Reject,
    }
}

map! {
    /// A rule of a firewall: one of `allow`, `deny` and `reject`, and which packets.
    RuleForm as "FirewallRule", RuleDraft, by read_rule {
        /// These pass: `any`, `tcp`, `udp`, `icmp`, a destination port such as `80/tcp`, ports such
        /// as `8000-8080/udp`, or a list of these.
        "allow" ALLOW: TrafficForm,
        /// These are dropped.
        "deny" DENY: TrafficForm,
        /// These are dropped, and their senders get an ICMP message.
        "reject" REJECT: TrafficForm,
        /// Where they come from: nodes, groups, LANs, addresses, subnets, `inside`, `outside`; default
        /// anywhere.
        "from" FROM: NameListForm,
        /// Where they go; default anywhere.
        "to" TO: NameListForm,
    }
}

impl ListElement for RuleForm {
    const LIST: &'static str = "a list of rules such as {allow: 80/tcp, to: web}";
}

fn read_firewall(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<FirewallDraft> {
    let fields = from.table::<FirewallForm>(field, "a firewall")?;
    let plain = Model::default();
    Some(FirewallDraft {
        inbound: from.read_or(&fields, FirewallForm::INBOUND, plain.inbound)?,
        outbound: from.read_or(&fields, FirewallForm::OUTBOUND, plain.outbound)?,
        stateful: from.read_or(&fields, FirewallForm::STATEFUL, plain.stateful)?,
        timeouts: read_timeouts(from, &fields)?,
        rules: from.read_or(&fields, FirewallForm::RULES, Vec::new())?,
    })
}

fn read_rule(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<RuleDraft> {
    let fields = from.table::<RuleForm>(field, "a rule")?;
    let keys = [
        (RuleForm::ALLOW, FirewallPolicy::Allow),
        (RuleForm::DENY, FirewallPolicy::Deny),
        (RuleForm::REJECT, FirewallPolicy::Reject),
    ];
    let mut given = keys.iter().filter(|(key, _)| fields.has(*key));
    let Some((key, policy)) = given.next() else {
        if !fields.unknown {
            let message = "this rule lacks one of `allow`, `deny`, `reject`";
            from.mistake(fields.place, message);
        }
        return None;
    };
    if let Some((second, _)) = given.next() {
        let place = fields.get(*second).map_or(fields.place, |field| field.place);
        let message = format!("a rule has one of `{}` and `{}`", key.name, second.name);
        from.mistake_with_hint(place, message, "write two rules: the first that fits holds");
        return None;
    }
    Some(RuleDraft {
        place: fields.place,
        policy: *policy,
        traffic: from.read(&fields, *key)??,
        from: from.read_or(&fields, RuleForm::FROM, Vec::new())?,
        to: from.read_or(&fields, RuleForm::TO, Vec::new())?,
    })
}

/// Packets that a rule is about: one kind, or a list of them.
struct TrafficForm;

impl ValueForm for TrafficForm {
    type Value = Vec<TrafficSelector>;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Vec<TrafficSelector>> {
        let needed = "packets such as any, tcp, 80/tcp or 8000-8080/udp, or a list of them";
        let mut traffic = Vec::new();
        for text in from.names(field, needed)? {
            let Some(one) = parse_traffic(&text.value) else {
                let shown = shorten(&text.value);
                let message = format!(
                    "{}: `{shown}` is not any, tcp, udp, icmp, or ports such as 80/tcp",
                    field.key
                );
                from.mistake(text.place, message);
                return None;
            };
            traffic.push(one);
        }
        if traffic.is_empty() {
            from.mistake(field.wrong(), format!("{}: this rule is about nothing", field.key));
            return None;
        }
        Some(traffic)
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        let several = |definitions: &mut SchemaDefinitions| {
            let one = traffic_schema(definitions);
            json!({"type": "array", "items": one, "minItems": 1})
        };
        definitions.any_of(
            "Traffics",
            "Packets that a rule is about.",
            &[
                SchemaAlternative("Of one kind.", traffic_schema),
                SchemaAlternative("Of several.", several),
            ],
        )
    }
}

fn traffic_schema(definitions: &mut SchemaDefinitions) -> Json {
    let description = "Packets: any, of a protocol, or to ports of it.";
    let ports = "[1-9][0-9]{0,4}(-[1-9][0-9]{0,4})?/(tcp|udp)";
    definitions.text("Traffic", description, &format!("^(any|tcp|udp|icmp|{ports})$"), "80/tcp")
}

fn parse_traffic(text: &str) -> Option<TrafficSelector> {
    let transport = |word: &str| match word {
        "tcp" => Some(IpTransport::Tcp),
        "udp" => Some(IpTransport::Udp),
        "icmp" => Some(IpTransport::Icmp),
        _ => None,
    };
    if text == "any" {
        return Some(TrafficSelector::ANY);
    }
    let Some((ports, protocol)) = text.split_once('/') else {
        return Some(TrafficSelector { transport: Some(transport(text)?), ports: None });
    };
    let transport = transport(protocol).filter(|it| *it != IpTransport::Icmp)?;
    Some(TrafficSelector { transport: Some(transport), ports: Some(PortRange::of(ports)?) })
}
