//! Devices that are ports of bridges. Source: rtnetlink(7), linux/if_link.h, linux/if_bridge.h.

use std::io;

use super::Netlink;
use super::attributes::{each_attribute, number, text};
use super::message::{HEADER, RtnetlinkMessage};
use super::number::{
    BR_STATE_FORWARDING, IFLA_BRPORT_STATE, IFLA_IFNAME, IFLA_INFO_SLAVE_DATA,
    IFLA_INFO_SLAVE_KIND, IFLA_LINKINFO, IFLA_MASTER, RTM_GETLINK, RTM_NEWLINK,
};

/// A port of a bridge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BridgePort {
    pub(crate) name: String,
    /// Index of the bridge.
    pub(crate) bridge: u32,
    /// `BR_STATE_…`.
    pub(crate) state: u8,
}

impl BridgePort {
    /// Why it forwards nothing; `None` if it forwards.
    pub(crate) fn idle(&self) -> Option<&'static str> {
        match self.state {
            BR_STATE_FORWARDING => None,
            0 => Some("disabled"),
            1 => Some("listening"),
            2 => Some("learning"),
            _ => Some("blocking"),
        }
    }
}

impl Netlink {
    /// All ports of all bridges.
    pub(crate) fn bridge_ports(&mut self) -> io::Result<Vec<BridgePort>> {
        let mut all = Vec::new();
        let request = RtnetlinkMessage::new(RTM_GETLINK, &[0; IFINFOMSG_BYTES]);
        self.dump(request, RTM_NEWLINK, |message| {
            all.extend(port(message)?);
            Some(())
        })?;
        Ok(all)
    }
}

/// What a message says of a device, where that is a port; the outer `None`: the message is not as it
/// should be.
pub(crate) fn port(message: &[u8]) -> Option<Option<BridgePort>> {
    let (mut name, mut bridge, mut kind, mut state) = (String::new(), 0, String::new(), None);
    each_attribute(message.get(HEADER + IFINFOMSG_BYTES..)?, |attribute, value| {
        match attribute {
            IFLA_IFNAME => name = text(value),
            IFLA_MASTER => bridge = number(value)?,
            IFLA_LINKINFO => each_attribute(value, |attribute, value| {
                match attribute {
                    IFLA_INFO_SLAVE_KIND => kind = text(value),
                    IFLA_INFO_SLAVE_DATA => each_attribute(value, |attribute, value| {
                        if attribute == IFLA_BRPORT_STATE {
                            state = Some(*value.first()?);
                        }
                        Some(())
                    })?,
                    _ => {}
                }
                Some(())
            })?,
            _ => {}
        }
        Some(())
    })?;
    let state = state.filter(|_| kind == "bridge");
    Some(state.map(|state| BridgePort { name, bridge, state }))
}

const IFINFOMSG_BYTES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(kind: &str, state: u8) -> Vec<u8> {
        let message =
            RtnetlinkMessage::new(RTM_NEWLINK, &[0; IFINFOMSG_BYTES]).text(IFLA_IFNAME, "eth0");
        let message = message.number(IFLA_MASTER, 7).nested(IFLA_LINKINFO, &[], |link| {
            link.text(IFLA_INFO_SLAVE_KIND, kind).nested(IFLA_INFO_SLAVE_DATA, &[], |data| {
                data.attribute(IFLA_BRPORT_STATE, &[state])
            })
        });
        let mut bytes = Vec::new();
        message.write(&mut bytes, 2, 1);
        bytes
    }

    #[test]
    fn a_port_has_its_bridge_and_its_state_and_other_devices_are_no_ports() {
        let found = port(&answer("bridge", 4)).unwrap().unwrap();
        assert_eq!(found, BridgePort { name: "eth0".into(), bridge: 7, state: 4 });
        assert_eq!(found.idle(), Some("blocking"));
        assert_eq!(port(&answer("bridge", 3)).unwrap().unwrap().idle(), None);
        assert_eq!(port(&answer("bond", 4)), Some(None));
    }
}
