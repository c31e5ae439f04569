//! What the chains of packet filters do to packets beside letting them pass.

pub(crate) mod x_tables;

use std::collections::BTreeMap;
use std::fmt;

/// What a rule can do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PacketFilterAction {
    /// All that no rule has decided.
    PolicyDrop,
    Drop,
    Reject,
    RateLimit,
    Quota,
    /// Give to a program, which may keep or drop.
    Queue,
    Nat,
    /// Answer in the place of the destination, or give to a program of this node.
    Proxy,
    Duplicate,
    /// Send out of a device at once.
    Forward,
    Rewrite,
    /// What a map has for a packet, which is not read.
    Map,
    /// A target of x_tables, by its name there.
    Target(String),
}

impl fmt::Display for PacketFilterAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PacketFilterAction::PolicyDrop => "policy drop",
            PacketFilterAction::Drop => "drop",
            PacketFilterAction::Reject => "reject",
            PacketFilterAction::RateLimit => "rate limit",
            PacketFilterAction::Quota => "quota",
            PacketFilterAction::Queue => "queue to a program",
            PacketFilterAction::Nat => "NAT",
            PacketFilterAction::Proxy => "proxy",
            PacketFilterAction::Duplicate => "duplicate",
            PacketFilterAction::Forward => "forward",
            PacketFilterAction::Rewrite => "change packets",
            PacketFilterAction::Map => "what a map says",
            PacketFilterAction::Target(name) => return write!(f, "target {name}"),
        })
    }
}

/// What a rule can do, all of it, and how many packets it has counted, if it counts them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PacketFilterRule {
    pub(crate) acts: Vec<PacketFilterAction>,
    pub(crate) packets: Option<u64>,
    /// Whether it counts packets to which it does nothing, too.
    pub(crate) is_bound: bool,
}

/// A chain, with what its rules do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PacketFilterChain {
    /// Such as `ip table filter, chain INPUT (input)`.
    pub(crate) place: String,
    /// By what they do.
    rules: BTreeMap<Vec<PacketFilterAction>, FilterRuleCount>,
}

/// The rules that do the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct FilterRuleCount {
    rules: u64,
    /// Those that count nothing.
    silent: u64,
    packets: u64,
    is_bound: bool,
}

impl PacketFilterChain {
    pub(crate) fn new(place: String) -> PacketFilterChain {
        PacketFilterChain { place, rules: BTreeMap::new() }
    }

    /// Adds a rule, unless it lets all packets pass as they are.
    pub(crate) fn add(&mut self, rule: PacketFilterRule) {
        let PacketFilterRule { mut acts, packets, is_bound } = rule;
        if acts.is_empty() {
            return;
        }
        acts.sort();
        acts.dedup();
        let count = self.rules.entry(acts).or_default();
        count.rules += 1;
        count.silent += u64::from(packets.is_none());
        count.packets = count.packets.saturating_add(packets.unwrap_or(0));
        count.is_bound |= is_bound && packets.is_some();
    }

    /// Whether it lets all packets pass as they are.
    pub(crate) fn is_idle(&self) -> bool {
        self.rules.is_empty()
    }
}

impl fmt::Display for PacketFilterChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        for (number, (acts, count)) in self.rules.iter().enumerate() {
            let separator = if number > 0 { ", " } else { "" };
            f.write_str(separator)?;
            for (number, act) in acts.iter().enumerate() {
                write!(f, "{}{act}", if number > 0 { " + " } else { "" })?;
            }
            write!(f, " {count}")?;
        }
        Ok(())
    }
}

impl fmt::Display for FilterRuleCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FilterRuleCount { rules, silent, packets, is_bound } = *self;
        if rules > 1 {
            write!(f, "by {rules} rules ")?;
        }
        if silent == rules {
            return f.write_str("(not counted)");
        }
        write!(f, "({}{packets} packets", if is_bound { "at most " } else { "" })?;
        match silent {
            0 => f.write_str(")"),
            1 => f.write_str(", 1 rule without a counter)"),
            _ => write!(f, ", {silent} rules without a counter)"),
        }
    }
}

/// As much of a name as is shown.
pub(crate) fn shortened(name: &str) -> String {
    name.chars().take(NAME_MOST).collect()
}

const NAME_MOST: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(acts: &[PacketFilterAction], packets: Option<u64>) -> PacketFilterRule {
        PacketFilterRule { acts: acts.to_vec(), packets, is_bound: false }
    }

    #[test]
    fn rules_that_do_the_same_are_counted_together() {
        let mut chain = PacketFilterChain::new("ip table t, chain c (input)".into());
        chain.add(rule(&[], Some(9)));
        assert!(chain.is_idle(), "what lets all pass is not spoken of");
        chain.add(rule(&[PacketFilterAction::Drop], Some(30)));
        let text = "ip table t, chain c (input): drop (30 packets)";
        assert_eq!(chain.to_string(), text);
        chain.add(rule(&[PacketFilterAction::Drop], Some(7)));
        chain.add(rule(&[PacketFilterAction::Drop], None));
        chain.add(rule(&[PacketFilterAction::Reject, PacketFilterAction::RateLimit], None));
        let text = "ip table t, chain c (input): drop by 3 rules (37 packets, 1 rule \
                    without a counter), reject + rate limit (not counted)";
        assert_eq!(chain.to_string(), text);
    }

    #[test]
    fn what_counts_more_than_it_does_something_to_is_a_bound() {
        let mut chain = PacketFilterChain::new("x".into());
        chain.add(PacketFilterRule {
            is_bound: true,
            ..rule(&[PacketFilterAction::Drop], Some(100))
        });
        assert_eq!(chain.to_string(), "x: drop (at most 100 packets)");
    }
}
