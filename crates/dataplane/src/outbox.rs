//! Packets on their way from the engine to the nodes' devices, in the engine's order.

use std::io::{self, ErrorKind};
use std::time::Duration;

use windtunnel_engine::{Engine, FrameDeparture, ImmediateDeparture};
use windtunnel_evidence::export::pcapng::CapturedPacketDirection;
use windtunnel_model::{Lane, PortId, Time};
use windtunnel_sys::packet::{BATCH_MAX, PacketSender, ReceiveRingFrame, TransmitFrame};
use windtunnel_sys::poll::{self, PollFd, PollFlags};
use windtunnel_wire::vnet;

use super::receivers::ReceiveQueueTable;
use super::remote::{ReleaseQueueEntry, RemoteMachines};
use super::sampler::Sampler;
use super::tap::Taps;
use crate::clock::now;

/// A batch that is being filled. It may hold frames that still lie in the ring; these are sent from
/// there.
pub(super) struct Outbox<'a> {
    parcels: Vec<Parcel<'a>>,
    interfaces: &'a [u32],
    sender: PacketSender<'a>,
    /// Packets that a device did not take.
    refused: &'a mut u64,
    remote: Option<&'a mut RemoteMachines>,
    taps: &'a mut Taps,
    receivers: &'a mut ReceiveQueueTable,
}

struct Parcel<'a> {
    port: PortId,
    lane: Lane,
    intended: Time,
    header: [u8; vnet::VirtioNetHeader::LEN],
    body: OutboxFrameSource<'a>,
}

enum OutboxFrameSource<'a> {
    InRing(ReceiveRingFrame<'a>),
    Held(FrameDeparture),
    Come(ReleaseQueueEntry),
}

impl<'a> Outbox<'a> {
    pub(super) fn new(
        interfaces: &'a [u32],
        sender: PacketSender<'a>,
        refused: &'a mut u64,
        receivers: &'a mut ReceiveQueueTable,
        remote: Option<&'a mut RemoteMachines>,
        taps: &'a mut Taps,
    ) -> Self {
        let parcels = Vec::with_capacity(BATCH_MAX);
        Outbox { parcels, interfaces, sender, refused, remote, taps, receivers }
    }

    /// Shows captures a frame that a node has sent.
    #[inline]
    pub(super) fn show(
        &mut self,
        port: PortId,
        at: Time,
        header: &vnet::VirtioNetHeader,
        frame: &[u8],
    ) {
        if !self.taps.is_empty() {
            self.taps.frame(port, at, CapturedPacketDirection::Outbound, header, frame);
        }
    }

    /// Adds a frame that may leave at once from where it arrived.
    pub(super) fn express(
        &mut self,
        express: ImmediateDeparture,
        slot: ReceiveRingFrame<'a>,
        intended: Time,
        engine: &mut Engine,
        sampler: &mut Sampler,
    ) {
        if let Some(remote) = self.remote.as_mut().filter(|it| it.is_away(express.port)) {
            return remote.push_express(engine.now(), &express, intended, slot.frame());
        }
        self.add(
            Parcel {
                port: express.port,
                lane: express.lane,
                intended,
                header: express.vnet.emit(),
                body: OutboxFrameSource::InRing(slot),
            },
            engine,
            sampler,
        );
    }

    /// Adds everything that the engine has put out.
    pub(super) fn collect(&mut self, engine: &mut Engine, sampler: &mut Sampler) {
        while let Some(departure) = engine.poll_output() {
            if let Some(remote) = self.remote.as_mut().filter(|it| it.is_away(departure.port)) {
                remote.push(engine.now(), &departure);
                engine.recycle(departure.frame);
                continue;
            }
            let parcel = Parcel {
                port: departure.port,
                lane: departure.lane,
                intended: departure.intended,
                header: departure.vnet.emit(),
                body: OutboxFrameSource::Held(departure),
            };
            self.add(parcel, engine, sampler);
        }
    }

    /// When the first packet from another machine is to leave that waits for its time.
    pub(super) fn next_held(&self) -> Option<Time> {
        self.remote.as_ref()?.next()
    }

