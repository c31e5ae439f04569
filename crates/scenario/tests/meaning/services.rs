//! Services: what a file says with few words.

use std::net::IpAddr;

use windtunnel_model::expect::{ExpectationClaim, ServiceFact, ValueBounds};
use windtunnel_model::plan::{
    EventAction, FailOver, FlowPinningScope, Hash, HealthProbe, HealthProbeDatagram,
    LoadBalancingPolicy, ReplicaHealthCheck, ReplicaLossResponse, Service, ServiceChange,
    ServiceUpdate, TransportProtocol, TunnelEncapsulation,
};
use windtunnel_model::{NodeId, Plan, RouterId, ServiceId, Span};

use super::plan;

const NETWORK: &str = "nodes: {c: {}, s: {count: 2}, web: {}}\nrouters: [paris, tokyo]\n\
    links: [{between: [c, paris]}, {between: [s, tokyo]}, {between: [web, paris]}, \
    {between: [paris, tokyo]}]\n";

fn with(services: &str) -> Plan {
    plan(&format!("{NETWORK}services: {services}"))
}

fn only(services: &str) -> Service {
    let mut plan = with(services);
    assert_eq!(plan.validate(), Ok(()));
    plan.services.remove(0)
}

fn addresses(service: &Service) -> Vec<String> {
    service.addresses().map(|address: IpAddr| address.to_string()).collect()
}

#[test]
fn a_service_has_an_address_behind_all_others_and_every_router_redirects() {
    let service = only("{www: {ports: 80/tcp, replicas: s}}");
    // Four nodes, then the routers' six interfaces.
    assert_eq!(addresses(&service), ["10.0.0.11", "fd00::b"]);
    let replicas: Vec<(NodeId, u32)> =
        service.replicas.iter().map(|it| (it.node, it.weight)).collect();
    assert_eq!(replicas, [(NodeId(1), 1), (NodeId(2), 1)]);
    assert_eq!(service.at, [RouterId(0), RouterId(1)]);
    assert_eq!((service.policy, service.fail_over), (LoadBalancingPolicy::Nearest, FailOver::New));
    assert_eq!(
        (service.on_loss, service.encapsulation),
        (ReplicaLossResponse::Silent, TunnelEncapsulation::Clamp)
    );
    assert_eq!((service.health, service.origin), (None, None));
    assert_eq!(service.tcp_idle, Span::from_secs(7440), "RFC 5382, REQ-5");
    assert_eq!(service.udp_idle, Span::from_secs(30));
}

#[test]
fn a_service_moves_no_address_of_a_node_or_router() {
    let mut plan = with("{www: {ports: 80/tcp, replicas: s}}");
    plan.services.clear();
    assert_eq!(plan, self::plan(NETWORK));
}

#[test]
fn an_address_that_is_given_to_a_service_is_not_given_to_a_node() {
    let plan = with("{www: {address: 10.0.0.2, ports: 80/tcp, replicas: s}}");
    let first = |id: usize| plan.nodes[id].interfaces[0].v4.unwrap().to_string();
    assert_eq!([first(0), first(1), first(2)], ["10.0.0.1", "10.0.0.3", "10.0.0.4"]);
    assert_eq!(addresses(&plan.services[0]), ["10.0.0.2"], "of one family");
}

#[test]
fn a_service_with_an_origin_has_the_addresses_of_that_unless_it_has_its_own() {
    let service = only("{www: {ports: 80/tcp, origin: web, replicas: s}}");
    assert_eq!(addresses(&service), ["10.0.0.4", "fd00::4"]);
    assert_eq!(service.origin, Some(NodeId(3)));
    let own = only("{www: {address: 10.1.0.80, ports: 80/tcp, origin: web, replicas: s}}");
    assert_eq!((addresses(&own), own.origin), (vec!["10.1.0.80".to_owned()], Some(NodeId(3))));
    let fragments =
        only("{www: {ports: 80/tcp, origin: web, replicas: s, encapsulation: fragment}}");
    assert_eq!(addresses(&fragments), ["10.0.0.4"], "IPv4 alone");
}

#[test]
fn services_share_an_address_by_their_ports() {
    let plan = with(
        "{www: {address: 10.1.0.80, ports: 80/tcp, replicas: s}, \
         dns: {address: 10.1.0.80, ports: [80/udp, 53/udp], replicas: s-1}}",
    );
    assert_eq!(plan.validate(), Ok(()));
    assert_eq!(plan.service_named("dns"), Some(ServiceId(1)));
    let port = plan.services[1].ports[1];
    assert_eq!(
        (port.port, port.transport, port.to_string().as_str()),
        (53, TransportProtocol::Udp, "53/udp")
    );
}

