//! A firewall: rules, and flows that have passed.

use core::net::IpAddr;

use windtunnel_model::Time;
use windtunnel_model::plan::{
    Firewall as Settings, FirewallPolicy, FirewallRule, IpTransport, MiddleboxSide, TrafficSelector,
};
use windtunnel_model::random::RandomStream;

use crate::expiry::{Deadline, ExpiryQueue};
use crate::hash::HashKey;
use crate::nat::TranslationRefusal;
use crate::table::{HashIndex, Slab};
use crate::tcp::{TcpTrackingState, TrackedFlowDirection};

/// The state of a firewall.
#[derive(Debug)]
pub struct StatefulFirewall {
    settings: Settings,
    flows: Slab<TrackedFlow>,
    index: HashIndex,
    hash: HashKey,
    expiry: ExpiryQueue,
}

/// What a firewall knows of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirewallPacket {
    /// The side from which it comes, and that to which it goes.
    pub sides: [MiddleboxSide; 2],
    /// Its ends.
    pub ends: PacketFiveTuple,
    /// Flags of TCP; 0 for others.
    pub flags: u8,
    /// Of an ICMP error: the ends of the packet that it is about.
    pub about: Option<PacketFiveTuple>,
}

/// The ends of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketFiveTuple {
    /// Protocol number; ICMP and `ICMPv6` have their own.
    pub protocol: u8,
    /// Where it comes from.
    pub source: IpAddr,
    /// Where it goes.
    pub destination: IpAddr,
    /// Source and destination port; of a query of ICMP, twice its identifier; 0 where there is none.
    pub ports: [u16; 2],
}

/// A flow that has passed.
#[derive(Debug)]
struct TrackedFlow {
    key: BidirectionalFlowKey,
    /// Whether the packet that began it goes from the first end of the key to the second.
    ordered: bool,
    transport: IpTransport,
    progress: TcpTrackingState,
    deadline: Deadline,
}

/// A flow in either direction: its ends in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BidirectionalFlowKey {
    ends: [(u128, u16); 2],
    protocol: u8,
}

impl StatefulFirewall {
    /// The most flows that are known.
    pub const FLOWS_MAX: usize = 1 << 20;

    /// One that knows no flow. `draws` decide where flows are stored, and nothing that shows.
    #[must_use]
    pub fn new(settings: &Settings, draws: RandomStream) -> StatefulFirewall {
        StatefulFirewall {
            settings: settings.clone(),
            flows: Slab::default(),
            index: HashIndex::default(),
            hash: HashKey::new(draws),
            expiry: ExpiryQueue::default(),
        }
    }

    /// What is done with a packet.
    ///
    /// # Errors
    /// [`TranslationRefusal::Exhausted`]: it may pass, but there is no room to know that.
    pub fn judge(
        &mut self,
        now: Time,
        packet: &FirewallPacket,
    ) -> Result<FirewallPolicy, TranslationRefusal> {
        self.expire(now);
        let FirewallPacket { ends, about, .. } = packet;
        if self.settings.stateful {
            if let Some(about) = about {
                let key = BidirectionalFlowKey::of(about).0;
                if self.find(&key).is_some() {
                    return Ok(FirewallPolicy::Allow);
                }
            } else {
                let (key, ordered) = BidirectionalFlowKey::of(ends);
                if let Some(number) = self.find(&key) {
                    self.touch(now, number, packet.flags, ordered);
                    return Ok(FirewallPolicy::Allow);
                }
            }
        }
        let policy = self.rule(packet);
        if policy == FirewallPolicy::Allow && self.settings.stateful && about.is_none() {
            self.begin(now, packet)?;
        }
        Ok(policy)
    }

    /// How many flows are known.
    #[must_use]
    pub fn flows_held(&self) -> usize {
        self.flows.len()
    }

    /// When [`expire`](StatefulFirewall::expire) has something to do.
    #[must_use]
    pub fn next(&self) -> Option<Time> {
        self.expiry.next()
    }

    /// Forgets flows whose time is over.
    #[inline]
    pub fn expire(&mut self, now: Time) {
        if self.expiry.next().is_some_and(|at| at <= now) {
            self.forget(now);
        }
    }

    fn forget(&mut self, now: Time) {
        while let Some(look) = self.expiry.look(now) {
            let Some(flow) = self.flows.get_mut(look.number) else { continue };
            if self.expiry.is_over(now, &look, &mut flow.deadline) {
                let key = flow.key;
                self.flows.remove(look.number);
                self.index.remove(key.hash(&self.hash), look.number);
            }
        }
    }

