//! The chains of nf_tables in a network namespace. Source: linux/netfilter/nf_tables.h,
//! linux/netfilter/nfnetlink.h.

mod expression;

use std::collections::BTreeMap;
use std::io;

use super::Netlink;
use super::attributes::{each_attribute, text};
use super::message::{HEADER, RtnetlinkMessage};
use crate::filter::{PacketFilterAction, PacketFilterChain, PacketFilterRule, shortened};
use expression::RuleExpressionReader;

/// What there is of nf_tables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ruleset {
    /// By family, table and name.
    chains: BTreeMap<(u8, String, String), PacketFilterChain>,
    /// Tables by family and name, and whether they are asleep.
    tables: BTreeMap<(u8, String), bool>,
    /// Rules and chains for which there was no room.
    untold: u64,
    /// Whether there were tables at some time.
    has_changed: bool,
}

impl Netlink {
    /// The rules of nf_tables, by a socket for packet filters. Where there never were any, this is
    /// one question.
    pub(crate) fn ruleset(&mut self) -> io::Result<Ruleset> {
        let mut found = Ruleset::default();
        let generation = self.get(request(GETGEN), kind(NEWGEN))?;
        found.has_changed = generation_of(&generation) != Some(FIRST_GENERATION);
        if !found.has_changed {
            return Ok(found);
        }
        self.dump(request(GETTABLE), kind(NEWTABLE), |message| found.take_table(message))?;
        if !found.tables.is_empty() {
            self.dump(request(GETCHAIN), kind(NEWCHAIN), |message| found.take_chain(message))?;
            self.dump(request(GETRULE), kind(NEWRULE), |message| found.take_rule(message))?;
        }
        Ok(found)
    }
}

impl Ruleset {
    /// What it does to packets, a few words for each chain.
    pub(crate) fn describe(&self) -> Vec<String> {
        let acting = self.chains.values().filter(|chain| !chain.is_idle());
        let mut all: Vec<String> = acting.map(PacketFilterChain::to_string).collect();
        if self.untold > 0 {
            all.push(format!("chains beyond the first {CHAINS_MAX}, which are not read"));
        }
        if self.has_changed && self.tables.is_empty() {
            all.push("rules of nftables, removed before the end".into());
        }
        all
    }

    fn take_table(&mut self, message: &[u8]) -> Option<()> {
        let (mut name, mut flags) = (String::new(), 0);
        each_attribute(body(message)?, |kind, value| {
            match kind {
                TABLE_NAME => name = text(value),
                TABLE_FLAGS => flags = number(value)?,
                _ => {}
            }
            Some(())
        })?;
        if self.tables.len() < CHAINS_MAX {
            self.tables.insert((family(message)?, name), flags & DORMANT != 0);
        }
        Some(())
    }

    fn take_chain(&mut self, message: &[u8]) -> Option<()> {
        let (mut table, mut name) = (String::new(), String::new());
        let (mut hook, mut drops, mut packets) = (None, false, None);
        each_attribute(body(message)?, |kind, value| {
            match kind {
                CHAIN_TABLE => table = text(value),
                CHAIN_NAME => name = text(value),
                CHAIN_HOOK => each_attribute(value, |kind, value| {
                    if kind == HOOK_NUMBER {
                        hook = Some(number(value)?);
                    }
                    Some(())
                })?,
                CHAIN_POLICY => drops = number(value)? == POLICY_DROP,
                CHAIN_COUNTERS => packets = Some(counted(value)?),
                _ => {}
            }
            Some(())
        })?;
        let family = family(message)?;
        if let Some(chain) = self.chain(family, table, name, hook)
            && drops
        {
            chain.add(PacketFilterRule {
                acts: vec![PacketFilterAction::PolicyDrop],
                packets,
                is_bound: false,
            });
        }
        Some(())
    }

    fn take_rule(&mut self, message: &[u8]) -> Option<()> {
        let (mut table, mut chain) = (String::new(), String::new());
        let mut expressions = RuleExpressionReader::default();
        each_attribute(body(message)?, |kind, value| {
            match kind {
                RULE_TABLE => table = text(value),
                RULE_CHAIN => chain = text(value),
                RULE_EXPRESSIONS => each_attribute(value, |_, one| expressions.take(one))?,
                _ => {}
            }
            Some(())
        })?;
        if let Some(chain) = self.chain(family(message)?, table, chain, None) {
            chain.add(expressions.into_rule());
        }
        Some(())
    }