    /// Takes in what other machines have sent, and adds what is due of it. Answers whether anything
    /// came.
    pub(super) fn receive(
        &mut self,
        now: Time,
        engine: &mut Engine,
        sampler: &mut Sampler,
    ) -> bool {
        let Some(remote) = &mut self.remote else { return false };
        let came = remote.receive(now);
        while let Some(packet) = self.remote.as_mut().and_then(|remote| remote.due(now)) {
            let parcel = Parcel {
                port: packet.port,
                lane: packet.lane,
                intended: packet.intended,
                header: packet.header,
                body: OutboxFrameSource::Come(packet),
            };
            self.add(parcel, engine, sampler);
        }
        came
    }

    /// Hands on what captures have.
    pub(super) fn flush_taps(&mut self) {
        self.taps.flush();
    }

    /// Sends what goes to other machines.
    pub(super) fn flush_remote(&mut self, now: Time) {
        if let Some(remote) = &mut self.remote {
            remote.flush(now);
        }
    }

    /// Sends what has been added and records how late each packet was.
    pub(super) fn flush(&mut self, engine: &mut Engine, sampler: &mut Sampler) {
        let Some(first) = self.parcels.first() else { return };
        let mut batch =
            [TransmitFrame { interface: 0, vnet_header: &first.header, frame: &[] }; BATCH_MAX];
        let (mut direct, mut dropped) = (0, 0_u64);
        for (index, parcel) in self.parcels.iter().enumerate() {
            let interface = self.interfaces[parcel.port.index()];
            let vnet_header = &parcel.header;
            let outgoing = TransmitFrame { interface, vnet_header, frame: parcel.body.frame() };
            match self.receivers.offer(parcel.port, &outgoing) {
                Some(taken) => dropped |= u64::from(!taken) << index,
                None => {
                    batch[direct] = outgoing;
                    direct += 1;
                }
            }
        }
        *self.refused += send_all(&mut self.sender, &batch[..direct]);
        self.receivers.notify();
        let sent_at = now();
        for (index, parcel) in self.parcels.drain(..).enumerate() {
            sampler.departed(parcel.lane, parcel.intended, sent_at);
            if dropped >> index & 1 == 0 {
                sampler.delivered(parcel.port, parcel.body.frame());
            }
            match parcel.body {
                OutboxFrameSource::InRing(_) => {}
                OutboxFrameSource::Held(departure) => engine.recycle(departure.frame),
                OutboxFrameSource::Come(packet) => {
                    if let Some(remote) = &mut self.remote {
                        remote.recycle(packet.frame);
                    }
                }
            }
        }
    }

    fn add(&mut self, parcel: Parcel<'a>, engine: &mut Engine, sampler: &mut Sampler) {
        if !self.taps.is_empty() {
            // Here and not when it is sent: so captures are in the order of the engine's time.
            let header = vnet::VirtioNetHeader::parse(&parcel.header);
            let Parcel { port, intended, body, .. } = &parcel;
            self.taps.frame(
                *port,
                *intended,
                CapturedPacketDirection::Inbound,
                &header,
                body.frame(),
            );
        }
        self.parcels.push(parcel);
        if self.parcels.len() == BATCH_MAX {
            self.flush(engine, sampler);
        }
    }
}

impl OutboxFrameSource<'_> {
    fn frame(&self) -> &[u8] {
        match self {
            OutboxFrameSource::InRing(slot) => slot.frame(),
            OutboxFrameSource::Held(departure) => &departure.frame,
            OutboxFrameSource::Come(packet) => &packet.frame,
        }
    }
}

/// Sends all of `batch` and returns how many packets were refused. A full send buffer is waited
/// for: the kernel is still delivering what it took, and a packet must not be lost to that.
fn send_all(sender: &mut PacketSender<'_>, batch: &[TransmitFrame<'_>]) -> u64 {
    let (mut rest, mut refused) = (batch, 0);
    while !rest.is_empty() {
        match sender.send(rest) {
            Ok(sent) => rest = &rest[sent..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => wait_for_room(sender),
            // The device is gone (its node has ended), is down, or has no room: this packet is
            // lost.
            Err(_) => {
                refused += 1;
                rest = &rest[1..];
            }
        }
    }
    refused
}

fn wait_for_room(sender: &PacketSender<'_>) {
    let mut watched = [PollFd::new(sender, PollFlags::OUT)];
    // Any error shows again at the next send.
    let _: io::Result<usize> = poll::wait(&mut watched, Some(Duration::from_millis(1)));
}
