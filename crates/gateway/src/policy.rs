//! What may be reached, and what that is outside.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};
use windtunnel_model::plan::{InternetAccess, InternetAllowRule};
use windtunnel_wire::icmp::IcmpErrorKind;

use crate::settings::GatewaySettings;

/// What may be reached, as far as addresses alone say it.
#[derive(Debug, Clone)]
pub struct EgressPolicy {
    allow_internet: bool,
    allow_host: bool,
    internet: InternetAccess,
    inside: BTreeSet<IpAddr>,
}

/// Why something is not reached, in the order of names: reports list counts in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EgressRefusal {
    /// The machine's own rules forbid it.
    Denied,
    /// The run may not reach the machine's loopback.
    HostNotAllowed,
    /// It belongs to the network, where nothing has it.
    Inside,
    /// It is the machine itself, or means something on a link of its own only.
    Machine,
    /// It has no meaning as a destination: several hosts, or none.
    NoHost,
    /// The machine has no way there.
    NoRoute,
    /// The run may not reach the outside.
    NotAllowed,
    /// The file's list has it not.
    NotListed,
}

impl EgressRefusal {
    /// The word for it in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            EgressRefusal::NotAllowed => "not_allowed",
            EgressRefusal::HostNotAllowed => "host_not_allowed",
            EgressRefusal::NotListed => "not_listed",
            EgressRefusal::Machine => "machine",
            EgressRefusal::Inside => "inside",
            EgressRefusal::NoHost => "no_host",
            EgressRefusal::NoRoute => "no_route",
            EgressRefusal::Denied => "denied",
        }
    }

    /// What the sender is answered.
    pub(crate) fn kind(self) -> IcmpErrorKind {
        match self {
            EgressRefusal::Inside => IcmpErrorKind::HostUnreachable,
            EgressRefusal::NoRoute => IcmpErrorKind::NetUnreachable,
            _ => IcmpErrorKind::AdminProhibited,
        }
    }
}

impl EgressPolicy {
    /// That of a run.
    #[must_use]
    pub fn new(settings: &GatewaySettings) -> EgressPolicy {
        EgressPolicy {
            allow_internet: settings.allow_internet,
            allow_host: settings.allow_host,
            internet: settings.internet.clone(),
            inside: settings.inside.clone(),
        }
    }

    /// The address outside that a destination is; with `None` as port, for ICMP echo. Whether that
    /// is an address of the machine itself has to be looked at in the machine.
    ///
    /// # Errors
    /// Why it is not reached.
    pub fn outside(&self, destination: IpAddr, port: Option<u16>) -> Result<IpAddr, EgressRefusal> {
        if self.is_host(destination) {
            return self.host(destination);
        }
        if self.inside.contains(&destination) {
            return Err(EgressRefusal::Inside);
        }
        check_address(destination)?;
        if !self.allow_internet {
            return Err(EgressRefusal::NotAllowed);
        }
        match &self.internet.allow {
            Some(list) if !list.iter().any(|it| it.permits(destination, port)) => {
                Err(EgressRefusal::NotListed)
            }
            _ => Ok(destination),
        }
    }

    /// Whether an address leads to the machine's loopback.
    #[must_use]
    pub fn is_host(&self, address: IpAddr) -> bool {
        self.internet.host_addresses().any(|host| host == address)
    }

    /// Whether names are resolved.
    ///
    /// # Errors
    /// Why they are not.
    pub fn names(&self) -> Result<(), EgressRefusal> {
        let listed = |list: &Vec<InternetAllowRule>| list.contains(&InternetAllowRule::Dns);
        match (self.allow_internet, self.internet.allow.as_ref()) {
            (false, _) => Err(EgressRefusal::NotAllowed),
            (true, Some(list)) if !listed(list) => Err(EgressRefusal::NotListed),
            (true, _) => Ok(()),
        }
    }

    fn host(&self, like: IpAddr) -> Result<IpAddr, EgressRefusal> {
        match (self.allow_host, like) {
            (false, _) => Err(EgressRefusal::HostNotAllowed),
            (true, IpAddr::V4(_)) => Ok(Ipv4Addr::LOCALHOST.into()),
            (true, IpAddr::V6(_)) => Ok(Ipv6Addr::LOCALHOST.into()),
        }
    }
}

/// Refuses addresses that mean the machine itself, something of one link, or no single host (RFC
/// 6890).
fn check_address(address: IpAddr) -> Result<(), EgressRefusal> {
    match address {
        IpAddr::V4(v4) => check_v4(v4),
        IpAddr::V6(v6) => check_v6(v6),
    }
}

fn check_v4(address: Ipv4Addr) -> Result<(), EgressRefusal> {
    match address.octets() {
        // "This network" is the machine itself to its kernel.
        [0, ..] | [127, ..] => Err(EgressRefusal::Machine),
        [169, 254, ..] => Err(EgressRefusal::Machine),
        [224..=255, ..] => Err(EgressRefusal::NoHost),
        _ => Ok(()),
    }
}

