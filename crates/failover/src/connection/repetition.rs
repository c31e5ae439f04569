//! What a replica sends again, or asks the client by: whether that is passed.

use crate::segment::ParsedTcpSegment;
use windtunnel_wire::tcp;

/// A replica's segment that may hold what the client was given before.
pub(super) struct SegmentRepetition<'a> {
    pub(super) segment: &'a ParsedTcpSegment<'a>,
    pub(super) offset: u64,
    /// The end of what the client was given before from the offset on.
    pub(super) known: u64,
    /// The client has acknowledged the stream up to here.
    pub(super) acked: u64,
    pub(super) is_primary: bool,
    /// The client was sent no data for so long that a backup's is passed, too.
    pub(super) is_quiet: bool,
}

/// What is done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RepetitionResponse {
    /// It repeats nothing, or asks too soon.
    Nothing,
    /// The client has acknowledged it already: the replica is answered from here.
    Answer,
    /// The client is sent it again, up to this offset.
    SendAgain { end: u64 },
    /// The client has it, or gets it from the primary.
    Absorb,
}

impl SegmentRepetition<'_> {
    /// What is done about all of it.
    pub(super) fn response(&self) -> RepetitionResponse {
        let length = self.segment.len();
        let end = (self.offset + length).min(self.known);
        if length == 0 && self.offset < self.acked {
            self.probe_response()
        } else if length == 0 || self.offset >= self.known {
            RepetitionResponse::Nothing
        } else if end <= self.acked {
            // One byte that was acknowledged is a keep-alive (RFC 9293, 3.8.4).
            let is_byte = self.segment.payload.len() == 1 && !self.segment.has(tcp::FIN);
            if is_byte && end == self.acked {
                self.probe_response()
            } else {
                RepetitionResponse::Answer
            }
        } else if self.is_primary || self.offset <= self.acked && self.is_quiet {
            RepetitionResponse::SendAgain { end }
        } else {
            RepetitionResponse::Absorb
        }
    }

    /// A segment just before what the client has acknowledged asks for its acknowledgement: a
    /// keep-alive, or a probe of its window. One further back is from a replica that has not got
    /// the client's last acknowledgement.
    fn probe_response(&self) -> RepetitionResponse {
        if self.offset + 1 < self.acked {
            RepetitionResponse::Answer
        } else if self.is_primary || self.is_quiet {
            RepetitionResponse::SendAgain { end: self.offset + self.segment.len() }
        } else {
            RepetitionResponse::Nothing
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windtunnel_wire::{build, vnet};

    /// What is done about a segment of `length` bytes at an offset, where the client was given the
    /// stream up to 20, and has acknowledged it up to 10.
    fn response(
        offset: u64,
        length: usize,
        is_primary: bool,
        is_quiet: bool,
    ) -> RepetitionResponse {
        let payload = vec![7; length];
        let (service, client) = ("10.1.0.80:80".parse().unwrap(), "10.0.0.7:4000".parse().unwrap());
        let frame = build::tcp(service, client, 1, tcp::ACK, &payload);
        let vnet = vnet::VirtioNetHeader::default();
        let segment = ParsedTcpSegment::parse(&vnet, &frame).unwrap();
        let known = if offset < 20 { 20 } else { offset };
        SegmentRepetition { segment: &segment, offset, known, acked: 10, is_primary, is_quiet }
            .response()
    }

    #[test]
    fn what_the_client_lacks_is_sent_again_by_the_primary_or_after_a_silence() {
        let again = RepetitionResponse::SendAgain { end: 15 };
        assert_eq!(response(10, 5, true, false), again);
        assert_eq!(response(10, 5, false, true), again);
        assert_eq!(response(10, 5, false, false), RepetitionResponse::Absorb);
        assert_eq!(response(12, 3, false, true), RepetitionResponse::Absorb);
        assert_eq!(response(18, 5, true, false), RepetitionResponse::SendAgain { end: 20 });
    }

    #[test]
    fn what_is_new_or_an_acknowledgement_alone_repeats_nothing() {
        assert_eq!(response(20, 5, true, true), RepetitionResponse::Nothing);
        assert_eq!(response(10, 0, true, true), RepetitionResponse::Nothing);
    }

    #[test]
    fn what_was_acknowledged_is_answered_and_a_probe_of_the_client_passed() {
        assert_eq!(response(3, 7, true, true), RepetitionResponse::Answer);
        assert_eq!(response(5, 0, true, true), RepetitionResponse::Answer);
        assert_eq!(response(9, 0, true, false), RepetitionResponse::SendAgain { end: 9 });
        assert_eq!(response(9, 1, false, true), RepetitionResponse::SendAgain { end: 10 });
        assert_eq!(response(9, 1, false, false), RepetitionResponse::Nothing);
    }
}
