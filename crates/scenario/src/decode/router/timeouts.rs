//! How long a NAT or a firewall knows a flow without packets.

use windtunnel_model::Span;
use windtunnel_model::plan::Timeouts;

use crate::grammar::{Decoder, Fields, ValueForm, YamlMapEntry, form, map};

map! {
    /// How long a flow without packets is known.
    TimeoutKeys {
        /// A UDP flow without a packet for so long is forgotten; default 5min (RFC 4787, REQ-5).
        "udp-timeout" UDP: Timeout,
        /// An established TCP connection without a segment for so long is forgotten; default 2h4min
        /// (RFC 5382, REQ-5).
        "tcp-timeout" TCP: Timeout,
        /// A TCP connection that is not established yet, or closed, is forgotten after so long;
        /// default 4min (RFC 5382, REQ-5).
        "tcp-transitory-timeout" TCP_TRANSITORY: Timeout,
        /// An ICMP query without a message for so long is forgotten; default 60s (RFC 5508, REQ-2).
        "icmp-timeout" ICMP: Timeout,
    }
}

/// Reads how long flows without packets are known.
pub(super) fn read_timeouts(from: &mut Decoder<'_>, fields: &Fields<'_>) -> Option<Timeouts> {
    let default = Timeouts::NAT;
    Some(Timeouts {
        udp: from.read_or(fields, TimeoutKeys::UDP, default.udp)?,
        tcp: from.read_or(fields, TimeoutKeys::TCP, default.tcp)?,
        tcp_transitory: from.read_or(
            fields,
            TimeoutKeys::TCP_TRANSITORY,
            default.tcp_transitory,
        )?,
        icmp: from.read_or(fields, TimeoutKeys::ICMP, default.icmp)?,
    })
}

form! {
    /// How long a flow without packets is known.
    Timeout: Span, by read_timeout, like Span::schema
}

fn read_timeout(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Span> {
    let timeout = Span::read(from, field)?;
    let (least, most) = (Timeouts::LEAST, Timeouts::MOST);
    if !(least..=most).contains(&timeout) {
        let message = format!("{}: `{timeout}` is not between {least} and {most}", field.key);
        from.mistake(field.wrong(), message);
        return None;
    }
    Some(timeout)
}
