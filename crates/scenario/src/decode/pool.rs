//! The pools that addresses come from.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::grammar::{Decoder, Fields, SchemaKey, YamlMapEntry, form, map, one_or_two};
use crate::position::SourceLocation;
use crate::text::shorten;

/// One pool a family; `None` where the family is off.
#[derive(Debug, Clone)]
pub(crate) struct AddressFamilyPools {
    pub(crate) v4: Option<AddressPool<Ipv4Addr>>,
    pub(crate) v6: Option<AddressPool<Ipv6Addr>>,
}

/// A range of addresses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AddressPool<A> {
    pub(crate) network: A,
    pub(crate) prefix: u8,
    /// Where the file has it; its start if it is the default.
    pub(crate) place: SourceLocation,
}

impl Default for AddressFamilyPools {
    fn default() -> Self {
        let place = SourceLocation::START;
        AddressFamilyPools {
            v4: Some(AddressPool { network: Ipv4Addr::new(10, 0, 0, 0), prefix: 16, place }),
            v6: Some(AddressPool {
                network: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0),
                prefix: 64,
                place,
            }),
        }
    }
}

map! {
    /// What the file says of addresses.
    PoolTable {
        /// Pools that addresses come from: an IPv4 range, an IPv6 range, or a list of both; default
        /// 10.0.0.0/16 and fd00::/64.
        "address" ADDRESS: GivenPools,
        /// Whether nodes have IPv4 addresses; default true.
        "ipv4" IPV4: bool,
        /// Whether nodes have IPv6 addresses; default true.
        "ipv6" IPV6: bool,
    }
}

form! {
    /// Pools as the file has them: at most one a family.
    GivenPools: AddressFamilyPools, by read_given_pools, like one_or_two
}

fn read_given_pools(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<AddressFamilyPools> {
    let mut given = AddressFamilyPools { v4: None, v6: None };
    for text in from.names(field, "a pool such as 10.0.0.0/16, or a list of two")? {
        let place = text.place;
        match read_pool(from, &text.value, place)? {
            (IpAddr::V4(network), prefix) if given.v4.is_none() => {
                given.v4 = Some(AddressPool { network, prefix, place });
            }
            (IpAddr::V6(network), prefix) if given.v6.is_none() => {
                given.v6 = Some(AddressPool { network, prefix, place });
            }
            _ => {
                let shown = shorten(&text.value);
                let message = format!("address: `{shown}` is a second pool of its family");
                from.mistake(place, message);
                return None;
            }
        }
    }
    Some(given)
}

/// Reads `address`, `ipv4` and `ipv6` of the file.
pub(super) fn read_pools(from: &mut Decoder<'_>, file: &Fields<'_>) -> Option<AddressFamilyPools> {
    let given =
        from.read_or(file, PoolTable::ADDRESS, AddressFamilyPools { v4: None, v6: None })?;
    let v4 = read_switch(from, file, PoolTable::IPV4, given.v4.map(|pool| pool.place))?;
    let v6 = read_switch(from, file, PoolTable::IPV6, given.v6.map(|pool| pool.place))?;
    if let (false, false, Some(field)) = (v4, v6, file.get(PoolTable::IPV6)) {
        from.mistake(field.wrong(), "IPv4 and IPv6 are both off: nodes need one of them");
        return None;
    }
    let default = AddressFamilyPools::default();
    Some(AddressFamilyPools {
        v4: given.v4.or(default.v4).filter(|_| v4),
        v6: given.v6.or(default.v6).filter(|_| v6),
    })
}

/// Whether a family is on; with a pool it cannot be off.
fn read_switch(
    from: &mut Decoder<'_>,
    file: &Fields<'_>,
    key: SchemaKey<bool>,
    pool: Option<SourceLocation>,
) -> Option<bool> {
    let on = from.read_or(file, key, true)?;
    if let (false, Some(place)) = (on, pool) {
        let message = format!("a pool for a family that `{}: false` turns off", key.name);
        from.mistake(place, message);
        return None;
    }
    Some(on)
}

/// A pool with its prefix.
pub(super) fn read_pool(
    from: &mut Decoder<'_>,
    text: &str,
    place: SourceLocation,
) -> Option<(IpAddr, u8)> {
    let shown = shorten(text);
    let parsed = text.split_once('/').and_then(|(network, prefix)| {
        Some((network.parse::<IpAddr>().ok()?, prefix.parse::<u8>().ok()?))
    });
    let Some((network, prefix)) = parsed else {
        let message = format!("address: `{shown}` is not a pool such as 10.0.0.0/16 or fd00::/64");
        from.mistake(place, message);
        return None;
    };
    let (least, most) = if network.is_ipv4() { (8, 30) } else { (8, 126) };
    if !(least..=most).contains(&prefix) {
        let message =
            format!("address: the prefix of `{shown}` is not between /{least} and /{most}");
        from.mistake(place, message);
        return None;
    }
    let masked = mask(network, prefix);
    if masked != network {
        let message = format!("address: `{shown}` has bits beyond its prefix");
        from.mistake_with_hint(place, message, format!("did you mean `{masked}/{prefix}`?"));
        return None;
    }
    if !is_usable(next(network)) {
        from.mistake(place, format!("address: `{shown}` is not a range for hosts"));
        return None;
    }
    Some((network, prefix))
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
