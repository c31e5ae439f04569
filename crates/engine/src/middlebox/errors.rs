//! ICMP errors at a NAT, which are about packets that were translated (RFC 5508, 4).

use core::net::{IpAddr, Ipv4Addr};

use windtunnel_model::plan::{IpTransport, MiddleboxSide};
use windtunnel_nat::{FlowEndpoints, Ipv4Endpoint, NetworkAddressTranslator};
use windtunnel_wire::translate::IcmpQuotedPacket;

use super::changes::pair;
use super::{PacketDenial, PacketRewrite, RouterMiddlebox};
use crate::records::RouterReason;

impl RouterMiddlebox {
    /// What is written into an ICMP error of the router itself about a packet as it was when it had
    /// been translated; `None`: it is for no node.
    pub(crate) fn readdress(
        &self,
        destination: IpAddr,
        quoted: &IcmpQuotedPacket,
    ) -> Option<PacketRewrite> {
        let mut changes = PacketRewrite::default();
        let nat = self.nat.as_ref()?;
        let transport = IpTransport::of_number(quoted.protocol)?;
        if let IpAddr::V4(destination) = destination
            && self.is_external(destination)
        {
            let external = Ipv4Endpoint { address: quoted.source.0, port: quoted.source.1 };
            let internal = pair(nat.internal(transport, external)?);
            (changes.ends.destination, changes.quoted.source) = (Some(internal), Some(internal));
        }
        let back = back_of(transport, quoted);
        let known = self.externals.iter().find_map(|it| nat.external(&back, *it));
        changes.quoted.destination = known.map(pair);
        Some(changes)
    }
}

/// An error about what an external endpoint has sent. It says nothing of a session (RFC 4787,
/// REQ-12).
pub(super) fn enter_error(
    nat: &NetworkAddressTranslator,
    came: MiddleboxSide,
    quoted: &IcmpQuotedPacket,
    changes: &mut PacketRewrite,
) -> Result<(), PacketDenial> {
    let none = PacketDenial::silent(RouterReason::NoMapping);
    let transport = IpTransport::of_number(quoted.protocol).ok_or(none)?;
    let external = Ipv4Endpoint { address: quoted.source.0, port: quoted.source.1 };
    let internal = pair(nat.internal(transport, external).ok_or(none)?);
    (changes.ends.destination, changes.quoted.source) = (Some(internal), Some(internal));
    if came == MiddleboxSide::Inside {
        // From the other end of a hairpin (RFC 5508, REQ-7).
        let own = nat.external(&back_of(transport, quoted), external.address).ok_or(none)?;
        (changes.ends.source, changes.quoted.destination) = (Some(pair(own)), Some(pair(own)));
    }
    Ok(())
}

/// An error about what an internal endpoint was sent.
pub(super) fn leave_error(
    nat: &NetworkAddressTranslator,
    external: Ipv4Addr,
    quoted: &IcmpQuotedPacket,
    changes: &mut PacketRewrite,
) -> Result<(), PacketDenial> {
    let none = PacketDenial::silent(RouterReason::NoMapping);
    let transport = IpTransport::of_number(quoted.protocol).ok_or(none)?;
    let known = nat.external(&back_of(transport, quoted), external).ok_or(none)?;
    // Whichever router inside sends it, it comes from the NAT's address (RFC 5508, REQ-5).
    changes.ends.source = Some((known.address, 0));
    changes.quoted.destination = Some(pair(known));
    Ok(())
}

/// The flow of what the receiver of a quoted packet sends.
fn back_of(transport: IpTransport, quoted: &IcmpQuotedPacket) -> FlowEndpoints {
    let is_query = transport == IpTransport::Icmp;
    let port = if is_query { 0 } else { quoted.source.1 };
    FlowEndpoints {
        transport,
        local: Ipv4Endpoint { address: quoted.destination.0, port: quoted.destination.1 },
        remote: Ipv4Endpoint { address: quoted.source.0, port },
    }
}
