//! A redirector as the holder of connections that outlive their server: which those are, what comes
//! to it, and what it sends.

use alloc::vec::Vec;

use windtunnel_model::{RouterId, ServiceId, Time};
use windtunnel_wire::packet::ParsedPacket;
use windtunnel_wire::{tcp, vnet};

use super::choice::FindWay;
use super::directory::RedirectionRequest;
use super::pins::CoarseTime;
use super::transparent::ends;
use super::{
    FailOverDisposition, FailOverNews, FailOverPacket, FailOverSender, Redirection,
    ServiceRedirector, TunnelEntry,
};
use crate::tunnel::TunnelEndpoint;

impl ServiceRedirector {
    /// Whether a packet belongs to a connection that is kept, or begins one: to the router where that
    /// is.
    pub(super) fn held(
        &self,
        request: &RedirectionRequest,
        way: &mut FindWay<'_>,
    ) -> Option<Redirection> {
        let RedirectionRequest { router, row, key, call, .. } = request;
        let held = self.transparent.of(row.service)?;
        if let Some(holder) = held.holder(&ends(call)) {
            if holder == *router {
                return Some(Redirection::Keep);
            }
            let [start, end] = [*router, holder].map(TunnelEndpoint::Router);
            let tunnel = self.services.of(row).planned.tunnel(row.is_v6, start, end);
            return Some(Redirection::To(TunnelEntry { tunnel, hit: None }));
        }
        let is_plain = || {
            let pin = self.flows.known(&self.services, request.tick(), key);
            pin.is_some_and(|pin| self.flows.follow(&self.services, pin, request).is_some())
        };
        let begins = call.protocol == tcp::PROTOCOL
            && call.opens()
            && !is_plain()
            && self.services.order(*router, row, call, way).len() > 1;
        begins.then_some(Redirection::Keep)
    }

    /// Gives the protocol a packet that came to the holder of its connection.
    pub(crate) fn take_held(
        &mut self,
        now: Time,
        router: RouterId,
        from: FailOverSender,
        header: &vnet::VirtioNetHeader,
        frame: &mut [u8],
        way: &mut FindWay<'_>,
    ) -> FailOverDisposition {
        match from {
            FailOverSender::Replica(node) => {
                self.transparent.take_of_replica(&mut self.services, now, node, header, frame)
            }
            FailOverSender::Client => self.take_of_client(now, router, header, frame, way),
        }
    }

    fn take_of_client(
        &mut self,
        now: Time,
        router: RouterId,
        header: &vnet::VirtioNetHeader,
        frame: &mut [u8],
        way: &mut FindWay<'_>,
    ) -> FailOverDisposition {
        let Ok(packet) = ParsedPacket::parse(frame) else { return FailOverDisposition::Dropped };
        let call = self.datagrams.read(CoarseTime::of(now), &packet);
        let Some(call) = call else { return FailOverDisposition::Plain };
        let number = self.services.rows.find(call.address, call.port, call.protocol);
        let Some(number) = number else { return FailOverDisposition::Plain };
        let row = *self.services.rows.get(number);
        let mut order = Vec::new();
        if call.opens() {
            order = self.services.order(router, &row, &call, way);
            self.services.of_mut(&row).fit(row.is_v6, &order, header, frame, way);
        }
        let Some(held) = self.transparent.of_mut(row.service) else {
            return FailOverDisposition::Plain;
        };
        let taken = held.take_of_client(now, router, &call, header, frame, &order);
        self.transparent.note_news(&mut self.services, row.service);
        taken
    }

    /// The next packet that the protocol sends.
    pub(crate) fn poll_sent(&mut self) -> Option<FailOverPacket> {
        self.transparent.poll_sent(&self.services)
    }

    /// Counts a packet of the protocol for which there was no memory.
    pub(crate) fn count_unsent(&mut self, service: ServiceId) {
        self.transparent.count_unsent(service);
    }

    /// The next that happened to a connection.
    pub(crate) fn take_news(&mut self) -> Option<FailOverNews> {
        self.transparent.take_news()
    }

    /// When the protocol has something to do.
    pub(crate) fn next_of_held(&self) -> Option<Time> {
        self.transparent.next()
    }

    /// Does it.
    pub(crate) fn wake_held(&mut self, now: Time) {
        self.transparent.wake(&mut self.services, now);
    }
}