    /// What the rules say of a packet, or what holds where none does.
    fn rule(&self, packet: &FirewallPacket) -> FirewallPolicy {
        let rule = self.settings.rules.iter().find(|rule| fits(rule, packet));
        let by_sides = || match packet.sides {
            [MiddleboxSide::Outside, MiddleboxSide::Inside] => self.settings.inbound,
            [MiddleboxSide::Inside, MiddleboxSide::Outside] => self.settings.outbound,
            _ => FirewallPolicy::Allow,
        };
        rule.map_or_else(by_sides, |rule| rule.policy)
    }

    #[inline]
    fn find(&self, key: &BidirectionalFlowKey) -> Option<u32> {
        self.index.find(key.hash(&self.hash), |number| {
            self.flows.get(number).is_some_and(|flow| flow.key == *key)
        })
    }

    fn begin(&mut self, now: Time, packet: &FirewallPacket) -> Result<(), TranslationRefusal> {
        if self.flows.len() >= Self::FLOWS_MAX {
            return Err(TranslationRefusal::Exhausted);
        }
        let (key, ordered) = BidirectionalFlowKey::of(&packet.ends);
        // What has neither ports nor connections is like UDP.
        let transport = transport_of(packet.ends.protocol).unwrap_or(IpTransport::Udp);
        let number = self.flows.insert(TrackedFlow {
            key,
            ordered,
            transport,
            progress: TcpTrackingState::default(),
            deadline: Deadline::NEVER,
        });
        self.index.insert(key.hash(&self.hash), number);
        let timeout = TcpTrackingState::default().timeout(transport, &self.settings.timeouts);
        let deadline = self.expiry.begin(number, now + timeout);
        self.flows.get_mut(number).into_iter().for_each(|flow| flow.deadline = deadline);
        self.touch(now, number, packet.flags, ordered);
        Ok(())
    }

    fn touch(&mut self, now: Time, number: u32, flags: u8, ordered: bool) {
        let Some(flow) = self.flows.get_mut(number) else { return };
        if flow.transport == IpTransport::Tcp {
            flow.progress.note(
                flags,
                if ordered == flow.ordered {
                    TrackedFlowDirection::Forth
                } else {
                    TrackedFlowDirection::Back
                },
            );
        }
        let timeout = flow.progress.timeout(flow.transport, &self.settings.timeouts);
        self.expiry.set(number, &mut flow.deadline, now + timeout);
    }
}

fn fits(rule: &FirewallRule, packet: &FirewallPacket) -> bool {
    let FirewallPacket { sides, ends, .. } = packet;
    let is_of = |traffic: &TrafficSelector| {
        traffic.transport.is_none_or(|it| Some(it) == transport_of(ends.protocol))
            && traffic.ports.is_none_or(|ports| ports.contains(ends.ports[1]))
    };
    rule.from.fits(sides[0], ends.source)
        && rule.to.fits(sides[1], ends.destination)
        && rule.traffic.iter().any(is_of)
}

fn transport_of(protocol: u8) -> Option<IpTransport> {
    if protocol == ICMP_V6 { Some(IpTransport::Icmp) } else { IpTransport::of_number(protocol) }
}

impl BidirectionalFlowKey {
    /// That of a packet, and whether its ends are in order.
    fn of(ends: &PacketFiveTuple) -> (BidirectionalFlowKey, bool) {
        let end = |address: IpAddr, port| {
            let bits = match address {
                IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
                IpAddr::V6(v6) => v6.to_bits(),
            };
            (bits, port)
        };
        let from = end(ends.source, ends.ports[0]);
        let to = end(ends.destination, ends.ports[1]);
        let ordered = from <= to;
        let pair = if ordered { [from, to] } else { [to, from] };
        (BidirectionalFlowKey { ends: pair, protocol: ends.protocol }, ordered)
    }

    #[inline]
    fn hash(&self, hash: &HashKey) -> u64 {
        let [(a, first), (b, second)] = self.ends;
        let ports = u64::from(first) << 24 | u64::from(second) << 8 | u64::from(self.protocol);
        let [[a, c], [b, d]] = [halves(a), halves(b)];
        hash.of_five([a, c, b, d, ports])
    }
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "both halves are taken")]
fn halves(bits: u128) -> [u64; 2] {
    [(bits >> 64) as u64, bits as u64]
}

const ICMP_V6: u8 = 58;
