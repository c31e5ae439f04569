//! Messages of INET_DIAG: the request for the socket that would take a packet, and its answer, of
//! which everything is checked. Source: sock_diag(7), netlink(7), linux/inet_diag.h.

use std::io;
use std::net::IpAddr;

use windtunnel_model::plan::TransportProtocol;

use super::ListenerTarget;

/// What the kernel says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListenerSocketReply {
    Socket {
        cookie: u64,
        /// Whether it is a TCP socket that listens.
        listens: bool,
    },
    /// The request failed, or there is none (`ENOENT`).
    Failed(i32),
    /// The end of a list.
    Done,
}

/// Asks for the socket that would take what comes to a target from an unknown peer.
pub(super) fn lookup(sequence: u32, target: &ListenerTarget) -> [u8; REQUEST_BYTES] {
    let family = if target.address.is_ipv4() { AF_INET } else { AF_INET6 };
    let mut bytes = request(sequence, NLM_F_REQUEST, family, target.port.transport);
    let mut put = |at: usize, part: &[u8]| bytes[at..at + part.len()].copy_from_slice(part);
    // The kernel reads requests about UDP sockets from the other side ("swapped for historical
    // reasons", `udp_dump_one` of its udp_diag.c).
    let (port_at, address_at) = match target.port.transport {
        TransportProtocol::Tcp => (SOURCE_PORT, SOURCE),
        TransportProtocol::Udp => (DESTINATION_PORT, DESTINATION),
    };
    put(port_at, &target.port.port.to_be_bytes());
    match target.address {
        IpAddr::V4(v4) => put(address_at, &v4.octets()),
        IpAddr::V6(v6) => put(address_at, &v6.octets()),
    }
    put(DEVICE, &target.device.to_ne_bytes());
    // No cookie: whichever socket it is.
    put(COOKIE, &[0xff; 8]);
    bytes
}

/// Asks for all sockets that are in no state at all.
pub(super) fn empty_dump(transport: TransportProtocol) -> [u8; REQUEST_BYTES] {
    request(u32::MAX, NLM_F_REQUEST | NLM_F_DUMP, AF_INET, transport)
}

/// A header and `struct inet_diag_req_v2`.
fn request(
    sequence: u32,
    flags: u16,
    family: u8,
    transport: TransportProtocol,
) -> [u8; REQUEST_BYTES] {
    let mut bytes = [0; REQUEST_BYTES];
    let mut put = |at: usize, part: &[u8]| bytes[at..at + part.len()].copy_from_slice(part);
    put(0, &REQUEST_LENGTH.to_ne_bytes());
    put(4, &SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    put(6, &flags.to_ne_bytes());
    put(8, &sequence.to_ne_bytes());
    put(HEADER_BYTES, &[family, transport.number(), 0, 0]);
    bytes
}

/// The message of a datagram with the number of its request, 0 if the kernel has sent it by itself.
/// `None`: it is about something else.
///
/// # Errors
/// `InvalidData` for a message that is too short for what it is.
pub(super) fn read(datagram: &[u8]) -> io::Result<Option<(u32, ListenerSocketReply)>> {
    let header: &[u8; HEADER_BYTES] = datagram.first_chunk().ok_or_else(malformed)?;
    let word = |bytes: &[u8], at: usize| -> io::Result<u32> {
        let bytes = bytes.get(at..at + 4).and_then(|bytes| bytes.first_chunk());
        bytes.map(|bytes| u32::from_ne_bytes(*bytes)).ok_or_else(malformed)
    };
    let sequence = word(header, 8)?;
    let body = &datagram[HEADER_BYTES..];
    let answer = match u16::from_ne_bytes([header[4], header[5]]) {
        NLMSG_DONE => ListenerSocketReply::Done,
        NLMSG_ERROR => match word(body, 0)?.cast_signed() {
            0 => ListenerSocketReply::Done,
            code => ListenerSocketReply::Failed(code.saturating_neg()),
        },
        SOCK_DIAG_BY_FAMILY => {
            let state = *body.get(1).ok_or_else(malformed)?;
            let cookie = u64::from(word(body, 44)?) | u64::from(word(body, 48)?) << 32;
            ListenerSocketReply::Socket { cookie, listens: state == TCP_LISTEN }
        }
        _ => return Ok(None),
    };
    Ok(Some((sequence, answer)))
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "malformed answer about sockets")
}

