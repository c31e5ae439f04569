//! One entry to all code that reads datagrams from the network, for fuzzers.

use std::net::SocketAddr;

use windtunnel_model::{Span, Time};

use crate::members::TunnelMembership;
use crate::setup::{Security, TunnelSettings};

/// Gives arbitrary datagrams to a sealed and a plain member: each is two bytes of length (the first
/// also says how much later it comes), then the datagram, with its length field and its run put
/// right for half of them.
///
/// # Panics
/// When the tunnel does, or something breaks one of the laws asserted here.
pub fn fuzz_one(data: &[u8]) {
    let peer: SocketAddr = ([127, 0, 0, 1], 9).into();
    for security in [Security::Sealed([1; 32]), Security::Plain] {
        let sealed = security != Security::Plain;
        let setup = TunnelSettings { run: 7, own: 1, peers: vec![Some(peer), None], security };
        let mut members = TunnelMembership::new(setup, peer).expect("the setup is right");
        let (mut now, mut rest, mut given) = (Time::from_nanos(1), data, 0);
        while let Some(([late, length], behind)) = rest.split_first_chunk::<2>() {
            let length = usize::from(*length).min(behind.len());
            let (bytes, next) = behind.split_at(length);
            let mut datagram = bytes.to_vec();
            if late % 2 == 0 {
                mend(&mut datagram);
            }
            let mut frames = 0;
            members.accept(now, peer, &mut datagram, &mut |received| {
                assert!(!received.frame.is_empty());
                frames += 1;
            });
            assert!(!sealed || frames == 0, "the input is made without the key");
            members.handle_timeout(now, &mut NullDatagramCarrier);
            now += Span::from_millis(u64::from(*late));
            (rest, given) = (next, given + 1);
        }
        let counters = members.counters();
        // A genuine datagram of contradictory content counts as received and as malformed.
        assert!(counters.received.datagrams + counters.refused.total() >= given);
        assert!(!sealed || counters.received.datagrams == 0);
    }
}

/// Puts the right version, run, members and length into a header, so that the rest is decoded.
fn mend(datagram: &mut [u8]) {
    let behind = datagram.len().saturating_sub(24);
    if let (Some(front), Ok(behind)) = (datagram.first_chunk_mut::<16>(), u16::try_from(behind)) {
        front[0] = 1;
        front[2..6].copy_from_slice(&[0, 0, 0, 1]);
        front[6..8].copy_from_slice(&behind.to_be_bytes());
        front[8..].copy_from_slice(&7u64.to_be_bytes());
    }
}

struct NullDatagramCarrier;

impl crate::members::DatagramCarrier for NullDatagramCarrier {
    fn carry(
        &mut self,
        _: SocketAddr,
        _: &[u8],
        size: usize,
        _: bool,
    ) -> Result<(), crate::members::DatagramCarrierRefusal> {
        if size > 9000 { Err(crate::members::DatagramCarrierRefusal::TooBig) } else { Ok(()) }
    }
}
