//! Bytes of messages: a bounded reader that cannot panic, and a writer.
//!
//! Numbers are big-endian, or of variable length as in LEB128 (seven bits a byte, the least first).

pub(crate) mod message;

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use windtunnel_model::flow::{ActiveFlow, FlowKey, FlowTerms};
use windtunnel_model::{Bytes, NodeId, Rate, Span, Time};

use crate::id::{AgentId, Identity};

/// The bytes left to read. Every method returns `None` where the bytes end or are malformed.
#[derive(Debug, Clone)]
pub(crate) struct MessageDecoder<'a> {
    rest: &'a [u8],
}

/// A message in the making.
#[derive(Debug, Default)]
pub(crate) struct MessageEncoder {
    bytes: Vec<u8>,
}

impl<'a> MessageDecoder<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        MessageDecoder { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn left(&self) -> usize {
        self.rest.len()
    }

    /// Everything that is left.
    pub(crate) fn rest(self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*head)
    }

    pub(crate) fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(head)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A byte that is 0 or 1.
    pub(crate) fn flag(&mut self) -> Option<bool> {
        match self.u8()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    pub(crate) fn varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return None;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    pub(crate) fn varint32(&mut self) -> Option<u32> {
        u32::try_from(self.varint()?).ok()
    }

    pub(crate) fn agent(&mut self) -> Option<AgentId> {
        self.u64().map(AgentId)
    }

    pub(crate) fn address(&mut self) -> Option<SocketAddr> {
        let ip: IpAddr = match self.u8()? {
            4 => Ipv4Addr::from(self.array::<4>()?).into(),
            6 => Ipv6Addr::from(self.array::<16>()?).into(),
            _ => return None,
        };
        Some(SocketAddr::new(ip, self.u16()?))
    }

    pub(crate) fn identity(&mut self) -> Option<Identity> {
        Some(Identity {
            agent: self.agent()?,
            epoch: self.u64()?,
            renewal: self.varint32()?,
            address: self.address()?,
        })
    }

    pub(crate) fn flow_key(&mut self) -> Option<FlowKey> {
        let source = NodeId(self.varint32()?);
        let destination = NodeId(self.varint32()?);
        Some(FlowKey { source, destination, number: self.varint32()? })
    }

    pub(crate) fn flow(&mut self) -> Option<ActiveFlow> {
        let rtt = Span::from_nanos(self.varint()?);
        let demand = self.varint()?.checked_sub(1).and_then(Rate::from_bits_per_second);
        let window = Some(self.varint()?).filter(|window| *window > 0).map(Bytes);
        let since = Time::from_nanos(self.varint()?);
        Some(ActiveFlow { terms: FlowTerms { rtt, window, demand }, since })
    }
}

impl MessageEncoder {
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.put(&value.to_be_bytes());
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.put(&value.to_be_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.put(&value.to_be_bytes());
    }

    pub(crate) fn flag(&mut self, value: bool) {
        self.u8(u8::from(value));
    }

    pub(crate) fn varint(&mut self, mut value: u64) {
        loop {
            let [bits, ..] = (value & 0x7f).to_le_bytes();
            value >>= 7;
            if value == 0 {
                return self.u8(bits);
            }
            self.u8(bits | 0x80);
        }
    }

    pub(crate) fn agent(&mut self, agent: AgentId) {
        self.u64(agent.0);
    }

    pub(crate) fn address(&mut self, address: SocketAddr) {
        match address.ip() {
            IpAddr::V4(ip) => {
                self.u8(4);
                self.put(&ip.octets());
            }
            IpAddr::V6(ip) => {
                self.u8(6);
                self.put(&ip.octets());
            }
        }
        self.u16(address.port());
    }

    pub(crate) fn identity(&mut self, identity: &Identity) {
        self.agent(identity.agent);
        self.u64(identity.epoch);
        self.varint(u64::from(identity.renewal));
        self.address(identity.address);
    }

    pub(crate) fn flow_key(&mut self, key: &FlowKey) {
        self.varint(u64::from(key.source.0));
        self.varint(u64::from(key.destination.0));
        self.varint(u64::from(key.number));
    }

    pub(crate) fn flow(&mut self, flow: &ActiveFlow) {
        let FlowTerms { rtt, window, demand } = flow.terms;
        self.varint(rtt.as_nanos());
        // Zero: no demand is known. The greatest that can be written is 2⁶⁴ − 2.
        self.varint(demand.map_or(0, |demand| demand.bits_per_second().saturating_add(1)));
        // Zero: no bound.
        self.varint(window.map_or(0, |window| window.0));
        self.varint(flow.since.as_nanos());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_variable_length_come_back_and_take_one_byte_for_seven_bits() {
        for (value, length) in
            [(0, 1), (127, 1), (128, 2), (16_383, 2), (16_384, 3), (u64::from(u32::MAX), 5)]
        {
            let mut writer = MessageEncoder::default();
            writer.varint(value);
            assert_eq!(writer.len(), length);
            assert_eq!(MessageDecoder::new(&writer.into_bytes()).varint(), Some(value));
        }
        let mut writer = MessageEncoder::default();
        writer.varint(u64::MAX);
        assert_eq!(MessageDecoder::new(&writer.into_bytes()).varint(), Some(u64::MAX));
    }

    #[test]
    fn numbers_beyond_64_bits_and_without_an_end_are_refused() {
        assert_eq!(MessageDecoder::new(&[0xff; 9]).varint(), None);
        assert_eq!(MessageDecoder::new(&[0xff; 11]).varint(), None);
        let beyond = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02];
        assert_eq!(MessageDecoder::new(&beyond).varint(), None);
    }

    #[test]
    fn addresses_of_both_families_come_back() {
        for text in ["10.1.2.3:9000", "[fd00::1]:65535"] {
            let address: SocketAddr = text.parse().unwrap();
            let mut writer = MessageEncoder::default();
            writer.address(address);
            assert_eq!(MessageDecoder::new(&writer.into_bytes()).address(), Some(address));
        }
        assert_eq!(MessageDecoder::new(&[5, 0, 0, 0, 0, 0, 0]).address(), None);
    }
}
