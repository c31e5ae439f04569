//! The loop of the gateway process.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use windtunnel_sys::clock;
use windtunnel_sys::packet::{self, ReceiveRingFrame};
use windtunnel_wire::icmp::{self, IcmpErrorKind};
use windtunnel_wire::packet::{IpPacketSummary, IpVersion, PacketParseError, ParsedPacket};
use windtunnel_wire::{checksum, ethernet, tcp, udp, vnet};

use crate::echo::EchoRelay;
use crate::inside::GatewayDevices;
use crate::log::FAILED;
use crate::log::{FlowLine, InternetFlowLog};
use crate::maker::NodeSocketFactory;
use crate::message::{self, GatewayCommand, GatewayEvent};
use crate::names::{self, DnsForwarder};
use crate::policy::{EgressPolicy, EgressRefusal};
use crate::poller::{Poller, PollerEvent, PollerToken};
use crate::process::Listening;
use crate::publish::PublishedPortListeners;
use crate::reassembly::FragmentReassembler;
use crate::report::{GatewayCounterUpdate, GatewayReport};
use crate::settings::GatewaySettings;
use crate::socket::{NoWay, check_way};
use crate::tcp::Tcp;
use crate::udp::Udp;
use crate::wire_out::WireOut;

/// What all protocols need.
#[derive(Debug)]
pub(crate) struct GatewayContext {
    pub(crate) poller: Poller,
    pub(crate) maker: NodeSocketFactory,
    pub(crate) out: WireOut,
    pub(crate) report: GatewayReport,
    pub(crate) log: InternetFlowLog,
    pub(crate) policy: EgressPolicy,
    pub(crate) settings: GatewaySettings,
}

/// A packet that came by the node's link.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NodeLinkPacket<'a> {
    pub(crate) parsed: &'a ParsedPacket<'a>,
    pub(crate) vnet: &'a vnet::VirtioNetHeader,
    /// Where answers go.
    pub(crate) mac: [u8; 6],
}

/// What the process is forked with.
pub(crate) struct GatewayForkParameters {
    pub(crate) settings: GatewaySettings,
    pub(crate) control: OwnedFd,
    pub(crate) inside: OwnedFd,
    pub(crate) log: OwnedFd,
    pub(crate) listening: Vec<Listening>,
}

struct GatewayProcess {
    context: GatewayContext,
    control: OwnedFd,
    tcp: Tcp,
    udp: Udp,
    echo: EchoRelay,
    names: DnsForwarder,
    ports: PublishedPortListeners,
    reassembly: FragmentReassembler,
    /// What it had counted when the run ended, and programs began to be stopped.
    at_end: Option<GatewayReport>,
}

/// Works until all is over; the parent is informed of what goes wrong.
pub(crate) fn run(start: GatewayForkParameters) -> io::Result<()> {
    let control = start.control.as_fd().try_clone_to_owned()?;
    match prepare(start) {
        Ok((mut worker, ring)) => {
            message::send(&control, &GatewayEvent::Ready, &[])?;
            worker.work(&ring)
        }
        Err(why) => message::send(&control, &GatewayEvent::Failed(why), &[]),
    }
}

/// Waits for what the node's init makes, and opens the rest.
fn prepare(start: GatewayForkParameters) -> Result<(GatewayProcess, packet::PacketSocket), String> {
    let GatewayForkParameters { settings, control, inside, log, listening } = start;
    let made = message::receive::<Result<GatewayDevices, String>>(&inside)
        .map_err(|error| error.to_string())?;
    let (made, descriptors) = made.ok_or("the node's first process is gone")?;
    let devices = made?;
    let [ring, outlet] = <[OwnedFd; 2]>::try_from(descriptors)
        .map_err(|_| "the node's first process sent no packet sockets".to_owned())?;
    let failed = |what: &'static str| move |error: io::Error| format!("cannot {what}: {error}");
    let ring = packet::PacketSocket::adopt(ring, devices.link, RING_SLOTS)
        .map_err(failed("map a ring for packets"))?;
    let out = WireOut::new(outlet, devices, &settings).map_err(failed("send packets"))?;
    let poller = Poller::open().map_err(failed("wait for descriptors"))?;
    poller.add_readable(&ring, PollerToken::Ring).map_err(failed("wait for packets"))?;
    poller.add_readable(&control, PollerToken::Control).map_err(failed("wait for orders"))?;
    let mut context = GatewayContext {
        poller,
        maker: NodeSocketFactory::new(inside),
        out,
        report: GatewayReport::default(),
        log: InternetFlowLog::new(log),
        policy: EgressPolicy::new(&settings),
        settings,
    };
    let (mut names, mut tcp) = (DnsForwarder::default(), Tcp::default());
    names.listen(&mut context).map_err(failed("answer for names"))?;
    tcp.listen_for_names(&mut context).map_err(failed("answer for names"))?;
    let ports =
        PublishedPortListeners::open(&context, listening).map_err(failed("publish ports"))?;
    let (udp, echo, reassembly) =
        (Udp::default(), EchoRelay::default(), FragmentReassembler::default());
    let at_end = None;
    let worker =
        GatewayProcess { context, control, tcp, udp, echo, names, ports, reassembly, at_end };
    Ok((worker, ring))
}