/// What begins with 64 zeros is the machine itself or an IPv4 address in one of IPv6 (mapped,
/// compatible, translated: RFC 4291, 2.5.5; RFC 2765, 2.1), which the kernel might take for that:
/// refused, whatever it is.
fn check_v6(address: Ipv6Addr) -> Result<(), EgressRefusal> {
    let [first, second, third, fourth, ..] = address.segments();
    if [first, second, third, fourth] == [0; 4] {
        return Err(EgressRefusal::Machine);
    }
    // Link-local (RFC 4291, 2.5.6), and site-local, which was deprecated (RFC 3879).
    if first & 0xffc0 == 0xfe80 || first & 0xffc0 == 0xfec0 {
        return Err(EgressRefusal::Machine);
    }
    if address.is_multicast() { Err(EgressRefusal::NoHost) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(allow: Option<&[&str]>) -> GatewaySettings {
        let allow = allow.map(|list| list.iter().map(|text| text.parse().unwrap()).collect());
        GatewaySettings {
            allow_internet: true,
            internet: InternetAccess {
                host_v4: "10.0.0.9".parse().ok(),
                host_v6: "fd00::9".parse().ok(),
                allow,
            },
            inside: ["10.0.0.1".parse().unwrap(), "fd00::1".parse().unwrap()].into(),
            ..GatewaySettings::default()
        }
    }

    fn outside(
        settings: &GatewaySettings,
        address: &str,
        port: u16,
    ) -> Result<IpAddr, EgressRefusal> {
        EgressPolicy::new(settings).outside(address.parse().unwrap(), Some(port))
    }

    #[test]
    fn the_machine_itself_is_never_reached_by_an_address_of_its_own() {
        let all = GatewaySettings { allow_host: true, ..settings(None) };
        for address in [
            "127.0.0.1",
            "127.8.9.1",
            "0.0.0.0",
            "0.1.2.3",
            "169.254.169.254",
            "::1",
            "::",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:192.0.2.1",
            "::ffff:0:127.0.0.1",
            "fe80::1",
            "febf::1",
            "fec0::1",
        ] {
            assert_eq!(outside(&all, address, 80), Err(EgressRefusal::Machine), "{address}");
        }
    }

    #[test]
    fn what_is_no_single_host_is_refused() {
        for address in ["224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255", "ff02::1"] {
            assert_eq!(
                outside(&settings(None), address, 80),
                Err(EgressRefusal::NoHost),
                "{address}"
            );
        }
    }

    #[test]
    fn the_host_is_reached_with_its_own_permission_only() {
        let denied = settings(None);
        for address in ["10.0.0.9", "fd00::9"] {
            assert_eq!(outside(&denied, address, 80), Err(EgressRefusal::HostNotAllowed));
        }
        let allowed =
            GatewaySettings { allow_internet: false, allow_host: true, ..settings(Some(&[])) };
        assert_eq!(outside(&allowed, "10.0.0.9", 80), Ok(Ipv4Addr::LOCALHOST.into()));
        assert_eq!(outside(&allowed, "fd00::9", 80), Ok(Ipv6Addr::LOCALHOST.into()));
        assert_eq!(outside(&allowed, "192.0.2.1", 80), Err(EgressRefusal::NotAllowed));
    }

    #[test]
    fn an_address_of_the_network_is_not_looked_for_outside() {
        assert_eq!(outside(&settings(None), "10.0.0.1", 80), Err(EgressRefusal::Inside));
        assert_eq!(outside(&settings(None), "fd00::1", 80), Err(EgressRefusal::Inside));
    }

    #[test]
    fn a_list_lets_pass_what_it_names() {
        let listed = settings(Some(&["192.0.2.0/24:443", "[2001:db8::]/32"]));
        let address: IpAddr = "192.0.2.7".parse().unwrap();
        assert_eq!(outside(&listed, "192.0.2.7", 443), Ok(address));
        assert_eq!(outside(&listed, "192.0.2.7", 80), Err(EgressRefusal::NotListed));
        assert_eq!(outside(&listed, "198.51.100.1", 443), Err(EgressRefusal::NotListed));
        assert!(outside(&listed, "2001:db8::1", 5).is_ok());
        let policy = EgressPolicy::new(&listed);
        assert_eq!(policy.outside(address, None), Err(EgressRefusal::NotListed));
        assert_eq!(policy.names(), Err(EgressRefusal::NotListed));
        assert_eq!(EgressPolicy::new(&settings(Some(&["dns"]))).names(), Ok(()));
        assert_eq!(EgressPolicy::new(&settings(None)).names(), Ok(()));
        // A list opens nothing that is the machine's own.
        let all = settings(Some(&["0.0.0.0/0", "[::]/0"]));
        assert_eq!(outside(&all, "127.0.0.1", 80), Err(EgressRefusal::Machine));
    }
}