#[test]
fn everything_that_is_said_is_in_the_plan() {
    let service = only(
        "{www: {address: [\"fd01::80\", 10.1.0.80], ports: [80/tcp], replicas: [web, s-2], at: [tokyo], \
         policy: {weighted: {web: 3}}, health: {http: /up, every: 2s, timeout: 500ms}, \
         on-loss: reset, encapsulation: none, tcp-idle: 1h, udp-idle: 5s}}",
    );
    assert_eq!(addresses(&service), ["10.1.0.80", "fd01::80"]);
    let weights: Vec<(NodeId, u32)> =
        service.replicas.iter().map(|it| (it.node, it.weight)).collect();
    assert_eq!(weights, [(NodeId(3), 3), (NodeId(2), 1)]);
    assert_eq!((service.at, service.policy), (vec![RouterId(1)], LoadBalancingPolicy::Weighted));
    let health = ReplicaHealthCheck {
        probe: HealthProbe::Http("/up".to_owned()),
        every: Span::from_secs(2),
        timeout: Span::from_millis(500),
        rise: 1,
        fall: 1,
    };
    assert_eq!(service.health, Some(health));
    assert_eq!(
        (service.on_loss, service.encapsulation),
        (ReplicaLossResponse::Reset, TunnelEncapsulation::None)
    );
    assert_eq!((service.tcp_idle, service.udp_idle), (Span::from_secs(3600), Span::from_secs(5)));
}

#[test]
fn a_probe_has_a_period_and_a_time_in_which_it_must_end() {
    let health = |text: &str| {
        let services = format!("{{www: {{ports: 80/tcp, replicas: s, health: {text}}}}}");
        only(&services).health.unwrap()
    };
    let second = Span::from_secs(1);
    let tcp = ReplicaHealthCheck {
        probe: HealthProbe::Tcp,
        every: Span::from_millis(200),
        timeout: second,
        rise: 1,
        fall: 1,
    };
    assert_eq!(health("{tcp: 200ms}"), tcp);
    let words = ["curl", "-f", "localhost"].map(str::to_owned).to_vec();
    let command = ReplicaHealthCheck {
        probe: HealthProbe::Command(words),
        every: second,
        timeout: second,
        rise: 1,
        fall: 1,
    };
    assert_eq!(health("{command: curl -f localhost}"), command);
}

#[test]
fn events_change_what_replicas_get() {
    let plan = plan(&format!(
        "{NETWORK}services: {{www: {{ports: 80/tcp, replicas: s, policy: {{weighted: {{s: 2}}}}}}}}\n\
         events:\n  - {{at: 1s, service: www, drain: s-1, add: web}}\n  \
         - {{at: 2s, service: www, undrain: s-1, remove: web, weight: {{s: 5}}}}"
    ));
    assert_eq!(plan.validate(), Ok(()));
    let of = |updates: &[ServiceUpdate]| {
        let change =
            |update: &ServiceUpdate| ServiceChange { service: ServiceId(0), update: *update };
        EventAction::Service(updates.iter().map(change).collect())
    };
    let drain = |drain| ServiceUpdate::Drain { replica: NodeId(1), drain };
    let weight = |id| ServiceUpdate::Weight { replica: NodeId(id), weight: 5 };
    let first = [ServiceUpdate::Add { replica: NodeId(3) }, drain(true)];
    let second = [ServiceUpdate::Remove { replica: NodeId(3) }, drain(false), weight(1), weight(2)];
    let actions: Vec<&EventAction> = plan.events.iter().map(|event| &event.action).collect();
    assert_eq!(actions, [&of(&first), &of(&second)]);
}

