//! What the kernel says of one TCP connection: `struct tcp_info`, from getsockopt(2) or INET_DIAG.
//!
//! Its counters become offsets of the stream, which count payload bytes from the first after the
//! SYN. The kernel's `tcp_get_info` (net/ipv4/tcp.c) reads them under the socket's lock, so that they
//! fit each other. They count the following beside payload:
//!
//! - `bytes_acked`: the SYN of the side that connected (1), and the FIN once it is acknowledged (1);
//! - `bytes_received`: the FIN (1);
//! - `notsent_bytes`: a FIN that waits to be sent (1);
//! - `bytes_sent` and `bytes_retrans`: nothing.
//!
//! So the bytes sent for the first time are `bytes_sent − bytes_retrans`; those that the program has
//! written are these, and what is not sent. The acknowledged are never more than the sent, which
//! takes the FIN off. Whether the SYN is counted shows when all that was sent is acknowledged.

/// A sample of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "those without a word have the names of the kernel's header")]
pub struct TcpInfo {
    /// A number of the kernel's include/net/tcp_states.h; see [`state`].
    pub state: u8,
    /// The state of congestion avoidance, `enum tcp_ca_state`.
    pub ca_state: u8,
    pub rto_us: u32,
    pub snd_mss: u32,
    /// Segments in flight.
    pub unacked: u32,
    pub srtt_us: u32,
    pub ssthresh: u32,
    pub cwnd: u32,
    /// Segments sent again, ever.
    pub total_retrans: u32,
    pub bytes_acked: u64,
    pub bytes_received: u64,
    pub notsent: u32,
    pub busy_us: u64,
    pub rwnd_limited_us: u64,
    pub sndbuf_limited_us: u64,
    pub bytes_sent: u64,
    pub bytes_retrans: u64,
    /// What the other side lets it send, in bytes.
    pub snd_wnd: u32,
    /// What it lets the other side send, in bytes; 0 before Linux 6.2.
    pub rcv_wnd: u32,
}

macro_rules! states {
    ($($name:ident = $number:literal;)*) => {
        /// Numbers of [`TcpInfo::state`].
        pub mod state {
            $(
                #[doc = concat!("`", stringify!($name), "`, as in RFC 9293.")]
                pub const $name: u8 = $number;
            )*
        }
    };
}

states! {
    ESTABLISHED = 1;
    SYN_SENT = 2;
    SYN_RECEIVED = 3;
    FIN_WAIT_1 = 4;
    FIN_WAIT_2 = 5;
    TIME_WAIT = 6;
    CLOSED = 7;
    CLOSE_WAIT = 8;
    LAST_ACK = 9;
    LISTEN = 10;
    CLOSING = 11;
}

impl TcpInfo {
    /// Reads the kernel's structure; `None` where it is too short (before Linux 4.19). What a
    /// later kernel has put behind is passed over.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<TcpInfo> {
        let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let wide = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        Some(TcpInfo {
            state: *bytes.first()?,
            ca_state: *bytes.get(1)?,
            rto_us: word(8)?,
            snd_mss: word(16)?,
            unacked: word(24)?,
            srtt_us: word(68)?,
            ssthresh: word(76)?,
            cwnd: word(80)?,
            total_retrans: word(100)?,
            bytes_acked: wide(120)?,
            bytes_received: wide(128)?,
            notsent: word(144)?,
            busy_us: wide(168)?,
            rwnd_limited_us: wide(176)?,
            sndbuf_limited_us: wide(184)?,
            bytes_sent: wide(200)?,
            bytes_retrans: wide(208)?,
            snd_wnd: word(228).unwrap_or(0),
            rcv_wnd: word(232).unwrap_or(0),
        })
    }

    /// Bytes of the stream that were sent at least once.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.bytes_sent.saturating_sub(self.bytes_retrans)
    }

    /// Bytes of the stream that the program has written.
    #[must_use]
    pub fn written(&self) -> u64 {
        let fin_waits = self.has_ended() && self.notsent > 0;
        self.sent() + u64::from(self.notsent) - u64::from(fin_waits)
    }

    /// Bytes of the stream that came in, in order.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.bytes_received.saturating_sub(u64::from(self.fin_came()))
    }

    /// Bytes of the stream that the other side has acknowledged, where it is known whether the SYN
    /// is counted.
    #[must_use]
    pub fn acknowledged(&self, syn_counted: bool) -> u64 {
        self.bytes_acked.saturating_sub(u64::from(syn_counted)).min(self.sent())
    }

    /// Whether `bytes_acked` counts the SYN; `None`: does not show now.
    #[must_use]
    pub fn syn_counted(&self) -> Option<bool> {
        let open = matches!(self.state, state::ESTABLISHED | state::CLOSE_WAIT);
        match self.bytes_acked.checked_sub(self.sent()) {
            Some(0) if open && self.unacked == 0 => Some(false),
            Some(1) if open && self.unacked == 0 => Some(true),
            _ => None,
        }
    }

    /// Whether the program has ended its direction: a FIN follows what it has written.
    fn has_ended(&self) -> bool {
        use state::{CLOSING, FIN_WAIT_1, FIN_WAIT_2, LAST_ACK, TIME_WAIT};
        matches!(self.state, FIN_WAIT_1 | FIN_WAIT_2 | CLOSING | LAST_ACK | TIME_WAIT)
    }

    /// Whether the other side's FIN has come.
    #[must_use]
    pub fn fin_came(&self) -> bool {
        use state::{CLOSE_WAIT, CLOSING, LAST_ACK, TIME_WAIT};
        matches!(self.state, CLOSE_WAIT | CLOSING | LAST_ACK | TIME_WAIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_structure_that_is_too_short_is_refused() {
        assert_eq!(TcpInfo::read(&[1; 215]), None);
        assert_eq!(TcpInfo::read(&[1; 216]).map(|info| info.rcv_wnd), Some(0));
        assert!(TcpInfo::read(&[1; 500]).is_some());
    }

    #[test]
    fn the_counters_become_offsets() {
        let info = TcpInfo {
            state: state::ESTABLISHED,
            bytes_sent: 1_300,
            bytes_retrans: 300,
            notsent: 50,
            bytes_acked: 1_001,
            bytes_received: 7,
            ..TcpInfo::default()
        };
        assert_eq!((info.sent(), info.written(), info.received()), (1_000, 1_050, 7));
        assert_eq!(info.syn_counted(), Some(true));
        assert_eq!(info.acknowledged(true), 1_000);
    }

    #[test]
    fn a_fin_is_no_byte_of_the_stream() {
        let mut info = TcpInfo {
            state: state::LAST_ACK,
            bytes_sent: 10,
            notsent: 5 + 1,
            bytes_acked: 11,
            bytes_received: 8,
            ..TcpInfo::default()
        };
        assert_eq!((info.written(), info.received()), (15, 7));
        (info.notsent, info.bytes_sent, info.bytes_acked) = (0, 15, 17);
        assert_eq!((info.written(), info.acknowledged(true)), (15, 15));
    }

    #[test]
    fn whether_the_syn_is_counted_does_not_show_in_flight() {
        let info = TcpInfo {
            state: state::ESTABLISHED,
            bytes_sent: 10,
            bytes_acked: 10,
            unacked: 1,
            ..TcpInfo::default()
        };
        assert_eq!(info.syn_counted(), None);
        assert_eq!(TcpInfo { unacked: 0, ..info }.syn_counted(), Some(false));
    }
}
