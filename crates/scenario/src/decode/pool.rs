//! The pools that addresses come from.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Field, Fields};
use crate::error::Findings;
use crate::position::Place;
use crate::text::shorten;

/// One pool a family; `None` where the family is off.
#[derive(Debug, Clone)]
pub(crate) struct Pools {
    pub(crate) v4: Option<Pool<Ipv4Addr>>,
    pub(crate) v6: Option<Pool<Ipv6Addr>>,
}

/// A range of addresses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pool<A> {
    pub(crate) network: A,
    pub(crate) prefix: u8,
    /// Where the file has it; its start if it is the default.
    pub(crate) place: Place,
}

impl Default for Pools {
    fn default() -> Self {
        let place = Place::START;
        Pools {
            v4: Some(Pool { network: Ipv4Addr::new(10, 0, 0, 0), prefix: 16, place }),
            v6: Some(Pool {
                network: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0),
                prefix: 64,
                place,
            }),
        }
    }
}

impl Findings {
    /// `address`, `ipv4` and `ipv6` of the file.
    pub(super) fn pools(&mut self, file: &Fields<'_>) -> Option<Pools> {
        let mut pools = Pools::default();
        let mut given = [None; 2];
        if let Some(field) = file.find("address") {
            for text in self.names(field, "a pool such as 10.0.0.0/16, or a list of two")? {
                match self.pool(&text.value, text.place)? {
                    (IpAddr::V4(network), prefix) if given[0].is_none() => {
                        given[0] = Some(text.place);
                        pools.v4 = Some(Pool { network, prefix, place: text.place });
                    }
                    (IpAddr::V6(network), prefix) if given[1].is_none() => {
                        given[1] = Some(text.place);
                        pools.v6 = Some(Pool { network, prefix, place: text.place });
                    }
                    _ => {
                        let shown = shorten(&text.value);
                        let message = format!("address: `{shown}` is a second pool of its family");
                        self.mistake(text.place, message);
                        return None;
                    }
                }
            }
        }
        let v4 = self.family(file.find("ipv4"), given[0])?;
        let v6 = self.family(file.find("ipv6"), given[1])?;
        pools.v4 = pools.v4.filter(|_| v4);
        pools.v6 = pools.v6.filter(|_| v6);
        if let (false, false, Some(field)) = (v4, v6, file.find("ipv6")) {
            self.mistake(field.wrong(), "IPv4 and IPv6 are both off: nodes need one of them");
            return None;
        }
        Some(pools)
    }

    fn family(&mut self, switch: Option<Field<'_>>, pool: Option<Place>) -> Option<bool> {
        let Some(field) = switch else { return Some(true) };
        let on = self.flag(field)?;
        if let (false, Some(place)) = (on, pool) {
            self.mistake(
                place,
                format!("a pool for a family that `{}: false` turns off", field.key),
            );
            return None;
        }
        Some(on)
    }

    pub(super) fn pool(&mut self, text: &str, place: Place) -> Option<(IpAddr, u8)> {
        let shown = shorten(text);
        let parsed = text.split_once('/').and_then(|(network, prefix)| {
            Some((network.parse::<IpAddr>().ok()?, prefix.parse::<u8>().ok()?))
        });
        let Some((network, prefix)) = parsed else {
            let message = format!("address: `{shown}` is no pool such as 10.0.0.0/16 or fd00::/64");
            self.mistake(place, message);
            return None;
        };
        let (least, most) = if network.is_ipv4() { (8, 30) } else { (8, 126) };
        if !(least..=most).contains(&prefix) {
            let message =
                format!("address: the prefix of `{shown}` is not between /{least} and /{most}");
            self.mistake(place, message);
            return None;
        }
        let masked = mask(network, prefix);
        if masked != network {
            let message = format!("address: `{shown}` has bits beyond its prefix");
            self.mistake_with_hint(place, message, format!("did you mean `{masked}/{prefix}`?"));
            return None;
        }
        if !is_usable(next(network)) {
            self.mistake(place, format!("address: `{shown}` is no range for hosts"));
            return None;
        }
        Some((network, prefix))
    }
}

/// Whether a host of an ordinary network can have this address.
pub(crate) fn is_usable(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let first = v4.octets()[0];
            (1..=223).contains(&first) && first != 127 && !v4.is_link_local()
        }
        IpAddr::V6(v6) => {
            let special = v6.is_loopback() || v6.is_unspecified() || v6.is_multicast();
            !special && !v6.is_unicast_link_local() && v6.to_ipv4_mapped().is_none()
        }
    }
}

fn mask(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let bits = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits() & bits))
        }
        IpAddr::V6(v6) => {
            let bits = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & bits))
        }
    }
}

fn next(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(v4) => IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits() | 1)),
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() | 1)),
    }
}
