//! How foca's headers and members are written: fixed fields, every length bounded.

use alloc::borrow::ToOwned;
use alloc::vec;
use alloc::vec::Vec;

use bytes::{Buf, BufMut};
use foca::{Header, Member, Message, State};

use crate::id::Identity;
use crate::wire::{MessageDecoder, MessageEncoder};

/// Writes and reads foca's messages. An own incarnation comes first, where [`own_incarnation`]
/// finds it.
#[derive(Debug)]
pub(crate) struct Codec;

/// Why something cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CodecFault {
    #[error("no room in the datagram")]
    Full,
    #[error("the message is cut or not one of this version")]
    Malformed,
}

/// The incarnation that a message of foca gives for its sender.
pub(crate) fn own_incarnation(data: &[u8]) -> Option<u16> {
    MessageDecoder::new(data).u16()
}

/// The life that sent a message of foca, if the message is one that `own` has to accept.
pub(crate) fn sender_to(own: &Identity, data: &[u8]) -> Option<Identity> {
    let header = header(&mut MessageDecoder::new(data))?;
    let to_us = header.dst == *own
        || (header.dst.agent == own.agent && header.message == Message::Announce);
    to_us.then_some(header.src)
}

/// A message without the news that those lives are down for which `doubted` holds; `None` if it has
/// none.
pub(crate) fn without_downs(data: &[u8], doubted: impl Fn(&Identity) -> bool) -> Option<Vec<u8>> {
    let mut reader = MessageDecoder::new(data);
    header(&mut reader)?;
    let head = data.len() - reader.left();
    let count = reader.u16()?;
    let (mut kept, mut bytes) = (0_u16, Vec::new());
    for _ in 0..count {
        let start = data.len() - reader.left();
        let member = member(&mut reader)?;
        if member.state() != State::Down || !doubted(member.id()) {
            kept += 1;
            bytes.extend_from_slice(data.get(start..data.len() - reader.left())?);
        }
    }
    let whole = [data.get(..head)?, &kept.to_be_bytes(), &bytes, reader.rest()];
    (kept < count).then(|| whole.concat())
}

/// The agents that a message of foca speaks of. `None` if it is malformed.
pub(crate) fn agents_named(data: &[u8]) -> Option<Vec<Identity>> {
    let mut reader = MessageDecoder::new(data);
    let mut agents = vec![header(&mut reader)?.src];
    if !reader.is_empty() {
        for _ in 0..reader.u16()? {
            agents.push(member(&mut reader)?.id().to_owned());
        }
    }
    Some(agents)
}

impl foca::Codec<Identity> for Codec {
    type Error = CodecFault;

    fn encode_header(
        &mut self,
        header: &Header<Identity>,
        buf: impl BufMut,
    ) -> Result<(), CodecFault> {
        let mut w = MessageEncoder::default();
        w.u16(header.src_incarnation);
        w.identity(&header.src);
        w.identity(&header.dst);
        put_message(&mut w, &header.message);
        put(w, buf)
    }

    fn decode_header(&mut self, buf: impl Buf) -> Result<Header<Identity>, CodecFault> {
        take(buf, header)
    }

    fn encode_member(
        &mut self,
        member: &Member<Identity>,
        buf: impl BufMut,
    ) -> Result<(), CodecFault> {
        let mut w = MessageEncoder::default();
        w.identity(member.id());
        w.u16(member.incarnation());
        w.u8(match member.state() {
            State::Alive => 0,
            State::Suspect => 1,
            State::Down => 2,
        });
        put(w, buf)
    }

    fn decode_member(&mut self, buf: impl Buf) -> Result<Member<Identity>, CodecFault> {
        take(buf, member)
    }
}

fn put(writer: MessageEncoder, mut buf: impl BufMut) -> Result<(), CodecFault> {
    if buf.remaining_mut() < writer.len() {
        return Err(CodecFault::Full);
    }
    buf.put_slice(&writer.into_bytes());
    Ok(())
}