    /// The chain of that name; made where it is new, and there is room for it.
    fn chain(
        &mut self,
        family: u8,
        table: String,
        name: String,
        hook: Option<u32>,
    ) -> Option<&mut PacketFilterChain> {
        if self.chains.len() >= CHAINS_MAX
            && !self.chains.contains_key(&(family, table.clone(), name.clone()))
        {
            self.untold += 1;
            return None;
        }
        let asleep = self.tables.get(&(family, table.clone())) == Some(&true);
        let asleep = if asleep { ", asleep" } else { "" };
        let hook = hook.map_or(String::new(), |hook| format!(" ({})", hook_name(family, hook)));
        let (shown, of) = (shortened(&name), shortened(&table));
        let place = format!("{} table {of}{asleep}, chain {shown}{hook}", family_name(family));
        Some(
            self.chains
                .entry((family, table, name))
                .or_insert_with(|| PacketFilterChain::new(place)),
        )
    }
}

fn request(message: u16) -> RtnetlinkMessage {
    // struct nfgenmsg: family (all), version, id.
    RtnetlinkMessage::new(kind(message), &[0; NFGENMSG_BYTES])
}

const fn kind(message: u16) -> u16 {
    (SUBSYSTEM << 8) | message
}

fn generation_of(message: &[u8]) -> Option<u32> {
    let mut generation = None;
    each_attribute(body(message)?, |kind, value| {
        if kind == GENERATION {
            generation = Some(number(value)?);
        }
        Some(())
    })?;
    generation
}

/// The attributes of a message.
fn body(message: &[u8]) -> Option<&[u8]> {
    message.get(HEADER + NFGENMSG_BYTES..)
}

fn family(message: &[u8]) -> Option<u8> {
    message.get(HEADER).copied()
}

/// A number in network order, as those of nf_tables are.
fn number(value: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(*value.first_chunk()?))
}

/// The packets of a counter.
fn counted(counter: &[u8]) -> Option<u64> {
    let mut packets = 0;
    each_attribute(counter, |kind, value| {
        if kind == COUNTER_PACKETS {
            packets = u64::from_be_bytes(*value.first_chunk()?);
        }
        Some(())
    })?;
    Some(packets)
}

fn family_name(family: u8) -> &'static str {
    match family {
        1 => "inet",
        2 => "ip",
        3 => ARP,
        5 => NETDEV,
        7 => "bridge",
        10 => "ip6",
        _ => "other",
    }
}

fn hook_name(family: u8, hook: u32) -> &'static str {
    match (family_name(family), hook) {
        (ARP, 0) => "input",
        (ARP, 1) => "output",
        (NETDEV, 0) | (_, 5) => "ingress",
        (NETDEV, 1) => "egress",
        (_, 0) => "prerouting",
        (_, 1) => "input",
        (_, 2) => "forward",
        (_, 3) => "output",
        (_, 4) => "postrouting",
        _ => "another hook",
    }
}

const ARP: &str = "arp";
const NETDEV: &str = "netdev";

/// `NFNL_SUBSYS_NFTABLES`.
const SUBSYSTEM: u16 = 10;
const NFGENMSG_BYTES: usize = 4;
/// That of a network namespace in which nothing was ever changed.
const FIRST_GENERATION: u32 = 1;
/// More are not kept: what programs make must not fill the init's memory.
const CHAINS_MAX: usize = 10_000;

// NFT_MSG_…
const NEWTABLE: u16 = 0;
const GETTABLE: u16 = 1;
const NEWCHAIN: u16 = 3;
const GETCHAIN: u16 = 4;
const NEWRULE: u16 = 6;
const GETRULE: u16 = 7;
const NEWGEN: u16 = 15;
const GETGEN: u16 = 16;

// NFTA_…
const GENERATION: u16 = 1;
const TABLE_NAME: u16 = 1;
const TABLE_FLAGS: u16 = 2;
const DORMANT: u32 = 1;
const CHAIN_TABLE: u16 = 1;
const CHAIN_NAME: u16 = 3;
const CHAIN_HOOK: u16 = 4;
const CHAIN_POLICY: u16 = 5;
const CHAIN_COUNTERS: u16 = 8;
const HOOK_NUMBER: u16 = 1;
const POLICY_DROP: u32 = 0;
const COUNTER_PACKETS: u16 = 2;
const RULE_TABLE: u16 = 1;
const RULE_CHAIN: u16 = 2;
const RULE_EXPRESSIONS: u16 = 4;

#[cfg(any(test, feature = "fuzz"))]
/// Takes all messages of an answer, of whatever kind, as an exact kernel and as a broken one sends them.
pub(crate) fn read_answer(datagram: &[u8]) -> Ruleset {
    let mut found = Ruleset::default();
    let mut rest = datagram;
    while let Some((message, behind)) = super::first_message(rest) {
        let taken = match u16::from_ne_bytes([message[4], message[5]]) {
            it if it == kind(NEWTABLE) => found.take_table(message),
            it if it == kind(NEWCHAIN) => found.take_chain(message),
            it if it == kind(NEWRULE) => found.take_rule(message),
            it if it == kind(NEWGEN) => generation_of(message).map(drop),
            _ => Some(()),
        };
        if taken.is_none() {
            break;
        }
        rest = behind;
    }
    found
}

#[cfg(test)]
pub(crate) mod tests;
