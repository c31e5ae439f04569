//! The handshake: SYN to all, and the SYN-ACK that all can keep.

use alloc::vec::Vec;

use super::{Client, Connection, Context, Phase, Server};
use crate::config::{OPENING_MAX, REPLICAS_MAX, RESET_LINGER};
use crate::draft::{Draft, Template};
use crate::event::{Cause, Ending, Key, ReplicaId, What};
use crate::offset::Space;
use crate::options::Options;
use crate::ranges::Ranges;
use crate::replica::{Replica, Status};
use crate::segment::Segment;
use windtunnel_model::Time;
use windtunnel_wire::tcp;

/// The MSS where the option is missing (RFC 9293, 3.7.1): IPv4, IPv6.
const MSS_DEFAULT: (u16, u16) = (536, 1220);
/// Bytes of timestamps in a segment.
const STAMPS_LEN: usize = 12;

impl Connection {
    /// A client opens a connection: every replica is sent its SYN. Fast open and other options that
    /// need a state of their own on both sides are left out, and so is data with the SYN.
    pub(crate) fn open(
        cx: &mut Context<'_>,
        key: Key,
        segment: &Segment<'_>,
        order: &[ReplicaId],
    ) -> Self {
        cx.sink.counters.options_removed += u64::from(segment.options.others);
        if order.len() > REPLICAS_MAX {
            cx.sink.counters.replicas_left_out += 1;
        }
        let client = Client::new(cx, key, segment);
        let template = client.template.reversed();
        let replicas = order.iter().take(REPLICAS_MAX).map(|id| Replica::new(*id, cx.now));
        let connection = Self {
            key,
            phase: Phase::Opening { first_answer: None },
            opened: cx.now,
            active: cx.now,
            client,
            server: Server { template, spoke: cx.now, ..Server::default() },
            replicas: replicas.collect::<Vec<_>>(),
            primary: 0,
            delivered: 1,
            sent: Ranges::default(),
            fin: None,
            is_resuming: false,
            shown: Ranges::default(),
        };
        for index in 0..connection.replicas.len() {
            connection.send_syn(cx, index);
        }
        connection
    }

    fn send_syn(&self, cx: &mut Context<'_>, index: usize) {
        let client = &self.client;
        let ecn = if client.wants_ecn { tcp::ECE | tcp::CWR } else { 0 };
        let draft = Draft {
            sequence: client.space.sequence(0),
            flags: tcp::SYN | ecn,
            window: client.syn_window,
            options: client.syn,
            ..Draft::default()
        };
        if let Some(replica) = self.replicas.get(index) {
            cx.sink.send_to_replica(replica.id, &draft, &client.template, 0);
        }
    }

    /// The client has sent its SYN again: the replicas that have not answered are asked again.
    pub(super) fn ask_again(&mut self, cx: &mut Context<'_>, segment: &Segment<'_>) {
        if let (Some(stamps), true) = (segment.options.stamps, self.client.syn.stamps.is_some()) {
            self.client.syn.stamps = Some(stamps);
            self.client.stamp = stamps.0;
        }
        for index in 0..self.replicas.len() {
            if self.status(index) == Status::Asked {
                self.send_syn(cx, index);
                self.replicas[index].health.asked_again(cx.now);
            }
        }
    }

    /// A replica's packet before the client has been answered.
    pub(super) fn handle_answer(
        &mut self,
        cx: &mut Context<'_>,
        index: usize,
        segment: &Segment<'_>,
    ) {
        let answers_syn = segment.has(tcp::ACK)
            && self.client.space.offset(segment.acknowledgement, 1) == Some(1);
        if segment.has(tcp::RST) {
            if answers_syn {
                self.note_answer(cx.now);
                self.leave(cx, index, Cause::Refused, cx.now);
                self.open_if_all_answered(cx);
            }
        } else if segment.has(tcp::SYN) && answers_syn {
            self.note_answer(cx.now);
            self.server.template.renew(segment.head);
            let replica = &mut self.replicas[index];
            if replica.status == Status::Asked {
                replica.health.round_trip = cx.now.since(replica.health.asked);
            }
            replica.answer(segment, self.client.syn.shift.is_some());
            if let Some((value, _)) = segment.options.stamps {
                replica.stamps.record(crate::stamps::clock(cx.now), value);
            }
            cx.sink.counters.options_removed += u64::from(segment.options.others);
            self.open_if_all_answered(cx);
        } else {
            self.pass_challenge(cx, segment);
        }
    }

    /// A replica that still knows an earlier connection from this port answers with what that one
    /// would have: the client resets it and sends its SYN again (RFC 9293, 3.5.1).
    fn pass_challenge(&mut self, cx: &mut Context<'_>, segment: &Segment<'_>) {
        self.server.template.renew(segment.head);
        let draft = Draft {
            sequence: segment.sequence,
            acknowledgement: segment.acknowledgement,
            flags: tcp::ACK,
            window: segment.window,
            ..Draft::default()
        };
        cx.sink.send_to_client(&draft, &self.server.template, 0);
    }

    fn note_answer(&mut self, now: Time) {
        if let Phase::Opening { first_answer: first @ None } = &mut self.phase {
            *first = Some(now);
        }
    }

    /// What is due in the handshake, once a replica has answered.
    pub(super) fn opening_timeout(&mut self, cx: &mut Context<'_>, first: Option<Time>) {
        let detection = cx.config.detection;
        let Some(first) = first else { return };
        let is_late = first + detection.answer <= cx.now;
        for index in 0..self.replicas.len() {
            if self.status(index) != Status::Asked {
                continue;
            }
            let again = self.replicas[index].health.ask_again(first, detection.patience);
            if is_late {
                self.leave(cx, index, Cause::NoAnswer, first);
            } else if again <= cx.now {
                self.send_syn(cx, index);
                self.replicas[index].health.asked_again(cx.now);
            }
        }
        self.open_if_all_answered(cx);
    }

