//! A client and replicas at the ends of an emulated network.

use std::net::SocketAddr;

use windtunnel_engine::{FailOverCounters, FailOverNews, FailOverWhat, NetworkEventKind};
use windtunnel_model::plan::{
    EventAction, LinkChange, Plan, Service, ServiceChange, ServiceUpdate,
};
use windtunnel_model::{Lane, LinkDirection, LinkId, NodeId, ServiceId, Span, Time};
use windtunnel_wire::vnet;

use crate::network::{CLIENT, client, www};
use crate::programs::{Client, Program};
use crate::seg::{ACK, SYN, Seg, cut};
use crate::support::Net;
use crate::tcp::{Settings, State, Tcp};

const WWW: ServiceId = ServiceId(0);
/// Steps of one simulation at the most.
const STEPS_MAX: u64 = 1_000_000;

/// A replica's host.
#[derive(Default)]
pub(crate) struct Host {
    pub(crate) tcp: Option<Tcp>,
    pub(crate) is_killed: bool,
}

pub(crate) struct Ends {
    pub(crate) net: Net,
    pub(crate) client: Tcp,
    pub(crate) program: Client,
    /// Of the service's replicas, which are the nodes from 1 on.
    pub(crate) hosts: Vec<Host>,
    pub(crate) news: Vec<(Time, FailOverNews)>,
    again: Option<Time>,
    serves: Program,
    seen: usize,
    steps: u64,
}

impl Ends {
    /// A client that connects at once; all replicas listen.
    pub(crate) fn new(plan: Plan, service: Service, program: Program) -> Ends {
        let replicas: Vec<NodeId> = service.replicas.iter().map(|it| it.node).collect();
        Ends::with(plan, service, program, &replicas)
    }

    /// The same where only these replicas listen.
    pub(crate) fn with(
        mut plan: Plan,
        service: Service,
        program: Program,
        listen: &[NodeId],
    ) -> Ends {
        let hosts = service.replicas.iter().map(|_| Host::default()).collect();
        let ports = service.ports.clone();
        plan.services.push(service);
        assert_eq!(plan.validate(), Ok(()));
        let settings = Settings { isn: 0xffff_fff0, ..Settings::default() };
        let mut ends = Ends {
            net: Net::new(plan),
            client: Tcp::connect(Time::ZERO, client(), www(), settings),
            program: Client::new(program),
            hosts,
            news: Vec::new(),
            again: None,
            serves: program,
            seen: 0,
            steps: 0,
        };
        for replica in listen {
            for port in &ports {
                let update = ServiceUpdate::Registered { replica: *replica, port: *port };
                ends.update(Time::ZERO, update);
            }
        }
        ends.after_client();
        ends
    }

    /// Changes the service.
    pub(crate) fn update(&mut self, at: Time, update: ServiceUpdate) {
        let change = ServiceChange { service: WWW, update };
        self.net.apply(at.as_nanos(), &EventAction::Service(vec![change]));
    }

    /// Cuts a link, or mends it.
    pub(crate) fn set_link(&mut self, at: Time, link: u32, up: bool) {
        let lane = |direction| (Lane { link: LinkId(link), direction }, up);
        let state = LinkDirection::BOTH.map(lane).to_vec();
        let change = LinkChange { patches: Vec::new(), state };
        self.net.apply(at.as_nanos(), &EventAction::Link(change));
    }

    pub(crate) fn reroute(&mut self, at: Time) {
        self.net.apply(at.as_nanos(), &EventAction::Reroute);
    }

    /// The program of a replica is killed: its kernel closes its connection.
    pub(crate) fn kill(&mut self, at: Time, replica: u32) {
        let host = &mut self.hosts[replica as usize - 1];
        host.is_killed = true;
        host.tcp.iter_mut().for_each(|tcp| tcp.kill(at));
        self.after_host(replica);
    }

    /// Runs until the client has finished, or until a time.
    pub(crate) fn run(&mut self, until: Time) {
        while !self.client.is_finished() && self.client.state != State::Closed {
            if !self.step(until) {
                break;
            }
        }
    }