impl GatewayProcess {
    fn work(&mut self, ring: &packet::PacketSocket) -> io::Result<()> {
        let mut ready = Vec::new();
        let mut expire_at_ns = clock::monotonic_ns();
        let mut more = false;
        loop {
            let timeout = if more { Duration::ZERO } else { TICK };
            self.context.poller.wait(timeout, &mut ready)?;
            for event in ready.drain(..) {
                if self.is_over(event, ring)? {
                    return Ok(());
                }
            }
            more = self.tcp.pump_more(&mut self.context);
            let now_ns = clock::monotonic_ns();
            if now_ns >= expire_at_ns {
                expire_at_ns = now_ns.saturating_add(TICK_NS);
                self.expire(ring);
            }
        }
    }

    /// Does what a descriptor is ready for; whether all is over.
    fn is_over(
        &mut self,
        PollerEvent { token, error }: PollerEvent,
        ring: &packet::PacketSocket,
    ) -> io::Result<bool> {
        let context = &mut self.context;
        match token {
            PollerToken::Control => return self.obey(ring),
            PollerToken::Ring => self.frames(ring),
            PollerToken::Dial(id) => self.tcp.dialled(context, id),
            PollerToken::Listener(id) => self.tcp.accept(context, id),
            PollerToken::Pair(id) => self.tcp.pump(context, id, error),
            PollerToken::Session(id) => self.udp.answers(context, id, error),
            PollerToken::Echo(id) => self.echo.answers(context, id),
            PollerToken::Names(number) => self.names.questions(context, number),
            PollerToken::Question(id) => self.names.answer(context, id),
            PollerToken::Publish(number) => self.ports.accept(context, &mut self.tcp, number),
        }
        Ok(false)
    }

    fn obey(&mut self, ring: &packet::PacketSocket) -> io::Result<bool> {
        match message::receive::<GatewayCommand>(&self.control)? {
            Some((GatewayCommand::Begin { origin_ns }, _)) => {
                self.context.log.begin(origin_ns);
                Ok(false)
            }
            Some((GatewayCommand::CountNoMore, _)) => {
                // Of what the kernel has dropped until now, too.
                self.expire(ring);
                self.at_end = Some(self.context.report.clone());
                Ok(false)
            }
            Some((GatewayCommand::End, _)) => {
                self.expire(ring);
                self.tcp.close(&mut self.context);
                self.udp.close(&mut self.context);
                self.echo.close(&mut self.context);
                self.context.report.lines_lost = self.context.log.lost();
                let report = self.context.report.clone().of_run(self.at_end.as_ref());
                message::send(&self.control, &GatewayEvent::Ended(report), &[])?;
                Ok(true)
            }
            None => Ok(true),
        }
    }

    fn expire(&mut self, ring: &packet::PacketSocket) {
        let context = &mut self.context;
        if let Ok(statistics) = ring.statistics() {
            let what = "packets of the network that the gateway did not take in time";
            context.report.count(GatewayCounterUpdate::Lost(what, statistics.drops.into()));
        }
        self.tcp.expire(context);
        self.udp.expire(context);
        self.echo.expire(context);
        self.names.expire(context);
        self.ports.resume(context);
    }

    /// Takes frames of the node's link: some go to the node's kernel, out of the slots that they
    /// are in.
    fn frames(&mut self, ring: &packet::PacketSocket) {
        let mut passed: Vec<ReceiveRingFrame<'_>> = Vec::with_capacity(BATCH);
        for _ in 0..BATCH {
            let Some(mut slot) = ring.ring().next() else { break };
            if slot.truncated() {
                self.context.report.count(GatewayCounterUpdate::Ignored("truncated"));
                continue;
            }
            let vnet = vnet::VirtioNetHeader::parse(slot.vnet_header());
            if self.frame(slot.frame(), &vnet, true) {
                self.context.out.address_to_kernel(slot.parts_mut().1);
                passed.push(slot);
            }
        }
        let frames: Vec<_> = passed.iter().map(|slot| (slot.vnet_header(), slot.frame())).collect();
        self.context.out.send_to_kernel(&frames, &mut self.context.report);
    }

    /// Takes one frame; whether it goes to the node's kernel.
    fn frame(&mut self, frame: &[u8], vnet: &vnet::VirtioNetHeader, may_be_fragment: bool) -> bool {
        let parsed = match ParsedPacket::parse(frame) {
            Ok(parsed) => parsed,
            // Address resolution is the kernel's own.
            Err(PacketParseError::NotIp(ethernet::ARP)) => return false,
            Err(_) => {
                self.context.report.count(GatewayCounterUpdate::Ignored("malformed"));
                return false;
            }
        };
        let info = &parsed.info;
        if self.is_for_kernel_only(info) {
            return false;
        }
        let mac = ethernet::EthernetFrame::parse(frame).map_or([0; 6], |view| view.source());
        let packet = NodeLinkPacket { parsed: &parsed, vnet, mac };
        if info.ttl <= 1 {
            self.context.answer(&packet, IcmpErrorKind::TimeExceeded);
            return false;
        }
        if info.is_fragment {
            let whole = self.reassembly.push(clock::monotonic_ns(), &parsed);
            if let Some(mut whole) = whole.filter(|_| may_be_fragment) {
                let header = vnet::VirtioNetHeader::default();
                if self.frame(&whole, &header, false) {
                    self.context.out.address_to_kernel(&mut whole);
                    let frames = [(&header.emit(), &whole[..])];
                    self.context.out.send_to_kernel(&frames, &mut self.context.report);
                }
            }
            return false;
        }
        self.packet(&packet)
    }