#[test]
fn a_plan_with_services_survives_json() {
    let plan = with("{www: {ports: [80/tcp, 53/udp], replicas: s, health: {tcp: 1s}}}");
    let json = serde_json::to_string(&plan).unwrap();
    assert!(json.contains(r#""ports":["80/tcp","53/udp"]"#), "{json}");
    assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
}

#[test]
fn a_plan_from_elsewhere_whose_services_contradict_themselves_is_refused() {
    let good = with("{www: {ports: 80/tcp, replicas: s}, dns: {ports: 53/udp, replicas: s}}");
    let refused = |change: &dyn Fn(&mut Service)| {
        let mut plan = good.clone();
        change(&mut plan.services[0]);
        plan.validate().unwrap_err().to_string()
    };
    let node: IpAddr = good.nodes[0].interfaces[0].v4.unwrap().into();
    let IpAddr::V4(node) = node else { unreachable!() };
    assert_eq!(
        refused(&|it| it.v4 = Some(node)),
        "service `www`: its address is that of something else"
    );
    assert_eq!(
        refused(&|it| it.replicas[1] = it.replicas[0]),
        "service `www`: a node is a replica twice"
    );
    assert_eq!(
        refused(&|it| it.replicas[0].node = NodeId(99)),
        "service `www`: a replica has no address of its family"
    );
    assert_eq!(
        refused(&|it| it.at.reverse()),
        "service `www`: its routers are not there, or not in order"
    );
    assert_eq!(refused(&|it| it.name = "s-1".to_owned()), "`s-1` is there twice");
    assert_eq!(refused(&|it| it.ports.clear()), "service `www`: it has 0 ports");
    assert_eq!(
        refused(&|it| it.encapsulation = TunnelEncapsulation::Fragment),
        "service `www`: only IPv4 packets are fragmented by routers"
    );
    let mut plan = good.clone();
    plan.services[1] = Service { name: "dns".to_owned(), ..plan.services[0].clone() };
    assert_eq!(plan.validate().unwrap_err().to_string(), "service `dns` has what another one has");
}

#[test]
fn a_probe_of_datagrams_has_its_bytes_and_counts() {
    let health = "health: {udp: 'hex:00 0aff', expect: ok, every: 2s, rise: 2, fall: 3}";
    let service = only(&format!("{{www: {{ports: 53/udp, replicas: s, {health}}}}}"));
    let probe =
        HealthProbe::Udp(HealthProbeDatagram { send: vec![0, 10, 255], expect: b"ok".to_vec() });
    let (every, timeout) = (Span::from_secs(2), Span::from_secs(1));
    assert_eq!(
        service.health,
        Some(ReplicaHealthCheck { probe, every, timeout, rise: 2, fall: 3 })
    );
    let service = only("{www: {ports: 80/tcp, replicas: s, health: {tcp: 1s}, policy: random}}");
    let health = service.health.unwrap();
    assert_eq!((health.rise, health.fall, service.policy), (1, 1, LoadBalancingPolicy::Random));
}

#[test]
fn each_fact_of_a_service_is_an_expectation_of_its_own() {
    let plan = plan(&format!(
        "{NETWORK}services: {{www: {{ports: 80/tcp, replicas: s}}}}\n\
         expect: [{{service: www, lost: 0, share: {{s: {{min: 100%}}, s-2: {{max: 60%}}}}}}]\n"
    ));
    assert_eq!(plan.validate(), Ok(()));
    let service = ServiceId(0);
    let claims: Vec<&ExpectationClaim> =
        plan.expectations.iter().map(|asked| &asked.claim).collect();
    let exactly = ValueBounds { min: Some(0), max: Some(0) };
    let bounds = |min: Option<&str>, max: Option<&str>| ValueBounds {
        min: min.map(|text| text.parse().unwrap()),
        max: max.map(|text| text.parse().unwrap()),
    };
    let both = vec![NodeId(1), NodeId(2)];
    let wanted = [
        ServiceFact::Lost(exactly),
        ServiceFact::Share(both, bounds(Some("100%"), None)),
        ServiceFact::Share(vec![NodeId(2)], bounds(None, Some("60%"))),
    ];
    let wanted = wanted.map(|fact| ExpectationClaim::Service { service, fact });
    assert_eq!(claims, wanted.iter().collect::<Vec<_>>());
}

#[test]
fn directors_that_do_not_talk_to_each_other_are_two_keys_and_a_hash_is_a_policy() {
    let plain = only("{www: {ports: 80/tcp, replicas: s}}");
    assert_eq!((plain.hash, plain.pins), (Hash::Rendezvous, FlowPinningScope::Shared));
    let own = only("{www: {ports: 80/tcp, replicas: s, hash: maglev, pins: per-router}}");
    assert_eq!(
        (own.policy, own.hash, own.pins),
        (LoadBalancingPolicy::Hash, Hash::Maglev, FlowPinningScope::PerRouter)
    );
    let said = only("{www: {ports: 80/tcp, replicas: s, policy: hash, hash: rendezvous}}");
    assert_eq!((said.policy, said.hash), (LoadBalancingPolicy::Hash, Hash::Rendezvous));
    // What a plan does not use is not in it: its digest is as before.
    let json = serde_json::to_string(&plain).unwrap();
    assert!(!json.contains("pins") && !json.contains(r#""hash""#), "{json}");
}