    /// Runs to the end, at which the client has all that it should, and met no reset.
    pub(crate) fn finish(&mut self) {
        self.run(Time::ZERO + Span::from_secs(100));
        assert!(!self.client.was_reset, "the client was reset: {:?}", self.news);
        let (now, bytes) = (self.net.now, self.client.received.len());
        assert!(self.client.is_finished(), "stuck at {now} after {bytes} bytes: {:?}", self.news);
        if let Some(replies) = self.serves.replies() {
            assert!(self.client.received == replies, "the client read other bytes");
        }
        self.net.check_conservation();
    }

    pub(crate) fn counters(&self) -> FailOverCounters {
        self.net.engine.services().fail_over(WWW).unwrap()
    }

    /// What happened, without connections and times.
    pub(crate) fn what(&self) -> Vec<FailOverWhat> {
        self.news.iter().map(|(_, news)| news.what).collect()
    }

    fn step(&mut self, until: Time) -> bool {
        let timers = self.hosts.iter().filter_map(|host| host.tcp.as_ref()?.deadline());
        let own = timers.chain(self.client.deadline()).chain(self.again);
        let Some(at) = own.chain(self.net.engine.poll_timeout()).min() else { return false };
        if at > until {
            return false;
        }
        self.steps += 1;
        assert!(self.steps < STEPS_MAX, "endless at {at}");
        let at = at.max(self.net.now);
        self.net.run_until(at.as_nanos());
        self.take_all();
        let due = |timer: Option<Time>| timer.is_some_and(|due| due <= at);
        if due(self.client.deadline()) {
            self.client.handle_timeout(at);
        }
        self.after_client();
        for replica in 1..=self.hosts.len() as u32 {
            let tcp = &mut self.hosts[replica as usize - 1].tcp;
            if let Some(tcp) = tcp.as_mut().filter(|tcp| due(tcp.deadline())) {
                tcp.handle_timeout(at);
                self.after_host(replica);
            }
        }
        true
    }

    /// Gives what came out to its end, and what comes of that.
    fn take_all(&mut self) {
        while let Some(out) = self.net.out.get(self.seen).cloned() {
            self.seen += 1;
            let is_tcp = out.frame[23] == windtunnel_wire::tcp::PROTOCOL;
            for frame in is_tcp.then(|| cut(&out.vnet, &out.frame)).into_iter().flatten() {
                let seg = Seg::parse(&frame);
                match out.port {
                    CLIENT => {
                        self.client.receive(self.net.now, &seg);
                        self.after_client();
                    }
                    replica => self.at_host(replica, &seg),
                }
            }
        }
        let now = self.net.now;
        while let Some(event) = self.net.engine.poll_event() {
            if let NetworkEventKind::FailOver(news) = event.kind {
                self.news.push((now, news));
            }
        }
    }

    fn at_host(&mut self, replica: u32, seg: &Seg) {
        let now = self.net.now;
        let Some(host) = self.hosts.get_mut(replica as usize - 1) else { return };
        let opens = seg.has(SYN) && !seg.has(ACK);
        match &mut host.tcp {
            None if opens && !host.is_killed => {
                let isn = 0x3210_0000_u32.wrapping_mul(replica);
                let stamps = Some((77_777 * replica, 1_000_000));
                let settings = Settings { isn, stamps, ..Settings::default() };
                host.tcp = Some(Tcp::accept(now, seg, settings));
            }
            Some(tcp) => tcp.receive(now, seg),
            None => {}
        }
        if let Some(tcp) = host.tcp.as_mut().filter(|tcp| tcp.state == State::Open)
            && !host.is_killed
        {
            self.serves.serve(now, tcp);
        }
        self.after_host(replica);
    }

    fn after_client(&mut self) {
        self.again = self.program.act(self.net.now, &mut self.client);
        for seg in std::mem::take(&mut self.client.out) {
            self.send(CLIENT, &seg);
        }
    }

    fn after_host(&mut self, replica: u32) {
        let tcp = self.hosts[replica as usize - 1].tcp.as_mut();
        for seg in tcp.map(|tcp| std::mem::take(&mut tcp.out)).unwrap_or_default() {
            self.send(replica, &seg);
        }
    }

    fn send(&mut self, port: u32, seg: &Seg) {
        let now = self.net.now.as_nanos();
        self.net.send(now, port, vnet::VirtioNetHeader::default(), &seg.frame());
    }
}

/// The client's address with another port.
pub(crate) fn client_at(port: u16) -> SocketAddr {
    (client().ip(), port).into()
}
