//! Subnets of networks (`ipam`), and addresses of services in them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use windtunnel_model::Subnet;
use windtunnel_scenario::ScenarioMistake;
use windtunnel_scenario::yaml::{YamlKey, YamlValue, YamlValueKind};

use super::reader::ComposeReader;
use crate::import::input::shorten;
use crate::import::mapping::find;
use crate::topology::{ConversionReport, Topology};
use crate::yaml::list_of;

/// Subnets of LANs, and the addresses of nodes.
#[derive(Debug, Default)]
pub(super) struct Subnets {
    of: BTreeMap<String, Vec<Subnet>>,
    nodes: BTreeMap<String, Vec<IpAddr>>,
}

impl Subnets {
    /// Reads `ipam` of the network that becomes `lan`: one subnet of each family.
    pub(super) fn read(
        &mut self,
        reader: &ComposeReader<'_>,
        keys: &[(YamlKey, YamlValue)],
        lan: &str,
        notes: &mut ConversionReport,
    ) -> Result<(), ScenarioMistake> {
        let lost = "Keys of networks: each is a LAN";
        for (key, value) in keys {
            let is_usual =
                key.text == "driver" && reader.text(value, "driver", notes)? == "default";
            if key.text != "config" && !is_usual {
                notes.lose(lost, format!("ipam.{} of {lan}", shorten(&key.text)));
            }
        }
        let Some(YamlValue { kind: YamlValueKind::List(items), .. }) = find(keys, "config") else {
            return Ok(());
        };
        for item in items {
            for (key, value) in reader.map(item, "ipam.config")? {
                if key.text != "subnet" {
                    notes.lose(lost, format!("ipam.config.{} of {lan}", shorten(&key.text)));
                    continue;
                }
                let text = reader.text(value, "subnet", notes)?;
                let known = self.of.entry(lan.to_owned()).or_default();
                match subnet(&text) {
                    Some(it)
                        if known
                            .iter()
                            .all(|one| one.network.is_ipv4() != it.network.is_ipv4()) =>
                    {
                        known.push(it);
                    }
                    _ => notes.lose(lost, format!("subnet {} of {lan}", shorten(&text))),
                }
            }
        }
        Ok(())
    }

    /// Takes the address that a service has in the network that became `lan`. A node has one of each
    /// family that is written.
    pub(super) fn address(
        &mut self,
        reader: &ComposeReader<'_>,
        value: &YamlValue,
        node: &str,
        lan: &str,
        topology: &mut Topology,
    ) -> Result<(), ScenarioMistake> {
        let text = reader.text(value, "an address", &mut topology.notes)?;
        let is_one = topology.nodes.iter().all(|it| it.name != node || it.count.is_none());
        let known = self.nodes.entry(node.to_owned()).or_default();
        let subnets = self.of.get(lan).map(Vec::as_slice).unwrap_or_default();
        match text.parse::<IpAddr>() {
            Ok(address)
                if is_one
                    && known.iter().all(|one| one.is_ipv4() != address.is_ipv4())
                    && subnets.iter().any(|subnet| subnet.contains(address)) =>
            {
                known.push(address);
            }
            _ => {
                let text_of =
                    "Addresses outside of the network's subnet, or beside another of the node";
                topology.notes.lose(text_of, format!("{} of {node}", shorten(&text)));
            }
        }
        Ok(())
    }

    /// Gives LANs their subnets and nodes their addresses.
    pub(super) fn finish(self, topology: &mut Topology) {
        for (lan, subnets) in self.of {
            if !subnets.is_empty() && topology.lans.contains(&lan) {
                let text = |subnet: &Subnet| format!("{}/{}", subnet.network, subnet.prefix);
                topology.subnets.insert(lan, subnets.iter().map(text).collect());
            }
        }
        for node in &mut topology.nodes {
            let addresses = self.nodes.get(&node.name).filter(|addresses| !addresses.is_empty());
            if let Some(addresses) = addresses {
                let texts: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
                node.more.push(("address", list_of(&texts)));
            }
        }
    }
}

/// A subnet that a LAN can have.
fn subnet(text: &str) -> Option<Subnet> {
    let (network, prefix) = text.split_once('/')?;
    let (network, prefix) = (network.parse::<IpAddr>().ok()?, prefix.parse::<u8>().ok()?);
    let (most, bits) = if network.is_ipv4() { (30, 32) } else { (126, 128) };
    if !(8..=most).contains(&prefix) {
        return None;
    }
    let number = match network {
        IpAddr::V4(it) => u128::from(it.to_bits()),
        IpAddr::V6(it) => it.to_bits(),
    };
    let hosts = (1_u128 << (bits - u32::from(prefix))) - 1;
    let is_for_hosts = !network.is_multicast() && !network.is_loopback();
    (number & hosts == 0 && is_for_hosts).then_some(Subnet { network, prefix })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lan_can_have_a_subnet_without_bits_beyond_its_prefix() {
        for text in ["172.22.1.0/24", "10.0.0.0/8", "fd4d:6169:6c63:6f77::/64"] {
            assert!(subnet(text).is_some(), "{text}");
        }
        for text in ["172.22.1.1/24", "10.0.0.0/31", "127.0.0.0/8", "x/8", "10.0.0.0", "::/0"] {
            assert!(subnet(text).is_none(), "{text}");
        }
    }
}