    /// When the next of that is due.
    pub(super) fn opening_deadline(&self, cx: &Context<'_>, first: Option<Time>) -> Time {
        let end = self.opened + OPENING_MAX;
        let Some(first) = first else { return end };
        let detection = &cx.config.detection;
        let asked = self.replicas.iter().filter(|replica| replica.status == Status::Asked);
        let again = asked.map(|replica| replica.health.ask_again(first, detection.patience));
        again.min().unwrap_or(end).min(first + detection.answer).min(end)
    }

    /// Gives the client its SYN-ACK, once no answer is waited for.
    pub(super) fn open_if_all_answered(&mut self, cx: &mut Context<'_>) {
        let Phase::Opening { first_answer } = self.phase else { return };
        if self.replicas.iter().any(|replica| replica.status == Status::Asked) {
            return;
        }
        let mut answered =
            self.replicas.iter_mut().filter(|replica| replica.status == Status::Answered);
        answered.by_ref().for_each(|replica| replica.status = Status::Live);
        let Some(primary) = self.replicas.iter().position(Replica::is_live) else {
            self.refuse(cx);
            return;
        };
        self.primary = primary;
        self.phase = Phase::Open;
        self.agree(cx);
        self.send_syn_ack(cx);
        cx.sink.counters.opened += 1;
        let waited = cx.now.since(first_answer.unwrap_or(cx.now));
        let (primary, replicas) = (self.replicas[primary].id, self.live_count());
        cx.sink.event(self.key, What::Opened { primary, replicas, waited });
    }

    /// What the client is offered: no more than any replica can take, and what can be translated.
    ///
    /// The MSS is the least. Windows and timestamps are translated, so these options are there if
    /// any replica has them; the shift is the largest, so that every window can be said. SACK and
    /// ECN are there if all have them.
    fn agree(&mut self, cx: &Context<'_>) {
        let default = mss_default(&self.key);
        let live = || self.replicas.iter().filter(|replica| replica.is_live());
        let mss = live().map(|replica| replica.syn.mss.unwrap_or(default)).min();
        let syn = Options {
            mss: Some(mss.unwrap_or(default).min(cx.config.mss_max)),
            shift: live().filter_map(|replica| replica.syn.shift).max(),
            sack_permitted: live().all(|replica| replica.syn.sack_permitted),
            stamps: live().find_map(|replica| replica.syn.stamps),
            ..Options::default()
        };
        let ecn = live().all(|replica| replica.ecn);
        let space = self.replicas[self.primary].space;
        let client = &mut self.client;
        client.shift = syn.shift.and(client.syn.shift).unwrap_or(0);
        let stamps_len = if syn.stamps.is_some() { STAMPS_LEN } else { 0 };
        let room = usize::from(client.syn.mss.unwrap_or(default));
        let server = &mut self.server;
        server.segment_max = room.saturating_sub(stamps_len).max(1);
        server.space = space;
        server.syn = syn;
        server.ecn = ecn && client.wants_ecn;
        server.echo = client.stamp;
    }

    /// The SYN-ACK; also when the client, or a replica, sends its part of the handshake again.
    pub(super) fn send_syn_ack(&mut self, cx: &mut Context<'_>) {
        let window = self.edge().saturating_sub(1).min(u64::from(u16::MAX));
        let stamp = crate::stamps::clock(cx.now);
        let server = &mut self.server;
        let draft = Draft {
            sequence: server.space.sequence(0),
            acknowledgement: self.client.space.sequence(1),
            flags: tcp::SYN | tcp::ACK | if server.ecn { tcp::ECE } else { 0 },
            window: u16::try_from(window).unwrap_or(u16::MAX),
            options: Options {
                stamps: server.syn.stamps.map(|_| (stamp, server.echo)),
                ..server.syn
            },
            ..Draft::default()
        };
        cx.sink.send_to_client(&draft, &server.template, server.identification);
        server.identification = server.identification.wrapping_add(1);
        server.announced = (1, 1 + window);
        server.spoke = cx.now;
        server.sent_data = Some(cx.now);
    }

    /// No replica takes the connection.
    fn refuse(&mut self, cx: &mut Context<'_>) {
        let draft = Draft {
            acknowledgement: self.client.space.sequence(1),
            flags: tcp::RST | tcp::ACK,
            ..Draft::default()
        };
        cx.sink.send_to_client(&draft, &self.server.template, 0);
        self.end(cx, Ending::Refused, RESET_LINGER);
    }
}

impl Client {
    fn new(cx: &Context<'_>, key: Key, segment: &Segment<'_>) -> Self {
        let options = &segment.options;
        let mss = options.mss.unwrap_or(mss_default(&key)).min(cx.config.mss_max);
        Self {
            space: Space { isn: segment.sequence },
            syn: Options {
                mss: Some(mss),
                shift: options.shift,
                sack_permitted: options.sack_permitted,
                stamps: options.stamps,
                ..Options::default()
            },
            wants_ecn: segment.has(tcp::ECE) && segment.has(tcp::CWR),
            syn_window: segment.window,
            sent: 1,
            acked: 0,
            shift: 0,
            edge: 1 + u64::from(segment.window),
            stamp: options.stamps.map_or(0, |(value, _)| value),
            fin: None,
            asks: false,
            lacks_ack: false,
            retransmissions: 0,
            template: Template::new(segment.head, key.client.port(), key.service.port()),
        }
    }
}

fn mss_default(key: &Key) -> u16 {
    if key.client.is_ipv4() { MSS_DEFAULT.0 } else { MSS_DEFAULT.1 }
}