    fn packet(&mut self, packet: &NodeLinkPacket<'_>) -> bool {
        let context = &mut self.context;
        let (info, kind) = (&packet.parsed.info, packet.parsed.payload().first().copied());
        match (info.protocol, info.version, kind) {
            (tcp::PROTOCOL, ..) => return self.tcp.segment(context, packet),
            (udp::PROTOCOL, ..) => self.udp.datagram(context, packet),
            (icmp::PROTOCOL_V4, IpVersion::V4, Some(icmp::ECHO_REQUEST_V4))
            | (icmp::PROTOCOL_V6, IpVersion::V6, Some(icmp::ECHO_REQUEST_V6)) => {
                self.echo.request(context, packet);
            }
            // About segments of the kernel's connections, such as what the network says of its MTU.
            (icmp::PROTOCOL_V4 | icmp::PROTOCOL_V6, ..) if info.is_icmp_error => {
                return true;
            }
            _ => {
                context.report.count(GatewayCounterUpdate::Ignored("protocol"));
                context.answer(packet, IcmpErrorKind::AdminProhibited);
            }
        }
        false
    }

    /// What is for the node itself its kernel has got, and what is for a group or one link is for
    /// nothing outside.
    fn is_for_kernel_only(&self, info: &IpPacketSummary) -> bool {
        let is_link_local = |address: IpAddr| match address {
            IpAddr::V4(_) => false,
            IpAddr::V6(v6) => v6.is_unicast_link_local(),
        };
        info.is_multicast
            || self.context.is_own(info.destination)
            || is_link_local(info.source)
            || info.destination != info.final_destination
    }
}

impl NodeLinkPacket<'_> {
    /// Whether its checksums are right, as far as they are complete.
    pub(crate) fn is_intact(&self) -> bool {
        self.vnet.flags & (vnet::NEEDS_CSUM | vnet::DATA_VALID) != 0 || checksum::holds(self.parsed)
    }
}

impl GatewayContext {
    /// What a destination is outside.
    pub(crate) fn way(&mut self, to: IpAddr, port: Option<u16>) -> Result<IpAddr, EgressRefusal> {
        let outside = self.policy.outside(to, port)?;
        if self.policy.is_host(to) {
            return Ok(outside);
        }
        match check_way(outside) {
            Ok(()) => Ok(outside),
            Err(NoWay::Refused(refusal)) => Err(refusal),
            Err(NoWay::Unknown) => {
                self.report.count(GatewayCounterUpdate::Lost(FAILED, 1));
                Err(EgressRefusal::NoRoute)
            }
        }
    }

    /// Whether an address is the node's own.
    pub(crate) fn is_own(&self, address: IpAddr) -> bool {
        self.settings.own.contains(&address)
    }

    /// Answers and counts a packet that may not pass.
    pub(crate) fn refuse(&mut self, packet: &NodeLinkPacket<'_>, refusal: EgressRefusal) {
        self.report.count(GatewayCounterUpdate::Refused(refusal));
        self.answer(packet, refusal.kind());
    }

    /// Says to the sender of a packet what became of it.
    pub(crate) fn answer(&mut self, packet: &NodeLinkPacket<'_>, kind: IcmpErrorKind) {
        self.out.answer_error(packet.parsed, kind, packet.mac, &mut self.report);
    }

    /// The same for a frame that has been kept, or made.
    pub(crate) fn answer_error(&mut self, frame: &[u8], mac: [u8; 6], kind: IcmpErrorKind) {
        if let Ok(packet) = ParsedPacket::parse(frame) {
            self.out.answer_error(&packet, kind, mac, &mut self.report);
        }
    }

    /// Adds what a flow has carried.
    pub(crate) fn carried(&mut self, line: &FlowLine) {
        self.report.sent_bytes = self.report.sent_bytes.saturating_add(line.sent_bytes);
        self.report.received_bytes = self.report.received_bytes.saturating_add(line.received_bytes);
    }

    /// The machine's resolvers, as they are now.
    pub(crate) fn resolvers(&self) -> Vec<IpAddr> {
        names::resolvers(&std::fs::read_to_string(RESOLV_CONF).unwrap_or_default())
    }
}

const RESOLV_CONF: &str = "/etc/resolv.conf";
/// Of 68 KiB each.
const RING_SLOTS: usize = 1500;
const BATCH: usize = 64;
const TICK: Duration = Duration::from_secs(1);
const TICK_NS: u64 = 1_000_000_000;
