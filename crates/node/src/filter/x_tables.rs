//! The chains of tables of `iptables-legacy` and `ip6tables-legacy`. Source:
//! linux/netfilter_ipv4/ip_tables.h, linux/netfilter_ipv6/ip6_tables.h, linux/netfilter/x_tables.h.

use windtunnel_sys::x_tables::{HOOKS, XtablesFamily, XtablesTable};

use super::{PacketFilterAction, PacketFilterChain, PacketFilterRule, shortened};

/// The chains of a table. `None`: it is not as it should be.
pub(crate) fn chains(
    version: XtablesFamily,
    name: &str,
    table: &XtablesTable,
) -> Option<Vec<PacketFilterChain>> {
    let layout = XtablesEntryLayout::of(version);
    let family = if version == XtablesFamily::V4 { "iptables" } else { "ip6tables" };
    let named = |chain: &str| {
        PacketFilterChain::new(format!(
            "{family} table {}, chain {}",
            shortened(name),
            shortened(chain)
        ))
    };
    let mut found: Vec<PacketFilterChain> = Vec::new();
    let (mut at, mut rest) = (0, table.entries.as_slice());
    while !rest.is_empty() {
        let entry = XtablesEntry::first(layout, rest)?;
        let offset = u32::try_from(at).ok()?;
        if let Some(hook) = table.begins.iter().position(|begin| *begin == Some(offset)) {
            found.push(named(HOOK_NAMES[hook]));
        }
        let is_policy = table.ends.contains(&Some(offset));
        if let Some(chain) = entry.begins() {
            found.push(named(&chain));
        } else if let Some(chain) = found.last_mut() {
            chain.add(entry.rule(is_policy));
        }
        rest = rest.get(entry.bytes..)?;
        at += entry.bytes;
    }
    Some(found)
}

/// What a target of x_tables does.
pub(crate) fn target(name: &str) -> Option<PacketFilterAction> {
    match name {
        "REJECT" => Some(PacketFilterAction::Reject),
        "NFQUEUE" => Some(PacketFilterAction::Queue),
        "DNAT" | "SNAT" | "MASQUERADE" | "REDIRECT" | "NETMAP" => Some(PacketFilterAction::Nat),
        "TPROXY" | "SYNPROXY" => Some(PacketFilterAction::Proxy),
        "TEE" => Some(PacketFilterAction::Duplicate),
        "TCPMSS" | "TTL" | "HL" | "DSCP" | "TOS" | "ECN" | "TCPOPTSTRIP" => {
            Some(PacketFilterAction::Rewrite)
        }
        // These look at packets or mark them.
        "" | "LOG" | "NFLOG" | "MARK" | "CONNMARK" | "CT" | "TRACE" | "CHECKSUM" | "SET" => None,
        other => Some(PacketFilterAction::Target(shortened(other))),
    }
}

/// What a match of x_tables does beside matching.
pub(crate) fn matching(name: &str) -> Option<PacketFilterAction> {
    match name {
        "limit" | "hashlimit" => Some(PacketFilterAction::RateLimit),
        "quota" => Some(PacketFilterAction::Quota),
        _ => None,
    }
}

/// Where things are in an entry.
#[derive(Debug, Clone, Copy)]
struct XtablesEntryLayout {
    /// Of where the target is; where the next entry is stands behind that.
    target_at: usize,
    packets_at: usize,
    /// Matches begin there.
    bytes: usize,
}

impl XtablesEntryLayout {
    fn of(version: XtablesFamily) -> XtablesEntryLayout {
        match version {
            XtablesFamily::V4 => XtablesEntryLayout { target_at: 88, packets_at: 96, bytes: 112 },
            XtablesFamily::V6 => XtablesEntryLayout { target_at: 140, packets_at: 152, bytes: 168 },
        }
    }
}

/// One entry, whose parts lie within it.
struct XtablesEntry<'a> {
    bytes: usize,
    packets: u64,
    matches: &'a [u8],
    name: String,
    /// Of the target, behind its name.
    data: &'a [u8],
}

