//! Messages of INET_DIAG: the request for all TCP connections, and the answers, of which everything
//! is checked. Source: sock_diag(7), netlink(7), linux/inet_diag.h.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use windtunnel_notification::tcp_info::{TcpInfo, state};

/// What the kernel says of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InetDiagSocket {
    pub(super) own: SocketAddr,
    pub(super) peer: SocketAddr,
    pub(super) cookie: u64,
    /// The number of the inode of its file; 0: no process has it open.
    pub(super) file: u32,
    /// Bytes that the program has not read, a FIN included.
    pub(super) unread: u32,
    /// Bytes that are not acknowledged.
    pub(super) unacknowledged: u32,
    /// Packets that the socket has dropped.
    pub(super) drops: u32,
    pub(super) info: TcpInfo,
}

/// A message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TcpDiagnosisReply {
    /// A connection, in answer to a request.
    Connection(InetDiagSocket),
    /// A connection whose socket was destroyed.
    Destroyed(InetDiagSocket),
    /// The socket of this cookie was destroyed, and has no connection any more: it was aborted, or
    /// never had one.
    Aborted(u64),
    /// The end of the answers.
    Done,
}

/// The request for all connections of both IP versions that the kernel knows more of than that
/// they wait to be forgotten. It is the kernel's older request, because only that one asks for both
/// versions at once: the kernel goes through its table once (`inet_diag_dump_compat`).
pub(super) fn request(sequence: u32) -> [u8; REQUEST_BYTES] {
    let mut bytes = [0; REQUEST_BYTES];
    let mut put = |at: usize, part: &[u8]| bytes[at..at + part.len()].copy_from_slice(part);
    put(0, &REQUEST_LENGTH.to_ne_bytes());
    put(4, &TCPDIAG_GETSOCK.to_ne_bytes());
    put(6, &(NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    put(8, &sequence.to_ne_bytes());
    // Any family would do.
    put(16, &[AF_INET, 0, 0, INFO | MEMORY]);
    put(68, &STATES.to_ne_bytes());
    bytes
}

/// Calls `each` with the messages of a datagram that say something of connections.
///
/// # Errors
/// `InvalidData` for a length that leads astray; what the kernel refused a request with.
pub(super) fn read(datagram: &[u8], mut each: impl FnMut(TcpDiagnosisReply)) -> io::Result<()> {
    let mut rest = datagram;
    while !rest.is_empty() {
        let header: &[u8; HEADER_BYTES] = rest.first_chunk().ok_or_else(malformed)?;
        let length = word(header, 0) as usize;
        let kind = u16::from_ne_bytes([header[4], header[5]]);
        let body = rest.get(HEADER_BYTES..length).ok_or_else(malformed)?;
        match kind {
            NLMSG_ERROR | NLMSG_DONE => {
                // A message without a number ends the answers as well.
                let code = body.first_chunk().map_or(0, |code| i32::from_ne_bytes(*code));
                if code < 0 {
                    return Err(io::Error::from_raw_os_error(code.saturating_neg()));
                }
                each(TcpDiagnosisReply::Done);
            }
            TCPDIAG_GETSOCK | SOCK_DIAG_BY_FAMILY => {
                described(body, kind == SOCK_DIAG_BY_FAMILY)?.into_iter().for_each(&mut each);
            }
            _ => {}
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(())
}

/// `None`: a socket that listens, or of which the kernel does not say enough.
fn described(body: &[u8], destroyed: bool) -> io::Result<Option<TcpDiagnosisReply>> {
    let about: &[u8; ABOUT_BYTES] = body.first_chunk().ok_or_else(malformed)?;
    let mut info = None;
    let mut drops = 0;
    let mut rest = &body[ABOUT_BYTES..];
    while let Some(header) = rest.first_chunk::<4>() {
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let content = rest.get(4..length).ok_or_else(malformed)?;
        match u16::from_ne_bytes([header[2], header[3]]) & ATTRIBUTE {
            INET_DIAG_INFO => info = TcpInfo::read(content),
            INET_DIAG_SKMEMINFO => {
                drops = content.get(32..36).map_or(0, |number| word(number, 0));
            }
            _ => {}
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    let (Some(own), Some(peer)) = (address(about, 4, 8), address(about, 6, 24)) else {
        return Ok(None);
    };
    let cookie = u64::from(word(about, 44)) | u64::from(word(about, 48)) << 32;
    if peer.port() == 0 {
        return Ok(destroyed.then_some(TcpDiagnosisReply::Aborted(cookie)));
    }
    let (unread, unacknowledged) = (word(about, 56), word(about, 60));
    let Some(info) = info.filter(|info| info.state != state::LISTEN) else { return Ok(None) };
    let file = word(about, 68);
    let described = InetDiagSocket { own, peer, cookie, file, unread, unacknowledged, drops, info };
    let answer =
        if destroyed { TcpDiagnosisReply::Destroyed } else { TcpDiagnosisReply::Connection };
    Ok(Some(answer(described)))
}

/// A port and an address, in network order.
fn address(about: &[u8; ABOUT_BYTES], port: usize, address: usize) -> Option<SocketAddr> {
    let port = u16::from_be_bytes([about[port], about[port + 1]]);
    let octets: [u8; 16] = about[address..address + 16].try_into().ok()?;
    match about[0] {
        AF_INET => {
            let [a, b, c, d, ..] = octets;
            Some((Ipv4Addr::new(a, b, c, d), port).into())
        }
        AF_INET6 => Some((Ipv6Addr::from(octets), port).into()),
        _ => None,
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "malformed answer about sockets")
}

/// `struct nlmsghdr`.
const HEADER_BYTES: usize = 16;
/// A header and `struct inet_diag_req`.
const REQUEST_BYTES: usize = REQUEST_LENGTH as usize;
const REQUEST_LENGTH: u32 = 16 + 60;
/// `struct inet_diag_msg`.
const ABOUT_BYTES: usize = 72;

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const TCPDIAG_GETSOCK: u16 = 18;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
/// `NLA_TYPE_MASK`.
const ATTRIBUTE: u16 = 0x3fff;
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_SKMEMINFO: u16 = 7;
/// Attributes as bits of a request.
const INFO: u8 = 1 << (INET_DIAG_INFO - 1);
const MEMORY: u8 = 1 << (INET_DIAG_SKMEMINFO - 1);
/// The states of connections with a socket.
const STATES: u32 = 1 << state::ESTABLISHED
    | 1 << state::SYN_SENT
    | 1 << state::FIN_WAIT_1
    | 1 << state::FIN_WAIT_2
    | 1 << state::CLOSE_WAIT
    | 1 << state::LAST_ACK
    | 1 << state::CLOSING;

#[cfg(test)]
mod tests {
    use super::*;

    /// A message as the kernel writes it, of this kind, with these attributes.
    fn message(kind: u16, family: u8, peer_port: u16, attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut body = vec![0; ABOUT_BYTES];
        body[0] = family;
        body[4..6].copy_from_slice(&80_u16.to_be_bytes());
        body[6..8].copy_from_slice(&peer_port.to_be_bytes());
        body[8..12].copy_from_slice(&[10, 0, 0, 1]);
        body[24..28].copy_from_slice(&[10, 0, 0, 2]);
        body[44..52].copy_from_slice(&0x0102_0304_0506_0708_u64.to_ne_bytes());
        body[56..60].copy_from_slice(&11_u32.to_ne_bytes());
        body[60..64].copy_from_slice(&12_u32.to_ne_bytes());
        for (kind, content) in attributes {
            body.extend(u16::try_from(content.len() + 4).unwrap().to_ne_bytes());
            body.extend(kind.to_ne_bytes());
            body.extend(*content);
            body.resize(body.len().next_multiple_of(4), 0);
        }
        let mut whole = u32::try_from(body.len() + 16).unwrap().to_ne_bytes().to_vec();
        whole.extend(kind.to_ne_bytes());
        whole.extend([0; 10]);
        whole.extend(body);
        whole
    }

    fn connection() -> Vec<u8> {
        let mut info = [0; 232];
        info[0] = 1;
        let mut memory = [0; 36];
        memory[32] = 5;
        message(18, 2, 4_000, &[(7, &memory), (8, &[0]), (2, &info)])
    }

    fn answers(datagram: &[u8]) -> Vec<TcpDiagnosisReply> {
        let mut answers = Vec::new();
        read(datagram, |answer| answers.push(answer)).unwrap();
        answers
    }

    #[test]
    fn a_connection_is_read_with_its_ends_and_its_drops() {
        let done = [20_u32.to_ne_bytes().to_vec(), vec![3, 0, 2, 0], vec![0; 12]].concat();
        let [TcpDiagnosisReply::Connection(described), TcpDiagnosisReply::Done] =
            answers(&[connection(), done].concat())[..]
        else {
            panic!("a connection and the end");
        };
        assert_eq!(described.own.to_string(), "10.0.0.1:80");
        assert_eq!(described.peer.to_string(), "10.0.0.2:4000");
        assert_eq!(described.cookie, 0x0102_0304_0506_0708);
        assert_eq!((described.unread, described.unacknowledged, described.drops), (11, 12, 5));
    }

    #[test]
    fn sockets_without_a_connection_and_families_of_others_are_passed_over() {
        assert_eq!(answers(&message(18, 2, 0, &[(2, &[1; 232])])), []);
        assert_eq!(answers(&message(20, 7, 9, &[(2, &[1; 232])])), []);
        assert_eq!(answers(&message(20, 2, 9, &[])), []);
    }

    #[test]
    fn a_destroyed_socket_without_a_peer_is_known_by_its_cookie() {
        let aborted = answers(&message(20, 2, 0, &[(2, &[1; 232])]));
        assert_eq!(aborted, [TcpDiagnosisReply::Aborted(0x0102_0304_0506_0708)]);
    }

    #[test]
    fn a_refusal_is_an_error_with_its_errno() {
        let mut refused = [20_u32.to_ne_bytes().to_vec(), vec![2, 0, 0, 0], vec![0; 8]].concat();
        refused.extend((-2_i32).to_ne_bytes());
        let error = read(&refused, |_| {}).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(2));
    }

    #[test]
    fn every_wrong_byte_and_every_cut_is_survived() {
        let good = [connection(), message(20, 10, 9, &[(2, &[1; 232])])].concat();
        for length in 0..good.len() {
            let _ = read(&good[..length], |_| {});
        }
        for at in 0..good.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut wrong = good.clone();
                wrong[at] = value;
                let _ = read(&wrong, |_| {});
            }
        }
    }

    #[test]
    fn the_request_is_as_the_kernel_reads_it() {
        let request = request(7);
        assert_eq!(request.len(), 76);
        assert_eq!(request[4..16], [18, 0, 1, 3, 7, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(request[19], 0x42);
        // ESTABLISHED, SYN_SENT, FIN_WAIT_1, FIN_WAIT_2, CLOSE_WAIT, LAST_ACK, CLOSING.
        assert_eq!(request[68..72], 0b1011_0011_0110_u32.to_ne_bytes());
    }
}
