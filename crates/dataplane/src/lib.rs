//! The loop that moves packets: socket → engine → socket, on a thread of its own.
//!
//! Theory of operation. The kernel stamps each frame when its node's device hands it over; that
//! stamp, brought to the monotonic clock, is when the packet was sent for the engine. So time that is
//! lost until this thread has it (in the kernel, a late wake-up, a busy processor) is not added to the
//! emulated delay: it shows only where a packet should have left already, and there it is measured.
//! One turn of the loop:
//!
//! 1. take orders; 2. for each arrived frame: let the engine catch up to its stamp, hand it in; 3.
//!    let the engine catch up to the present; 4. send what is due, in order, and record how late it
//!    was; 5. hand over what was recorded; sample every 100 ms; 6. sleep until the engine's next time-out, an arrival or an
//!    order.
//!
//! Scheduled changes are applied between two packets at their exact time, by the same catching up.

mod arrival_clock;
mod change;
mod clock;
mod crossed;
mod entrances;
mod message;
mod meter;
mod nats;
mod notes;
mod orders;
mod outbox;
mod overload;
pub mod owners;
pub mod phase;
pub mod promotion;
mod real_time_rest;
pub mod receive_queue;
mod receivers;
mod records;
mod remote;
mod sampler;
mod samples;
mod schedule;
pub mod senders;
mod services;
mod tally;
pub mod tap;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod ticks;
mod wait_policy;

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use windtunnel_engine::{Engine, EngineLimits, FrameOrigin, NetworkPart};
use windtunnel_model::{Plan, Span, Time};
use windtunnel_sys::packet::PacketSocket;
use windtunnel_sys::poll::{self, EventFd as Wake, PollFd, PollFlags};
use windtunnel_sys::{clock as sys_clock, limits, schedule as sys_schedule};
use windtunnel_wire::vnet;

use arrival_clock::{ArrivalClock, PacketArrival};
use change::advance;
pub use clock::now;
use entrances::IngressPortTable;
pub use message::{PacketLoopCommand, PacketLoopEvent};
pub use meter::NodePairThroughput;
pub use nats::NatTally;
use outbox::Outbox;
use overload::{Overload, OverloadSummary, PacketLoopStalls};
use owners::{FlowOwnerQuery, FlowOwnerThread};
use promotion::RealTimePromoter;
use real_time_rest::RealTimeRest;
use receive_queue::ReceiveQueue;
use receivers::ReceiveQueueTable;
use records::PacketLoopRecorder;
pub use records::RecordSetup;
pub use remote::{InterMachineTraffic, OneWay, PeerSilencePeriod, PeerTraffic, RemoteMachines};
use sampler::Sampler;
pub use samples::SampleSink;
pub use schedule::ChangeOrigin;
use schedule::ChangeSchedule;
use senders::SharedSocketTable;
use services::RedirectedAtEnd;
pub use services::{RedirectionTotals, RedirectionsNow, ServiceRedirectionTotals};
pub use tally::{LaneResult, LaneShares, LateInterval, Tally};
use tap::Taps;
use ticks::ProcessorTickThreads;
use wait_policy::{LoopWaitMode, WaitPolicy};

/// What the loop needs.
pub struct PacketLoopParameters {
    pub plan: Arc<Plan>,
    /// Fabric interface index by port.
    pub interfaces: Vec<u32>,
    /// Where samples go.
    pub samples: Box<dyn SampleSink>,
    /// Lateness above this is reported.
    pub late_above: Span,
    /// Bytes that packets in queues and in flight may hold.
    pub packet_memory: u64,
    /// Raised when something is in the channel of notes.
    pub notify: Arc<Wake>,
    /// The other machines of the run, if there are any.
    pub remote: Option<RemoteMachines>,
    /// What is recorded of packets; `None`: nothing can be.
    pub records: Option<RecordSetup>,
    /// What puts the loop before all other work of the machine.
    pub promotion: Option<RealTimePromoter>,
    /// Those of nodes that pay for receiving.
    pub receive_queues: Vec<ReceiveQueue>,
    /// What finds whose flows are, where programs share links.
    pub owners: Option<owners::FlowOwnerSearchSettings>,
    /// Where programs declare what they send on sockets that several have.
    pub senders: Vec<senders::LaneSenderRegion>,
}

/// The running loop.
#[derive(Debug)]
pub struct Dataplane {
    orders: Sender<PacketLoopCommand>,
    wake: Arc<Wake>,
    thread: JoinHandle<Tally>,
}

