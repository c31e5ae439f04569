//! Packets that enter the node, delivered by a thread of its init: what the kernel does for them is
//! within the node's budget, as its init is. The packet loop fills a bounded queue in shared memory
//! and drops what has no room.

mod sockets;

use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use sockets::UdpSocketTables;
use windtunnel_budget::discard::DiscardController;
use windtunnel_limit::PausableThread;
use windtunnel_sys::clock;
use windtunnel_sys::frame_queue::{FrameConsumerStatistics, FrameQueueConsumer};
use windtunnel_sys::packet::{PacketSendSocket, TransmitFrame};
use windtunnel_sys::poll::{self, EventFd, PollFd, PollFlags};
use windtunnel_sys::schedule;
use windtunnel_wire::packet::ParsedPacket;
use windtunnel_wire::segment::PacketTrain;
use windtunnel_wire::vnet;

/// Starts the thread, with the nice value of the programs. The descriptors are the queue, a packet socket of the network namespace in
/// which the other ends of the node's interfaces are, and what is raised for a thread that sleeps.
///
/// # Errors
/// `InvalidInput` for other descriptors; what the kernel says of memory and threads.
pub(super) fn begin(descriptors: Vec<OwnedFd>, nice: i32) -> io::Result<Arc<PausableThread>> {
    let Ok([queue, socket, wake]) = <[OwnedFd; 3]>::try_from(descriptors) else {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it takes three descriptors"));
    };
    let (taker, outlet, wake) =
        (FrameQueueConsumer::open(queue)?, PacketSendSocket::from(socket), EventFd::from(wake));
    let (send, receive) = sync_channel(1);
    std::thread::Builder::new().name("receive".into()).spawn(move || {
        // It works without, too.
        let _ = schedule::set_nice(nice);
        work(taker, outlet, wake, &send);
    })?;
    receive.recv().map_err(io::Error::other)?
}

fn work(
    taker: FrameQueueConsumer,
    outlet: PacketSendSocket,
    wake: EventFd,
    begun: &SyncSender<io::Result<Arc<PausableThread>>>,
) {
    let worker = match PausableThread::of_this_thread() {
        Ok(worker) => Arc::new(worker),
        Err(error) => {
            // The init waits for it.
            let _ = begun.send(Err(error));
            return;
        }
    };
    let _ = begun.send(Ok(Arc::clone(&worker)));
    let mut receiver = Receiver {
        taker,
        outlet,
        wake,
        controller: DiscardController::default(),
        account: FrameConsumerStatistics::default(),
        tables: UdpSocketTables::open(),
        reviews: 0,
        review_at_ns: 0,
    };
    loop {
        worker.wait_while_paused();
        if !receiver.deliver() {
            receiver.sleep();
        }
    }
}

struct Receiver {
    taker: FrameQueueConsumer,
    outlet: PacketSendSocket,
    wake: EventFd,
    controller: DiscardController,
    account: FrameConsumerStatistics,
    tables: UdpSocketTables,
    reviews: u32,
    /// When the next review is due, however little came.
    review_at_ns: u64,
}

impl Receiver {
    /// Delivers a few frames; false if there is none.
    fn deliver(&mut self) -> bool {
        let nothing = TransmitFrame { interface: 0, vnet_header: &[0; 10], frame: &[] };
        let mut batch = [nothing; BATCH];
        let looked = self.taker.look(&mut batch);
        let frames = &batch[..looked.frames];
        let delivered = !frames.is_empty();
        for outgoing in frames {
            if let Some((port, datagrams)) = udp_port(outgoing) {
                self.controller.handed(port, datagrams, outgoing.frame.len());
            }
        }
        send_all(&mut self.outlet, frames);
        self.taker.release(looked);
        let has_some = self.controller.since_review() > 0;
        if self.controller.is_due() || has_some && clock::monotonic_ns() >= self.review_at_ns {
            self.review();
        }
        delivered
    }

    /// Until there are frames again.
    fn sleep(&mut self) {
        self.publish();
        if self.controller.shares().next().is_some() {
            // Readers are behind: to be woken for each datagram would take their time.
            return std::thread::sleep(GATHER);
        }
        if !self.taker.begin_sleep() {
            return;
        }
        let unreviewed = self.controller.since_review() > 0;
        let patience = unreviewed.then_some(QUIET);
        // Interrupted: it looks earlier.
        let woken = poll::wait(&mut [PollFd::new(&self.wake, PollFlags::IN)], patience);
        let _ = self.wake.clear();
        if unreviewed && matches!(woken, Ok(0)) {
            self.reviews = 0;
            self.review();
        }
    }

    /// Adapts what is let through to what sockets have room for.
    fn review(&mut self) {
        self.controller.review(self.tables.sockets().into_iter(), self.taker.waiting());
        self.taker.want(self.controller.shares());
        if self.reviews.is_multiple_of(ACCOUNT_EVERY) {
            self.account.overflowed = sockets::overflowed_in_all();
        }
        self.reviews = self.reviews.wrapping_add(1);
        self.review_at_ns = clock::monotonic_ns() + REVIEW_NS;
        self.publish();
    }

    fn publish(&mut self) {
        self.account.computed_ns = clock::thread_cpu_ns();
        self.taker.publish(self.account);
    }
}

/// The port of a whole UDP datagram or the first fragment of one, and how many the frame stands for.
fn udp_port(outgoing: &TransmitFrame<'_>) -> Option<(u16, u32)> {
    const UDP: u8 = 17;
    let packet = ParsedPacket::parse(outgoing.frame).ok()?;
    let (_, destination) = packet.ports().filter(|_| packet.info.protocol == UDP)?;
    let header = vnet::VirtioNetHeader::parse(outgoing.vnet_header);
    Some((destination, PacketTrain::of(&packet, &header).count))
}

/// What a device does not take is lost, as the packet loop's frames are.
fn send_all(outlet: &mut PacketSendSocket, batch: &[TransmitFrame<'_>]) {
    let mut rest = batch;
    while !rest.is_empty() {
        match outlet.send(rest) {
            Ok(sent) => rest = &rest[sent..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                // The kernel still delivers what it took. An error shows again at the next send.
                let room = Some(Duration::from_millis(1));
                let _ = poll::wait(&mut [PollFd::new(&*outlet, PollFlags::OUT)], room);
            }
            Err(_) => rest = &rest[1..],
        }
    }
}

/// Frames between two looks at whether the node is stopped: some 20 µs of small ones.
const BATCH: usize = 16;
/// How long datagrams gather where sockets are full anyway.
const GATHER: Duration = Duration::from_micros(500);
/// After so long without frames the account is brought up to date.
const QUIET: Duration = Duration::from_millis(100);
/// Datagrams that come more rarely are reviewed this often.
const REVIEW_NS: u64 = 100_000_000;
/// Reviews from one reading of the sums to the next.
const ACCOUNT_EVERY: u32 = 8;
