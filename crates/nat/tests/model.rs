//! A NAT against a simple model of one, which looks at a list of what has passed.

use std::net::Ipv4Addr;

use proptest::prelude::*;
use windtunnel_model::plan::{
    IpTransport, NatBehaviour as Settings, NatFilteringBehaviour, NatMappingBehaviour,
    NatRefreshBehaviour, PortRange,
};
use windtunnel_model::random::RandomStream;
use windtunnel_model::{Span, Time};
use windtunnel_nat::{FlowEndpoints, Ipv4Endpoint, NetworkAddressTranslator, TranslationRefusal};

const EXTERNAL: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
const LIVES: Span = Span::from_secs(30);

/// A pair of endpoints between which something has passed.
#[derive(Debug, Clone, Copy)]
struct Passed {
    internal: Ipv4Endpoint,
    remote: Ipv4Endpoint,
    external: u16,
    until: Time,
}

/// What has passed, and nothing else.
struct Model {
    symmetric: bool,
    filtering: NatFilteringBehaviour,
    passed: Vec<Passed>,
}

impl Model {
    fn forget(&mut self, now: Time) {
        self.passed.retain(|it| it.until > now);
    }

    /// The external port of what leaves, if it has one already.
    fn port_of(&self, internal: Ipv4Endpoint, remote: Ipv4Endpoint) -> Option<u16> {
        let mut same = self.passed.iter().filter(|it| it.internal == internal);
        let own = same.clone().find(|it| it.remote == remote).map(|it| it.external);
        own.or_else(|| if self.symmetric { None } else { same.next().map(|it| it.external) })
    }

    fn is_used(&self, external: u16) -> bool {
        self.passed.iter().any(|it| it.external == external)
    }

    /// What becomes of what comes.
    fn inbound(
        &self,
        external: u16,
        remote: Ipv4Endpoint,
    ) -> Result<Ipv4Endpoint, TranslationRefusal> {
        let mut here = self.passed.iter().filter(|it| it.external == external);
        let internal = here.clone().next().ok_or(TranslationRefusal::NoMapping)?.internal;
        let passes = match self.filtering {
            NatFilteringBehaviour::EndpointIndependent => true,
            NatFilteringBehaviour::AddressDependent => {
                here.any(|it| it.remote.address == remote.address)
            }
            NatFilteringBehaviour::AddressAndPortDependent => here.any(|it| it.remote == remote),
        };
        if passes { Ok(internal) } else { Err(TranslationRefusal::Filtered) }
    }

    fn note(&mut self, now: Time, internal: Ipv4Endpoint, remote: Ipv4Endpoint, external: u16) {
        self.passed.retain(|it| (it.internal, it.remote) != (internal, remote));
        self.passed.push(Passed { internal, remote, external, until: now + LIVES });
    }
}

/// A packet out of the nodes or into the ports, and how long after the last.
#[derive(Debug, Clone)]
enum Step {
    Out { node: u8, port: u16, to: u8, there: u16 },
    In { external: usize, from: u8, there: u16 },
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1..4u8, 0..3u16, 1..4u8, 0..3u16)
            .prop_map(|(node, port, to, there)| Step::Out { node, port, to, there }),
        4 => (0..12usize, 1..4u8, 0..3u16)
            .prop_map(|(external, from, there)| Step::In { external, from, there }),
        1 => (0..40_000u64).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 1..200)
}

