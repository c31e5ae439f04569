//! LANs and their subnets.

use std::net::IpAddr;

use windtunnel_model::Subnet;

use super::{At, Field};
use crate::error::Findings;
use crate::keys;
use crate::text::shorten;
use crate::tree::Kind;

/// A LAN as the file has it.
#[derive(Debug)]
pub(crate) struct LanDraft {
    pub(crate) name: At<String>,
    /// The subnets that it is given.
    pub(crate) subnets: Vec<At<Subnet>>,
}

impl Findings {
    /// `lans`: a list of names, or a map of names with what is known of each.
    pub(super) fn lans(&mut self, field: Field<'_>) -> Vec<LanDraft> {
        if let Kind::Map(_) = field.value.kind {
            let Some(fields) = self.map(field, "a map of names and LANs") else {
                return Vec::new();
            };
            return fields.all().filter_map(|entry| self.lan(entry)).collect();
        }
        let Some(items) = self.list(field, "a list of names, or a map of names and LANs") else {
            return Vec::new();
        };
        let names = items.filter_map(|item| self.text_at(item, "a name"));
        names.map(|name| LanDraft { name, subnets: Vec::new() }).collect()
    }

    fn lan(&mut self, entry: Field<'_>) -> Option<LanDraft> {
        let name = At { value: entry.key.to_owned(), place: entry.place };
        if !entry.is_some() {
            return Some(LanDraft { name, subnets: Vec::new() });
        }
        let fields = self.fields(entry, "a LAN", keys::LAN)?;
        let mut lan = LanDraft { name, subnets: Vec::new() };
        let Some(address) = fields.find("address") else { return Some(lan) };
        for text in self.names(address, "a subnet such as 192.168.1.0/24, or a list of two")? {
            let (network, prefix) = self.pool(&text.value, text.place)?;
            let same = |known: &At<Subnet>| known.value.network.is_ipv4() == network.is_ipv4();
            if lan.subnets.iter().any(same) {
                let family = if matches!(network, IpAddr::V4(_)) { "IPv4" } else { "IPv6" };
                let shown = shorten(&text.value);
                let message = format!("address: `{shown}` is a second {family} subnet of this LAN");
                self.mistake(text.place, message);
                return None;
            }
            lan.subnets.push(At { value: Subnet { network, prefix }, place: text.place });
        }
        Some(lan)
    }
}
