//! The handshake: SYN to all, and the SYN-ACK that all can keep.

use super::ReplicatedConnection;
use super::client_state::{ClientTcpState, mss_default};
use super::delivered::DeliveredStream;
use super::lifecycle::{ConnectionLifecycle, ConnectionPhase};
use super::replica_set::ConnectionReplicaSet;
use super::server_state::VirtualServerTcpState;
use crate::config::{OPENING_MAX, REPLICAS_MAX, RESET_LINGER};
use crate::context::ReplicationContext;
use crate::event::{
    ConnectionTermination, ReplicaExpulsionCause, ReplicaId, ReplicatedConnectionKey,
    ReplicationEventKind,
};
use crate::replica::ReplicaLifecycleStage;
use crate::segment::ParsedTcpSegment;
use windtunnel_model::Time;
use windtunnel_wire::tcp;

impl ReplicatedConnection {
    /// A client opens a connection: every replica is sent its SYN.
    pub(crate) fn open(
        cx: &mut ReplicationContext<'_>,
        key: ReplicatedConnectionKey,
        segment: &ParsedTcpSegment<'_>,
        order: &[ReplicaId],
    ) -> Self {
        cx.sink.counters.options_removed += u64::from(segment.options.others);
        if order.len() > REPLICAS_MAX {
            cx.sink.counters.replicas_left_out += 1;
        }
        let client = ClientTcpState::new(key, segment, cx.config.mss_max);
        let server = VirtualServerTcpState::new(client.template.reversed(), cx.now);
        let mut connection = Self {
            life: ConnectionLifecycle::new(key, cx.now),
            client,
            server,
            replicas: ConnectionReplicaSet::new(order, cx.now),
            delivered: DeliveredStream::new(),
        };
        for index in 0..connection.replicas.members.len() {
            connection.replica_sender().send_syn(cx, index);
        }
        connection
    }

    /// The client has sent its SYN again: the replicas that have not answered are asked again.
    pub(super) fn ask_again(
        &mut self,
        cx: &mut ReplicationContext<'_>,
        segment: &ParsedTcpSegment<'_>,
    ) {
        self.client.repeat_syn(segment);
        for index in 0..self.replicas.members.len() {
            if self.replicas.is_asked(index) {
                self.replica_sender().send_syn(cx, index);
                self.replicas.members[index].health.asked_again(cx.now);
            }
        }
    }

    /// A replica's packet before the client has been answered.
    pub(super) fn handle_answer(
        &mut self,
        cx: &mut ReplicationContext<'_>,
        index: usize,
        segment: &ParsedTcpSegment<'_>,
    ) {
        let answers_syn = self.client.is_syn_answered_by(segment);
        if segment.has(tcp::RST) {
            if answers_syn {
                self.life.note_answer(cx.now);
                let (cause, since) = (ReplicaExpulsionCause::Refused, cx.now);
                self.replicas.leave(cx, &self.life.key, index, cause, since);
                self.open_if_all_answered(cx);
            }
        } else if segment.has(tcp::SYN) && answers_syn {
            self.life.note_answer(cx.now);
            self.server.template.renew(segment.head);
            let replica = &mut self.replicas.members[index];
            if replica.status == ReplicaLifecycleStage::Asked {
                replica.health.round_trip = cx.now.since(replica.health.asked);
            }
            replica.answer(segment, self.client.syn.shift.is_some());
            if let Some((value, _)) = segment.options.stamps {
                replica.stamps.record(crate::stamps::clock(cx.now), value);
            }
            cx.sink.counters.options_removed += u64::from(segment.options.others);
            self.open_if_all_answered(cx);
        } else {
            self.client_sender().pass_challenge(cx, segment);
        }
    }

    /// What is due in the handshake, once a replica has answered.
    pub(super) fn opening_timeout(&mut self, cx: &mut ReplicationContext<'_>, first: Option<Time>) {
        let detection = cx.config.detection;
        let Some(first) = first else { return };
        let is_late = first + detection.answer <= cx.now;
        for index in 0..self.replicas.members.len() {
            if !self.replicas.is_asked(index) {
                continue;
            }
            let again = self.replicas.members[index].health.ask_again(first, detection.patience);
            if is_late {
                let cause = ReplicaExpulsionCause::NoAnswer;
                self.replicas.leave(cx, &self.life.key, index, cause, first);
            } else if again <= cx.now {
                self.replica_sender().send_syn(cx, index);
                self.replicas.members[index].health.asked_again(cx.now);
            }
        }
        self.open_if_all_answered(cx);
    }

    /// When the next of that is due.
    pub(super) fn opening_deadline(
        &self,
        cx: &ReplicationContext<'_>,
        first: Option<Time>,
    ) -> Time {
        let end = self.life.opened + OPENING_MAX;
        let Some(first) = first else { return end };
        let detection = &cx.config.detection;
        let members = self.replicas.members.iter();
        let asked = members.filter(|replica| replica.status == ReplicaLifecycleStage::Asked);
        let again = asked.map(|replica| replica.health.ask_again(first, detection.patience));
        again.min().unwrap_or(end).min(first + detection.answer).min(end)
    }

    /// Gives the client its SYN-ACK, once no answer is waited for.
    pub(super) fn open_if_all_answered(&mut self, cx: &mut ReplicationContext<'_>) {
        let ConnectionPhase::Opening { first_answer } = self.life.phase else { return };
        if (0..self.replicas.members.len()).any(|index| self.replicas.is_asked(index)) {
            return;
        }
        let Some(primary) = self.replicas.begin() else {
            self.client_sender().refuse(cx);
            self.life.end(cx, ConnectionTermination::Refused, RESET_LINGER);
            return;
        };
        self.life.phase = ConnectionPhase::Open;
        let default = mss_default(&self.life.key);
        self.server.agree(&self.replicas, &self.client, default, cx.config.mss_max);
        self.client.agree_shift(self.server.syn.shift);
        self.client_sender().send_syn_ack(cx);
        cx.sink.counters.opened += 1;
        let waited = cx.now.since(first_answer.unwrap_or(cx.now));
        let replicas = self.replicas.live_count();
        let opened = ReplicationEventKind::Opened { primary, replicas, waited };
        cx.sink.event(self.life.key, opened);
    }
}