impl Dataplane {
    /// Opens the packet socket in the calling thread's network namespace and starts the loop.
    ///
    /// # Errors
    /// If the socket cannot be had.
    pub fn start(
        mut setup: PacketLoopParameters,
    ) -> io::Result<(Dataplane, Receiver<PacketLoopEvent>)> {
        let socket = PacketSocket::open(RING_SLOTS)?;
        socket.set_send_buffer(SEND_BUFFER_BYTES)?;
        let wake = Arc::new(Wake::open()?);
        let (orders, receiver) = channel();
        let (notes, notes_out) = channel();
        let wake_in = Arc::clone(&wake);
        let owners =
            setup.owners.take().map(|owners| FlowOwnerThread::start(owners, Arc::clone(&wake)));
        let owners = owners.transpose()?;
        let thread = std::thread::Builder::new().name("engine".to_owned()).spawn(move || {
            PacketLoop::new(setup, socket, receiver, wake_in, notes, owners).run()
        })?;
        Ok((Dataplane { orders, wake, thread }, notes_out))
    }

    /// Gives an order.
    pub fn order(&self, order: PacketLoopCommand) {
        // If the thread is gone its results say why.
        let _ = self.orders.send(order);
        let _ = self.wake.raise();
    }

    /// Stops the loop and returns what it counted, but not before so many datagrams have come from
    /// other machines, by their numbers: those that are still missing a while later are lost.
    #[must_use]
    pub fn finish(self, await_datagrams: Vec<(u16, u64)>) -> Tally {
        self.order(PacketLoopCommand::Finish { await_datagrams });
        self.thread.join().unwrap_or_else(|_| Tally::failed("the engine's thread panicked"))
    }
}

#[cfg(any(test, feature = "testing"))]
impl Dataplane {
    /// A handle without a loop, and the orders that are given.
    pub fn to_channel() -> (Dataplane, Receiver<PacketLoopCommand>) {
        let (orders, receiver) = channel();
        let wake = Arc::new(Wake::open().expect("an event descriptor"));
        (Dataplane { orders, wake, thread: std::thread::spawn(Tally::default) }, receiver)
    }
}

/// What a turn found.
struct PacketLoopIteration {
    /// Whether anything had arrived.
    moved: bool,
    began: Time,
    /// How long its oldest work had waited.
    behind: Span,
}

struct PacketLoop {
    setup: PacketLoopParameters,
    socket: PacketSocket,
    engine: Engine,
    entrances: IngressPortTable,
    schedule: ChangeSchedule,
    sampler: Sampler,
    /// Packets that a device did not take.
    refused: u64,
    arrivals: ArrivalClock,
    overload: Overload,
    wait_policy: WaitPolicy,
    remote: Option<RemoteMachines>,
    records: PacketLoopRecorder,
    taps: Taps,
    owners: Option<FlowOwnerThread>,
    senders: SharedSocketTable,
    receivers: ReceiveQueueTable,
    orders: Receiver<PacketLoopCommand>,
    wake: Arc<Wake>,
    notes: Sender<PacketLoopEvent>,
    /// What is waited for before the end, and how long.
    last: Option<(Vec<(u16, u64)>, Time)>,
    finished: bool,
    /// What the kernel had given to this thread when the run began.
    schedule_before: limits::ThreadCpuStatistics,
    at_end: Option<OwnCounts>,
    redirected_at_end: Option<RedirectedAtEnd>,
}

/// What the loop counts of itself until the run is over.
#[derive(Debug, Clone, Copy)]
struct OwnCounts {
    refused: u64,
    ran_ns: u64,
    waited_ns: u64,
    overloads: OverloadSummary,
    stalls: PacketLoopStalls,
}

impl PacketLoop {
    fn new(
        mut setup: PacketLoopParameters,
        socket: PacketSocket,
        orders: Receiver<PacketLoopCommand>,
        wake: Arc<Wake>,
        notes: Sender<PacketLoopEvent>,
        owners: Option<FlowOwnerThread>,
    ) -> Self {
        let remote = setup.remote.take();
        let records = PacketLoopRecorder::new(setup.records.take());
        PacketLoop {
            engine: new_engine(&setup, remote.as_ref()),
            entrances: IngressPortTable::new(&setup.interfaces),
            wait_policy: WaitPolicy::new(remote.is_some()),
            remote,
            records,
            taps: Taps::default(),
            owners,
            senders: SharedSocketTable::new(&setup.plan, std::mem::take(&mut setup.senders)),
            receivers: ReceiveQueueTable::new(std::mem::take(&mut setup.receive_queues)),
            schedule: ChangeSchedule::default(),
            sampler: Sampler::new(&setup.plan, setup.late_above),
            refused: 0,
            arrivals: ArrivalClock::new(),
            overload: Overload::new(setup.late_above),
            socket,
            orders,
            wake,
            notes,
            setup,
            last: None,
            finished: false,
            schedule_before: limits::ThreadCpuStatistics::default(),
            at_end: None,
            redirected_at_end: None,
        }
    }

