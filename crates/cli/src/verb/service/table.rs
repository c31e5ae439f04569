//! Services as tables.

use windtunnel_control::{ReplicaStatusMessage, ServiceList, ServiceStatus};
use windtunnel_model::Span;
use windtunnel_model::plan::LoadBalancingPolicy;

use crate::render::quantity;
use crate::render::table::{ColumnAlignment, TextTable};

/// Each service with a line for each of its replicas.
pub(crate) fn render(services: &[ServiceStatus]) -> String {
    let mut table = TextTable::new(&[
        ("service", ColumnAlignment::Left),
        ("address", ColumnAlignment::Left),
        ("ports", ColumnAlignment::Left),
        ("replica", ColumnAlignment::Left),
        ("state", ColumnAlignment::Left),
        ("live", ColumnAlignment::Right),
        ("given", ColumnAlignment::Right),
        ("packets", ColumnAlignment::Right),
    ]);
    for service in services {
        for (position, replica) in service.replicas.iter().enumerate() {
            let first = |text: String| if position == 0 { text } else { String::new() };
            let [live, given] = totals(replica);
            table.row([
                first(service.service.clone()),
                first(service.addresses.join(" ")),
                first(service.ports.join(" ")),
                replica.replica.clone(),
                state(replica, service),
                live.to_string(),
                given.to_string(),
                replica.packets.to_string(),
            ]);
        }
    }
    table.render("")
}

/// All that is known of the services.
pub(super) fn details(list: &ServiceList) -> String {
    let mut text = heading(&list.name, list.elapsed_ns);
    for service in &list.services {
        text += &about(service);
        text += &render(std::slice::from_ref(service));
        text += &counts(service);
        text += &rows(service);
        text += &flows(service);
    }
    let (pins, most) = (list.pins, list.pins_max);
    text += &format!("{pins} of {most} connections and flows are known, over all services\n");
    text
}

pub(super) fn heading(name: &str, elapsed_ns: u64) -> String {
    format!("{name}, {} after it began\n", quantity::span(Span::from_nanos(elapsed_ns)))
}

/// `policy nearest, fail-over new, origin web, redirected at paris tokyo`.
fn about(service: &ServiceStatus) -> String {
    let origin = service.origin.as_deref().unwrap_or("none");
    let at = service.at.join(" ");
    let (policy, fail_over) = (&service.policy, &service.fail_over);
    format!("policy {policy}, fail-over {fail_over}, origin {origin}, redirected at {at}\n")
}

/// What is not zero, a line.
fn counts(service: &ServiceStatus) -> String {
    let counts = [
        (service.unserved_packets, "packets that no replica got"),
        (service.picked_up, "connections that were seen first in their middle"),
        (service.moved_flows, "flows that another router gave another replica"),
        (service.lost_packets, "packets of connections whose replica is lost"),
        (service.resets, "resets for those"),
        (service.clamped, "SYN-ACKs with a smaller MSS"),
        (service.evicted, "flows forgotten because there were too many"),
        (service.expired, "flows forgotten after their time"),
    ];
    let lines = counts.iter().filter(|(count, _)| *count > 0);
    lines.map(|(count, what)| format!("{count} {what}\n")).collect()
}

fn rows(service: &ServiceStatus) -> String {
    if service.table.is_empty() {
        return String::new();
    }
    let mut table = TextTable::new(&[
        ("router", ColumnAlignment::Left),
        ("address", ColumnAlignment::Left),
        ("port", ColumnAlignment::Left),
        ("redirects to", ColumnAlignment::Left),
    ]);
    for row in &service.table {
        let to = row.replica.clone().unwrap_or_else(|| match &service.origin {
            Some(origin) => format!("{origin} (origin)"),
            None => "nowhere".to_owned(),
        });
        table.row([row.router.clone(), row.address.clone(), row.port.clone(), to]);
    }
    let more = match service.table_left_out {
        0 => String::new(),
        more => format!("… and {more} more\n"),
    };
    format!("\n{}{more}", table.render(""))
}

fn flows(service: &ServiceStatus) -> String {
    if service.flows.is_empty() {
        return String::new();
    }
    let mut table = TextTable::new(&[
        ("client", ColumnAlignment::Left),
        ("service", ColumnAlignment::Left),
        ("replica", ColumnAlignment::Left),
        ("state", ColumnAlignment::Left),
        ("silent for", ColumnAlignment::Right),
    ]);
    for flow in &service.flows {
        table.row([
            flow.client.clone(),
            flow.service.clone(),
            flow.replica.clone(),
            flow.state.to_string(),
            quantity::span(Span::from_millis(flow.silent_ms)),
        ]);
    }
    format!("\n{}", table.render(""))
}