impl XtablesEntry<'_> {
    fn first(layout: XtablesEntryLayout, entries: &[u8]) -> Option<XtablesEntry<'_>> {
        let target = short(entries, layout.target_at)?;
        let bytes = short(entries, layout.target_at + 2)?;
        let all = entries.get(..bytes)?;
        let packets = u64::from_ne_bytes(*all.get(layout.packets_at..)?.first_chunk()?);
        let matches = all.get(layout.bytes..target)?;
        let target = all.get(target..)?;
        let data = target.get(EXTENSION_BYTES..)?;
        Some(XtablesEntry { bytes, packets, matches, name: extension_name(target)?, data })
    }

    /// The name of the chain that begins here, of those that programs have made, or `ERROR` behind
    /// the last chain.
    fn begins(&self) -> Option<String> {
        (self.name == "ERROR").then(|| text(self.data))
    }

    fn rule(&self, is_policy: bool) -> PacketFilterRule {
        let mut acts: Vec<PacketFilterAction> = Vec::new();
        let mut rest = self.matches;
        while let Some(name) = extension_name(rest) {
            acts.extend(matching(&name));
            let bytes = short(rest, 0).filter(|bytes| *bytes >= EXTENSION_BYTES);
            rest = bytes.and_then(|bytes| rest.get(bytes..)).unwrap_or_default();
        }
        if self.name.is_empty() {
            let verdict = self.data.first_chunk().map(|verdict| i32::from_ne_bytes(*verdict));
            match verdict {
                Some(DROP) if is_policy => acts.push(PacketFilterAction::PolicyDrop),
                Some(DROP) => acts.push(PacketFilterAction::Drop),
                Some(QUEUE) => acts.push(PacketFilterAction::Queue),
                _ => {}
            }
        } else {
            acts.extend(target(&self.name));
        }
        PacketFilterRule { acts, packets: Some(self.packets), is_bound: false }
    }
}

/// The name of a match or target.
fn extension_name(extension: &[u8]) -> Option<String> {
    extension.get(2..EXTENSION_BYTES - 1).map(text)
}

fn text(bytes: &[u8]) -> String {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

fn short(bytes: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?)))
}

/// `struct xt_entry_match` and `struct xt_entry_target`: length, name (29), revision.
const EXTENSION_BYTES: usize = 32;
/// `-NF_DROP - 1` and `-NF_QUEUE - 1`.
const DROP: i32 = -1;
const QUEUE: i32 = -4;
const HOOK_NAMES: [&str; HOOKS] = ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"];

#[cfg(test)]
mod tests {
    use super::*;

    /// An entry with a match (by name), a target, a verdict or the name of a chain.
    fn entry(version: XtablesFamily, matching: Option<&str>, target: &str, data: &[u8]) -> Vec<u8> {
        let layout = XtablesEntryLayout::of(version);
        let extension = |name: &str, data: &[u8]| {
            let mut bytes = vec![0; EXTENSION_BYTES];
            bytes[2..2 + name.len()].copy_from_slice(name.as_bytes());
            bytes.extend(data);
            bytes.resize(bytes.len().next_multiple_of(8), 0);
            let length = u16::try_from(bytes.len()).unwrap();
            bytes[..2].copy_from_slice(&length.to_ne_bytes());
            bytes
        };
        let mut bytes = vec![0; layout.bytes];
        bytes[layout.packets_at] = 7;
        bytes.extend(matching.map_or(Vec::new(), |name| extension(name, &[])));
        let target_at = u16::try_from(bytes.len()).unwrap();
        bytes.extend(extension(target, data));
        let length = u16::try_from(bytes.len()).unwrap();
        bytes[layout.target_at..][..2].copy_from_slice(&target_at.to_ne_bytes());
        bytes[layout.target_at + 2..][..2].copy_from_slice(&length.to_ne_bytes());
        bytes
    }

    /// INPUT with a rule and a policy, and a chain of programs, as the kernel has them.
    fn table(version: XtablesFamily) -> XtablesTable {
        let parts = [
            entry(version, Some("limit"), "REJECT", &[0; 4]),
            entry(version, None, "", &DROP.to_ne_bytes()),
            entry(version, None, "ERROR", b"own"),
            entry(version, None, "", &DROP.to_ne_bytes()),
            entry(version, None, "ERROR", b"ERROR"),
        ];
        let end = u32::try_from(parts[0].len()).unwrap();
        let mut table =
            XtablesTable { begins: [None; HOOKS], ends: [None; HOOKS], entries: parts.concat() };
        (table.begins[1], table.ends[1]) = (Some(0), Some(end));
        table
    }

    #[test]
    fn rules_and_policies_are_those_of_their_chains() {
        for (version, family) in [(XtablesFamily::V4, "iptables"), (XtablesFamily::V6, "ip6tables")]
        {
            let chains = chains(version, "filter", &table(version)).unwrap();
            let described: Vec<String> = chains
                .iter()
                .filter(|it| !it.is_idle())
                .map(PacketFilterChain::to_string)
                .collect();
            let input = format!(
                "{family} table filter, chain INPUT: policy drop (7 packets), reject + rate limit \
                 (7 packets)"
            );
            let own = format!("{family} table filter, chain own: drop (7 packets)");
            assert_eq!(described, [input, own]);
        }
    }

    #[test]
    fn what_is_cut_off_or_spoilt_is_none_or_less_and_no_panic() {
        let whole = table(XtablesFamily::V4);
        for length in 0..whole.entries.len() {
            let _ = chains(
                XtablesFamily::V4,
                "filter",
                &XtablesTable { entries: whole.entries[..length].to_vec(), ..whole.clone() },
            );
        }
        for at in 0..whole.entries.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut spoilt = whole.clone();
                spoilt.entries[at] = value;
                let _ = chains(XtablesFamily::V4, "filter", &spoilt);
            }
        }
    }
}