    fn run(mut self) -> Tally {
        let promotion = self.setup.promotion.take();
        let is_real_time = promotion.is_some_and(|promotion| promotion.promote().is_ok());
        // Wake-ups as exact as the kernel gives them to an ordinary thread; failing costs 50 µs.
        let _ = sys_clock::set_timer_slack(std::num::NonZeroU64::MIN);
        // Served soon after each wake-up, at the same share of the processor; the loop works
        // without, too.
        let _ = sys_schedule::set_slice(sys_schedule::SHORTEST_SLICE_NS);
        let ticks = (!is_real_time).then(ProcessorTickThreads::begin);
        self.wait_policy.set_rest(is_real_time.then(|| RealTimeRest::new(now())));
        while !self.finished {
            self.take_orders();
            self.take_owners();
            let turn = self.turn();
            self.ask_owners();
            self.records.hand_over(&mut self.engine);
            self.watch(&turn);
            self.announce(turn.began);
            self.sample();
            self.finish_when_all_came(turn.began);
            if self.finished {
                break;
            }
            if turn.moved {
                self.wait_policy.worked();
                self.wait_policy.rest_if_overdue(turn.began);
            } else {
                self.sleep();
            }
            if let Some(ticks) = &ticks {
                ticks.set(self.wait_policy.is_crowded());
            }
        }
        self.records.hand_over(&mut self.engine);
        let own = self.at_end.unwrap_or_else(|| self.own_counts());
        let (engine, plan) = (&mut self.engine, &self.setup.plan);
        let caught_up = self.arrivals.last();
        let (last, mut tally) =
            self.sampler.finish(caught_up, engine, plan, kernel_drops(&self.socket));
        if let Some((at, rows)) = last {
            self.setup.samples.last_sample(at, rows);
        }
        if let Some(at_end) = self.redirected_at_end {
            at_end.put(&mut tally);
        }
        tally.real_time = is_real_time;
        (tally.ran_ns, tally.waited_ns) = (own.ran_ns, own.waited_ns);
        (tally.refused, tally.overloads, tally.stalls) = (own.refused, own.overloads, own.stalls);
        tally.received = self.receivers.received();
        tally.shares = shares(&self.engine, self.owners.as_ref());
        self.taps.finish();
        if let Some(remote) = self.remote {
            tally.remote = Some(remote.traffic(&self.engine));
            tally.peers = remote.peers();
            tally.flow_starts = remote.into_starts();
        }
        tally
    }

    fn own_counts(&self) -> OwnCounts {
        let schedule = limits::schedule_of(limits::current_thread()).unwrap_or_default();
        let (overloads, stalls) = self.overload.totals(now());
        OwnCounts {
            refused: self.refused,
            ran_ns: schedule.run_ns.saturating_sub(self.schedule_before.run_ns),
            waited_ns: schedule.wait_ns.saturating_sub(self.schedule_before.wait_ns),
            overloads,
            stalls,
        }
    }

    /// Hands in what has arrived, catches up with the present and sends what is due.
    fn turn(&mut self) -> PacketLoopIteration {
        let PacketLoop { setup, socket, engine, schedule, sampler, arrivals, notes, .. } = self;
        let (ring, sender) = socket.split();
        let remote = self.remote.as_mut();
        let (refused, receivers) = (&mut self.refused, &mut self.receivers);
        let (interfaces, taps) = (&setup.interfaces, &mut self.taps);
        let mut outbox = Outbox::new(interfaces, sender, refused, receivers, remote, taps);
        arrivals.update();
        let began = arrivals.present();
        let held = outbox.next_held();
        let due = [engine.poll_timeout(), schedule.next(), held].into_iter().flatten().min();
        let behind = due.map_or(Span::ZERO, |due| began.since(due));
        let mut turn = PacketLoopIteration { moved: false, began, behind };
        // Bounded, so that orders and samples get their turn under any load.
        for _ in 0..FRAMES_PER_TURN {
            let Some(mut slot) = ring.next() else { break };
            let first = !std::mem::replace(&mut turn.moved, true);
            let Some(entrance) = self.entrances.of(slot.interface()) else { continue };
            if slot.truncated() {
                sampler.count_truncated();
                continue;
            }
            let PacketArrival { sent, at } = arrivals.convert(slot.arrival_ns());
            let (port, sent) = (entrance.port, entrance.sent(sent));
            if first {
                turn.behind = turn.behind.max(began.since(sent));
            }
            advance(engine, schedule, sampler, at, notes, &setup.notify);
            sampler.take_handoffs(engine, arrivals.present().since(at));
            outbox.collect(engine, sampler);
            let (header, frame) = slot.parts_mut();
            let header = vnet::VirtioNetHeader::parse(header);
            outbox.show(port, at, &header, frame);
            let origin = FrameOrigin { port, sent, sender: self.senders.of(port, at, frame) };
            if let Some(express) = engine.handle_packet_of(at, origin, header, frame) {
                outbox.express(express, slot, sent, engine, sampler);
            }
        }
        let present = arrivals.not_before(now());
        advance(engine, schedule, sampler, present, notes, &setup.notify);
        sampler.take_handoffs(engine, Span::ZERO);
        outbox.collect(engine, sampler);
        turn.moved |= outbox.receive(present, engine, sampler);
        outbox.flush(engine, sampler);
        outbox.flush_remote(present);
        outbox.flush_taps();
        turn
    }