/// Its state, and the ports where these are not all of the service's.
fn state(replica: &ReplicaStatusMessage, service: &ServiceStatus) -> String {
    let weight = match service.policy.known() {
        Some(LoadBalancingPolicy::Weighted) => format!(", weight {}", replica.weight),
        _ => String::new(),
    };
    match replica.ports.len() {
        0 => format!("{}{weight}", replica.state),
        count if count == service.ports.len() => format!("{}{weight}", replica.state),
        _ => format!("{} on {}{weight}", replica.state, replica.ports.join(" ")),
    }
}

/// Connections and flows that live, and all that were given.
fn totals(replica: &ReplicaStatusMessage) -> [u64; 2] {
    [replica.live_connections + replica.live_flows, replica.connections + replica.flows]
}

#[cfg(test)]
mod tests {
    use windtunnel_control::{ServiceFlow, TableRow};

    use super::*;

    fn www() -> ServiceStatus {
        let replica = |name: &str, state: &str, ports: &[&str]| ReplicaStatusMessage {
            replica: name.to_owned(),
            state: state.into(),
            ports: ports.iter().map(|port| (*port).to_owned()).collect(),
            weight: 3,
            connections: 5,
            live_connections: 2,
            packets: 90,
            ..ReplicaStatusMessage::default()
        };
        ServiceStatus {
            service: "www".to_owned(),
            addresses: vec!["10.1.0.80".to_owned()],
            ports: vec!["80/tcp".to_owned(), "443/tcp".to_owned()],
            policy: "nearest".into(),
            fail_over: "new".into(),
            at: vec!["paris".to_owned()],
            replicas: vec![
                replica("s1", "registered", &["80/tcp", "443/tcp"]),
                replica("s2", "draining", &["80/tcp"]),
                replica("s3", "waiting", &[]),
            ],
            ..ServiceStatus::default()
        }
    }

    #[test]
    fn a_service_is_named_once_and_a_replica_says_where_it_is_not_whole() {
        assert_eq!(
            render(&[www()]),
            "service  address    ports           replica  state               live  given  packets\n\
             www      10.1.0.80  80/tcp 443/tcp  s1       registered             2      5       90\n\
             \u{20}                                   s2       draining on 80/tcp     2      5       90\n\
             \u{20}                                   s3       waiting                2      5       90\n"
        );
        let weighted = ServiceStatus { policy: "weighted".into(), ..www() };
        assert!(render(&[weighted]).contains("draining on 80/tcp, weight 3"));
    }

    #[test]
    fn details_have_what_counts_and_where_routers_redirect() {
        let row = |replica: Option<&str>| TableRow {
            router: "paris".to_owned(),
            address: "10.1.0.80".to_owned(),
            port: "80/tcp".to_owned(),
            replica: replica.map(str::to_owned),
        };
        let flow = ServiceFlow {
            client: "10.0.0.1:4000".to_owned(),
            service: "10.1.0.80:80".to_owned(),
            replica: "s1".to_owned(),
            state: "open".into(),
            silent_ms: 12,
        };
        let service = ServiceStatus {
            lost_packets: 4,
            table: vec![row(Some("s1")), row(None)],
            flows: vec![flow],
            ..www()
        };
        let list = ServiceList {
            name: "cdn".to_owned(),
            elapsed_ns: 1_500_000_000,
            pins: 1,
            pins_max: 1 << 20,
            services: vec![service],
        };
        let text = details(&list);
        assert!(text.starts_with(
            "cdn, 1.5s after it began\n\
             policy nearest, fail-over new, origin none, redirected at paris\n"
        ));
        assert!(text.contains("\n4 packets of connections whose replica is lost\n\nrouter"));
        assert!(text.contains("paris   10.1.0.80  80/tcp  s1\n"), "{text}");
        assert!(text.contains("paris   10.1.0.80  80/tcp  nowhere\n"), "{text}");
        assert!(text.contains("10.0.0.1:4000  10.1.0.80:80  s1       open"), "{text}");
        assert!(
            text.ends_with("1 of 1048576 connections and flows are known, over all services\n")
        );
    }
}
