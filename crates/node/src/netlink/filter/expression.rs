//! What the expressions of a rule of nf_tables do, one after the other.

use super::super::attributes::{each_attribute, text};
use super::{counted, number};
use crate::filter::x_tables::{matching, target};
use crate::filter::{PacketFilterAction, PacketFilterRule};

/// Those of a rule that were read.
#[derive(Debug, Default)]
pub(super) struct RuleExpressionReader {
    rule: PacketFilterRule,
}

impl RuleExpressionReader {
    /// Takes the next one.
    pub(super) fn take(&mut self, expression: &[u8]) -> Option<()> {
        let (mut name, mut data) = (String::new(), None);
        each_attribute(expression, |kind, value| {
            match kind {
                NAME => name = text(value),
                DATA => data = Some(value.to_vec()),
                _ => {}
            }
            Some(())
        })?;
        // One without parameters, such as masquerading.
        let data = data.unwrap_or_default();
        self.count(&name, &data)?;
        self.rule.acts.extend(act(&name, &data)?);
        Some(())
    }

    /// What a counter has counted has passed all tests before it, and may fail one behind it.
    fn count(&mut self, name: &str, data: &[u8]) -> Option<()> {
        if name == "counter" {
            self.rule.packets = Some(counted(data)?);
            self.rule.is_bound = false;
        } else if self.rule.packets.is_some() && TESTS.contains(&name) {
            self.rule.is_bound = true;
        }
        Some(())
    }

    pub(super) fn into_rule(self) -> PacketFilterRule {
        self.rule
    }
}

/// What an expression does to packets; the outer `None`: it is not as it should be.
fn act(name: &str, data: &[u8]) -> Option<Option<PacketFilterAction>> {
    Some(match name {
        "immediate" => verdict(data)?,
        "reject" => Some(PacketFilterAction::Reject),
        "limit" => Some(PacketFilterAction::RateLimit),
        "quota" => Some(PacketFilterAction::Quota),
        "queue" => Some(PacketFilterAction::Queue),
        "masq" | "nat" | "redir" => Some(PacketFilterAction::Nat),
        "tproxy" | "synproxy" => Some(PacketFilterAction::Proxy),
        "dup" => Some(PacketFilterAction::Duplicate),
        "fwd" => Some(PacketFilterAction::Forward),
        "objref" => match attribute(data, OBJECT_KIND)?.as_deref().and_then(number) {
            Some(OBJECT_QUOTA) => Some(PacketFilterAction::Quota),
            Some(OBJECT_LIMIT) => Some(PacketFilterAction::RateLimit),
            Some(OBJECT_SYNPROXY) => Some(PacketFilterAction::Proxy),
            Some(_) => None,
            None => Some(PacketFilterAction::Map),
        },
        "lookup" => is_verdict(attribute(data, LOOKUP_TARGET)?.as_deref())
            .then_some(PacketFilterAction::Map),
        // Those that have a source write to the packet.
        "payload" => attribute(data, PAYLOAD_SOURCE)?.map(|_| PacketFilterAction::Rewrite),
        "exthdr" => {
            let reads = attribute(data, EXTHDR_TARGET)?.is_some();
            (!reads).then_some(PacketFilterAction::Rewrite)
        }
        "target" => target(&text(&attribute(data, EXTENSION_NAME)?.unwrap_or_default())),
        "match" => matching(&text(&attribute(data, EXTENSION_NAME)?.unwrap_or_default())),
        _ => None,
    })
}

fn verdict(data: &[u8]) -> Option<Option<PacketFilterAction>> {
    if !is_verdict(attribute(data, IMMEDIATE_TARGET)?.as_deref()) {
        return Some(None);
    }
    let value = attribute(data, IMMEDIATE_DATA)?.unwrap_or_default();
    let verdict = attribute(&value, DATA_VERDICT)?.unwrap_or_default();
    let code = attribute(&verdict, VERDICT_CODE)?.as_deref().and_then(number);
    // Jumps are negative.
    let code = code.filter(|code| !(JUMPS..0).contains(&code.cast_signed()));
    Some(code.and_then(|code| match code & VERDICT_MASK {
        NF_DROP => Some(PacketFilterAction::Drop),
        NF_QUEUE => Some(PacketFilterAction::Queue),
        _ => None,
    }))
}

/// Whether a register, if there is one, is that of verdicts.
fn is_verdict(register: Option<&[u8]>) -> bool {
    register.and_then(number) == Some(REGISTER_VERDICT)
}

/// The last attribute of a kind.
fn attribute(data: &[u8], wanted: u16) -> Option<Option<Vec<u8>>> {
    let mut found = None;
    each_attribute(data, |kind, value| {
        if kind == wanted {
            found = Some(value.to_vec());
        }
        Some(())
    })?;
    Some(found)
}

/// Expressions that end a rule for some packets.
const TESTS: [&str; 8] =
    ["cmp", "range", "lookup", "limit", "quota", "connlimit", "match", "objref"];

// NFTA_…
const NAME: u16 = 1;
const DATA: u16 = 2;
const IMMEDIATE_TARGET: u16 = 1;
const IMMEDIATE_DATA: u16 = 2;
const DATA_VERDICT: u16 = 2;
const VERDICT_CODE: u16 = 1;
const OBJECT_KIND: u16 = 1;
const LOOKUP_TARGET: u16 = 3;
const PAYLOAD_SOURCE: u16 = 5;
const EXTHDR_TARGET: u16 = 1;
const EXTENSION_NAME: u16 = 1;
// NFT_OBJECT_…
const OBJECT_QUOTA: u32 = 2;
const OBJECT_LIMIT: u32 = 4;
const OBJECT_SYNPROXY: u32 = 10;
/// `NFT_REG_VERDICT`.
const REGISTER_VERDICT: u32 = 0;
/// `NFT_RETURN`, the lowest of them.
const JUMPS: i32 = -5;
/// `NF_VERDICT_MASK`: a number of a queue is beside it.
const VERDICT_MASK: u32 = 0xff;
const NF_DROP: u32 = 0;
const NF_QUEUE: u32 = 3;