fn take<T>(
    mut buf: impl Buf,
    read: impl FnOnce(&mut MessageDecoder<'_>) -> Option<T>,
) -> Result<T, CodecFault> {
    let mut reader = MessageDecoder::new(buf.chunk());
    let before = reader.left();
    let value = read(&mut reader).ok_or(CodecFault::Malformed)?;
    let length = before - reader.left();
    buf.advance(length);
    Ok(value)
}

fn member(r: &mut MessageDecoder<'_>) -> Option<Member<Identity>> {
    let (id, incarnation) = (r.identity()?, r.u16()?);
    let state = match r.u8()? {
        0 => State::Alive,
        1 => State::Suspect,
        2 => State::Down,
        _ => return None,
    };
    Some(Member::new(id, incarnation, state))
}

fn header(r: &mut MessageDecoder<'_>) -> Option<Header<Identity>> {
    let (src_incarnation, src, dst) = (r.u16()?, r.identity()?, r.identity()?);
    Some(Header { src, src_incarnation, dst, message: message(r)? })
}

fn message(r: &mut MessageDecoder<'_>) -> Option<Message<Identity>> {
    Some(match r.u8()? {
        0 => Message::Ping(r.u8()?),
        1 => Message::Ack(r.u8()?),
        2 => Message::PingReq { probe_number: r.u8()?, target: r.identity()? },
        3 => Message::IndirectPing { probe_number: r.u8()?, origin: r.identity()? },
        4 => Message::IndirectAck { probe_number: r.u8()?, target: r.identity()? },
        5 => Message::ForwardedAck { probe_number: r.u8()?, origin: r.identity()? },
        6 => Message::Announce,
        7 => Message::Feed,
        8 => Message::Gossip,
        9 => Message::Broadcast,
        10 => Message::TurnUndead,
        _ => return None,
    })
}

fn put_message(w: &mut MessageEncoder, message: &Message<Identity>) {
    let (kind, probe, other) = match message {
        Message::Ping(probe) => (0, Some(probe), None),
        Message::Ack(probe) => (1, Some(probe), None),
        Message::PingReq { target, probe_number } => (2, Some(probe_number), Some(target)),
        Message::IndirectPing { origin, probe_number } => (3, Some(probe_number), Some(origin)),
        Message::IndirectAck { target, probe_number } => (4, Some(probe_number), Some(target)),
        Message::ForwardedAck { origin, probe_number } => (5, Some(probe_number), Some(origin)),
        Message::Announce => (6, None, None),
        Message::Feed => (7, None, None),
        Message::Gossip => (8, None, None),
        Message::Broadcast => (9, None, None),
        Message::TurnUndead => (10, None, None),
    };
    w.u8(kind);
    if let Some(probe) = probe {
        w.u8(*probe);
    }
    if let Some(other) = other {
        w.identity(other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::AgentId;
    use foca::Codec as _;

    fn identity(last: u8) -> Identity {
        let address = ([10, 0, 0, last], 9000).into();
        Identity { agent: AgentId(u64::from(last)), epoch: 5, renewal: 0, address }
    }

    #[test]
    fn every_header_comes_back() {
        let (target, probe_number) = (identity(3), 9);
        let origin = target;
        for message in [
            Message::Ping(1),
            Message::Ack(255),
            Message::PingReq { target, probe_number },
            Message::IndirectPing { origin, probe_number },
            Message::IndirectAck { target, probe_number },
            Message::ForwardedAck { origin, probe_number },
            Message::Announce,
            Message::Feed,
            Message::Gossip,
            Message::Broadcast,
            Message::TurnUndead,
        ] {
            let header =
                Header { src: identity(1), src_incarnation: 258, dst: identity(2), message };
            let mut bytes = Vec::new();
            Codec.encode_header(&header, &mut bytes).unwrap();
            assert_eq!(own_incarnation(&bytes), Some(258));
            assert_eq!(Codec.decode_header(&bytes[..]).unwrap(), header);
            assert!(Codec.decode_header(&bytes[..bytes.len() - 1]).is_err());
        }
    }

    #[test]
    fn doubted_downs_are_taken_out_and_nothing_else() {
        let header = Header {
            src: identity(1),
            src_incarnation: 0,
            dst: identity(2),
            message: Message::Gossip,
        };
        let message = |members: &[(u8, State)]| {
            let mut bytes = Vec::new();
            Codec.encode_header(&header, &mut bytes).unwrap();
            bytes.extend(u16::try_from(members.len()).unwrap().to_be_bytes());
            for (last, state) in members {
                let member = Member::new(identity(*last), 0, *state);
                Codec.encode_member(&member, &mut bytes).unwrap();
            }
            bytes
        };
        let all = message(&[(3, State::Down), (4, State::Down), (3, State::Suspect)]);
        let kept = message(&[(4, State::Down), (3, State::Suspect)]);
        assert_eq!(without_downs(&all, |life| *life == identity(3)), Some(kept));
        assert_eq!(without_downs(&all, |_| false), None);
        assert_eq!(without_downs(&all[..all.len() - 1], |_| true), None);
    }

    #[test]
    fn a_member_that_does_not_fit_leaves_the_buffer_as_it_was() {
        let mut bytes = Vec::new();
        let member = Member::new(identity(1), 3, State::Suspect);
        assert!(Codec.encode_member(&member, (&mut bytes).limit(10)).is_err());
        assert!(bytes.is_empty());
        Codec.encode_member(&member, &mut bytes).unwrap();
        assert_eq!(Codec.decode_member(&bytes[..]).unwrap(), member);
    }
}