    /// Asks whose new flows are.
    fn ask_owners(&mut self) {
        let Some(owners) = &self.owners else { return };
        while let Some((lane, key)) = self.engine.poll_flow_question() {
            owners.ask(FlowOwnerQuery { lane, key });
        }
    }

    fn sleep(&mut self) {
        let remote = self.remote.as_ref();
        let due = [
            self.engine.poll_timeout(),
            self.schedule.next(),
            self.sampler.next(),
            remote.and_then(RemoteMachines::next),
            remote.and_then(RemoteMachines::poll_timeout),
            self.last.as_ref().map(|(_, until)| *until),
        ];
        let due = due.into_iter().flatten().min();
        match self.wait_policy.wait(now(), due) {
            LoopWaitMode::Awake => std::hint::spin_loop(),
            LoopWaitMode::Gather(time) => {
                std::thread::sleep(time);
                self.wait_policy.slept();
            }
            LoopWaitMode::Asleep(timeout) => {
                self.sleep_until_something_comes(timeout);
                self.wait_policy.slept();
            }
        }
    }

    fn sleep_until_something_comes(&mut self, timeout: Option<Duration>) {
        let remote = self.remote.as_ref();
        let (socket, wake) = (&self.socket, &*self.wake);
        let mut two = [PollFd::new(socket, PollFlags::IN), PollFd::new(wake, PollFlags::IN)];
        let mut three;
        let watched = match remote {
            None => &mut two[..],
            Some(remote) => {
                let [socket, wake] = two;
                three = [socket, wake, PollFd::new(remote, PollFlags::IN)];
                &mut three[..]
            }
        };
        match poll::wait(watched, timeout) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                self.note(PacketLoopEvent::Failed(format!("cannot wait for packets: {error}")));
                self.finished = true;
            }
        }
        if watched[1].revents().contains(PollFlags::IN) {
            let _ = self.wake.clear();
        }
    }
}

/// What the classes did that share lanes.
fn shares(engine: &Engine, owners: Option<&FlowOwnerThread>) -> Vec<LaneShares> {
    let one = |lane| {
        let shared_flows = owners.map_or(0, |owners| owners.shared_flows(lane));
        Some(LaneShares { lane, classes: engine.classes(lane)?, shared_flows })
    };
    engine.shared_lanes().filter_map(one).collect()
}

/// Packets that the kernel has dropped since the last call, because nothing took them in time.
fn kernel_drops(socket: &PacketSocket) -> u64 {
    socket.statistics().map_or(0, |drops| u64::from(drops.drops))
}

/// An engine whose traces start now.
fn new_engine(setup: &PacketLoopParameters, remote: Option<&RemoteMachines>) -> Engine {
    let part =
        remote.map_or_else(|| NetworkPart::whole(&setup.plan), |remote| remote.part(&setup.plan));
    let limits = EngineLimits { packet_memory: setup.packet_memory };
    let mut engine = Engine::of_part(&setup.plan, limits, &part);
    engine.start_traces(now());
    engine
}

/// Slots of 68 KiB each that the kernel fills: room for 1 ms of small packets at a million a
/// second.
const RING_SLOTS: usize = 1020;
const SEND_BUFFER_BYTES: usize = 16 << 20;
const FRAMES_PER_TURN: usize = 256;
/// How long datagrams may still be under way that other machines have sent by the end of the run.
const SETTLE: Span = Span::from_secs(1);
