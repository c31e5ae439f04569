//! Which of the machine's two loopback addresses a server of datagrams has: a datagram is not refused
//! before it is sent, so the kernel's tables of sockets are looked at. Source: proc_pid_net(5).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use windtunnel_sys::socket::listed;

/// The loopback address at which a port takes datagrams, that of the version of `own` before the other;
/// `None`: neither.
pub(crate) fn serving(own: IpAddr, port: u16) -> Option<IpAddr> {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    choose(own, port, &read("/proc/self/net/udp"), &read("/proc/self/net/udp6"))
}

fn choose(own: IpAddr, port: u16, v4: &str, v6: &str) -> Option<IpAddr> {
    let (any, one) = (Ipv6Addr::UNSPECIFIED, Ipv6Addr::LOCALHOST);
    let at_v6 = |wanted: Ipv6Addr| addresses(v6, port).any(|address| address == wanted);
    let mut at_v4 = addresses(v4, port);
    // A socket for all addresses of IPv6 takes those of IPv4, too, unless it does not want to.
    let has_v4 =
        at_v4.any(|it| it == any || it == Ipv4Addr::LOCALHOST.to_ipv6_mapped()) || at_v6(any);
    let has_v6 = at_v6(any) || at_v6(one);
    let (four, six) = (IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(one));
    let both = [(four, has_v4), (six, has_v6)];
    let found = both.iter().filter(|(_, is_there)| *is_there).map(|(address, _)| *address);
    found.max_by_key(|address| address.is_ipv4() == own.is_ipv4())
}

/// The local addresses of sockets at a port that take datagrams from anyone; 0.0.0.0 is `::`.
fn addresses(table: &str, port: u16) -> impl Iterator<Item = Ipv6Addr> {
    table.lines().skip(1).filter_map(move |line| {
        let mut fields = line.split_whitespace().skip(1);
        let (local, remote) = (listed(fields.next()?)?, listed(fields.next()?)?);
        (remote.port() == 0 && local.port() == port).then(|| match local.ip() {
            IpAddr::V4(v4) if v4.is_unspecified() => Ipv6Addr::UNSPECIFIED,
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        })
    })
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    const HEAD: &str = "  sl  local_address rem_address   st tx_queue rx_queue\n";

    #[cfg(target_endian = "little")]
    #[test]
    fn a_server_is_found_by_the_address_that_it_has() {
        let four: IpAddr = Ipv4Addr::LOCALHOST.into();
        let six: IpAddr = Ipv6Addr::LOCALHOST.into();
        let v4 = |address: &str| format!("{HEAD} 1: {address}:1451 00000000:0000 07 0:0\n");
        let zeros = "0".repeat(24);
        let v6 = |last: &str| format!("{HEAD} 1: {zeros}{last}:1451 {zeros}00000000:0000 07 0:0\n");
        let port = 0x1451;
        for own in [four, six] {
            assert_eq!(choose(own, port, &v4("00000000"), HEAD), Some(four));
            assert_eq!(choose(own, port, &v4("0100007F"), HEAD), Some(four));
            assert_eq!(choose(own, port, &v4("0200007F"), HEAD), None, "of another address");
            assert_eq!(choose(own, port, HEAD, &v6("01000000")), Some(six));
            assert_eq!(choose(own, port, HEAD, &v6("00000000")), Some(own), "of both");
            assert_eq!(choose(own, port, &v4("0100007F"), &v6("01000000")), Some(own));
            assert_eq!(choose(own, 80, &v4("00000000"), &v6("00000000")), None);
        }
        let connected = format!("{HEAD} 1: 0100007F:1451 0100007F:0035 01 0:0\n");
        assert_eq!(choose(four, port, &connected, HEAD), None);
    }

    #[test]
    fn the_kernels_table_shows_a_real_server() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        let found = serving(Ipv6Addr::LOCALHOST.into(), port);
        assert_eq!(found, Some(Ipv4Addr::LOCALHOST.into()));
    }
}