fn endpoint(network: [u8; 3], host: u8, port: u16) -> Ipv4Endpoint {
    let [a, b, c] = network;
    Ipv4Endpoint { address: Ipv4Addr::new(a, b, c, host), port: 5000 + port }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn a_nat_does_what_a_list_of_what_has_passed_says(
        steps in steps(),
        (symmetric, filtering) in prop_oneof![
            Just((false, NatFilteringBehaviour::EndpointIndependent)),
            Just((false, NatFilteringBehaviour::AddressDependent)),
            Just((false, NatFilteringBehaviour::AddressAndPortDependent)),
            Just((true, NatFilteringBehaviour::AddressAndPortDependent)),
        ],
        narrow in any::<bool>(),
    ) {
        let mapping =
            if symmetric { NatMappingBehaviour::AddressAndPortDependent } else { NatMappingBehaviour::EndpointIndependent };
        let mut settings = Settings::new(mapping, filtering);
        settings.timeouts.udp = LIVES;
        settings.refresh = NatRefreshBehaviour::Both;
        let range = PortRange { first: 5000, last: if narrow { 5004 } else { 6000 } };
        settings.ports = Some(range);
        let mut nat = NetworkAddressTranslator::new(&settings, &[EXTERNAL], RandomStream::named(1, &["nat"]));
        let mut model = Model { symmetric, filtering, passed: Vec::new() };
        let mut given: Vec<u16> = vec![5000];
        let mut now = Time::ZERO;
        for step in steps {
            model.forget(now);
            match step {
                Step::Wait(ms) => now += Span::from_millis(ms),
                Step::Out { node, port, to, there } => {
                    let internal = endpoint([192, 168, 0], node, port);
                    let remote = endpoint([203, 0, 113], to, there);
                    let transport = IpTransport::Udp;
                    let flow = FlowEndpoints { transport, local: internal, remote };
                    let got = nat.outbound(now, &flow, EXTERNAL, 0).map(|it| it.endpoint.port);
                    match (model.port_of(internal, remote), got) {
                        (Some(known), got) => prop_assert_eq!(got, Ok(known)),
                        (None, Ok(new)) => prop_assert!(!model.is_used(new) && range.contains(new)),
                        (None, Err(refusal)) => {
                            prop_assert_eq!(refusal, TranslationRefusal::Exhausted);
                            prop_assert!((range.first..=range.last).all(|it| model.is_used(it)));
                        }
                    }
                    if let Ok(port) = got {
                        given.push(port);
                        model.note(now, internal, remote, port);
                    }
                }
                Step::In { external, from, there } => {
                    let port = given[given.len().saturating_sub(external + 1)];
                    let remote = endpoint([203, 0, 113], from, there);
                    let local = Ipv4Endpoint { address: EXTERNAL, port };
                    let flow = FlowEndpoints { transport: IpTransport::Udp, local, remote };
                    let expected = model.inbound(port, remote);
                    // Two mappings of one endpoint must not have a session with one remote each.
                    let clash = expected.is_ok_and(|internal| {
                        let other = model.passed.iter().find(|it| (it.internal, it.remote) == (internal, remote));
                        other.is_some_and(|it| it.external != port)
                    });
                    let got = nat.inbound(now, &flow, 0).map(|it| it.endpoint);
                    if clash {
                        prop_assert_eq!(got, Err(TranslationRefusal::Exhausted));
                        continue;
                    }
                    prop_assert_eq!(got, expected);
                    if let Ok(internal) = got {
                        model.note(now, internal, remote, port);
                    }
                }
            }
        }
        model.forget(now);
        nat.expire(now);
        prop_assert_eq!(nat.sessions_held(), model.passed.len());
        let mut ports: Vec<u16> = model.passed.iter().map(|it| it.external).collect();
        ports.sort_unstable();
        ports.dedup();
        let shown: Vec<u16> = nat.mappings(usize::MAX).iter().map(|it| it.external.port).collect();
        prop_assert_eq!(shown, ports);
    }
}

#[test]
fn the_same_seed_gives_the_same_ports_and_another_seed_others() {
    let ports = |seed| {
        let settings = Settings::new(
            NatMappingBehaviour::AddressAndPortDependent,
            NatFilteringBehaviour::AddressDependent,
        );
        let mut nat = NetworkAddressTranslator::new(
            &settings,
            &[EXTERNAL],
            RandomStream::named(seed, &["nat", "home"]),
        );
        let port = |to| {
            let (local, remote) = (endpoint([10, 0, 0], 1, 0), endpoint([10, 0, 1], to, 0));
            let flow = FlowEndpoints { transport: IpTransport::Udp, local, remote };
            nat.outbound(Time::ZERO, &flow, EXTERNAL, 0).unwrap().endpoint.port
        };
        (1..50).map(port).collect::<Vec<u16>>()
    };
    assert_eq!(ports(1), ports(1));
    assert_ne!(ports(1), ports(2));
}

#[test]
fn a_hundred_thousand_sessions_come_and_go() {
    let settings = Settings::new(
        NatMappingBehaviour::EndpointIndependent,
        NatFilteringBehaviour::AddressAndPortDependent,
    );
    let mut nat =
        NetworkAddressTranslator::new(&settings, &[EXTERNAL], RandomStream::named(1, &["nat"]));
    let flow = |number: u32| FlowEndpoints {
        transport: IpTransport::Udp,
        local: Ipv4Endpoint { address: [10, 0, 0, 1].into(), port: 5000 },
        remote: Ipv4Endpoint { address: Ipv4Addr::from_bits(0x0b00_0000 + number), port: 53 },
    };
    for number in 0..100_000 {
        let at = Time::from_nanos(u64::from(number) * 1_000_000);
        nat.outbound(at, &flow(number), EXTERNAL, 0).unwrap();
    }
    // One mapping; each session lives for 5 minutes, and these took 100 s.
    assert_eq!((nat.mappings_held(), nat.sessions_held()), (1, 100_000));
    nat.expire(Time::from_nanos(350_000_000_000));
    assert_eq!((nat.mappings_held(), nat.sessions_held()), (1, 49_999));
    nat.expire(Time::from_nanos(400_000_000_000));
    assert_eq!((nat.mappings_held(), nat.sessions_held(), nat.next()), (0, 0, None));
    let ended = nat.poll_ended().unwrap();
    assert_eq!(ended.mapping.made, Time::ZERO);
    assert_eq!(ended.ended, Time::from_nanos(99_999_000_000) + Span::from_secs(300));
}