/// `struct nlmsghdr`.
const HEADER_BYTES: usize = 16;
const REQUEST_BYTES: usize = REQUEST_LENGTH as usize;
const REQUEST_LENGTH: u32 = 16 + 56;
// Of `struct inet_diag_sockid`, which begins 8 bytes into the request.
const SOURCE_PORT: usize = HEADER_BYTES + 8;
const DESTINATION_PORT: usize = SOURCE_PORT + 2;
const SOURCE: usize = SOURCE_PORT + 4;
const DESTINATION: usize = SOURCE + 16;
const DEVICE: usize = DESTINATION + 16;
const COOKIE: usize = DEVICE + 4;

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
/// Of include/net/tcp_states.h.
const TCP_LISTEN: u8 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn target(address: &str, port: &str) -> ListenerTarget {
        let (address, port) = (address.parse().unwrap(), port.parse().unwrap());
        ListenerTarget { address, port, device: 100 }
    }

    #[test]
    fn a_request_names_the_target_on_the_side_where_the_kernel_looks_for_it() {
        let tcp = lookup(7, &target("10.1.0.80", "443/tcp"));
        assert_eq!(tcp[..12], [72, 0, 0, 0, 20, 0, 1, 0, 7, 0, 0, 0]);
        assert_eq!(tcp[16..20], [2, 6, 0, 0]);
        assert_eq!(tcp[24..32], [0x01, 0xbb, 0, 0, 10, 1, 0, 80]);
        assert_eq!(tcp[60..64], 100_u32.to_ne_bytes());
        assert_eq!(tcp[64..72], [0xff; 8]);
        let udp = lookup(1, &target("fd01::53", "53/udp"));
        assert_eq!(udp[16..20], [10, 17, 0, 0]);
        assert_eq!(udp[24..28], [0, 0, 0, 53]);
        assert_eq!((udp[44..46].to_vec(), udp[59]), (vec![0xfd, 0x01], 0x53));
    }

    fn message(kind: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = u32::try_from(16 + body.len()).unwrap().to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 2]);
        bytes.extend(sequence.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(body);
        bytes
    }

    #[test]
    fn a_socket_is_read_with_its_cookie_and_whether_it_listens() {
        let mut body = [0; 72];
        body[1] = 10;
        body[44..52].copy_from_slice(&0x0102_0304_0506_0708_u64.to_le_bytes());
        let cookie = 0x0102_0304_0506_0708;
        let read = |body: &[u8]| read(&message(20, 9, body)).unwrap();
        assert_eq!(read(&body), Some((9, ListenerSocketReply::Socket { cookie, listens: true })));
        body[1] = 7;
        assert_eq!(read(&body), Some((9, ListenerSocketReply::Socket { cookie, listens: false })));
    }

    #[test]
    fn that_there_is_none_is_an_answer_with_an_errno() {
        let none = message(2, 3, &(-2_i32).to_ne_bytes());
        assert_eq!(read(&none).unwrap(), Some((3, ListenerSocketReply::Failed(2))));
        assert_eq!(read(&message(3, 4, &[0; 4])).unwrap(), Some((4, ListenerSocketReply::Done)));
        assert_eq!(read(&message(99, 4, &[])).unwrap(), None);
    }

    #[test]
    fn a_message_that_is_cut_is_refused() {
        let whole = message(20, 1, &[0; 72]);
        for length in 0..16 + 52 {
            assert!(read(&whole[..length]).is_err(), "{length}");
        }
    }
}
