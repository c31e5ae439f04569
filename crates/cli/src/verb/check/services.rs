//! The services of a plan.

use serde::Serialize;
use windtunnel_model::plan::Service;
use windtunnel_model::{NodeId, Plan};

/// A service, as `check` shows it.
#[derive(Debug, Serialize)]
pub(super) struct ServicePlanSummary {
    service: String,
    addresses: Vec<String>,
    ports: Vec<String>,
    policy: &'static str,
    replicas: Vec<String>,
    /// Routers that redirect.
    at: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<String>,
}

/// All of a plan.
pub(super) fn planned(plan: &Plan) -> Vec<ServicePlanSummary> {
    let name = |node: NodeId| plan.nodes[node.index()].name.clone();
    let of = |service: &Service| ServicePlanSummary {
        service: service.name.clone(),
        addresses: service.addresses().map(|it| it.to_string()).collect(),
        ports: service.ports.iter().map(ToString::to_string).collect(),
        policy: service.policy.name(),
        replicas: service.replicas.iter().map(|it| name(it.node)).collect(),
        at: service.at.iter().map(|it| plan.routers[it.index()].name.clone()).collect(),
        origin: service.origin.map(name),
    };
    plan.services.iter().map(of).collect()
}

/// A line for each.
pub(super) fn text(services: &[ServicePlanSummary]) -> String {
    let line = |it: &ServicePlanSummary| {
        let origin = it.origin.as_ref().map(|origin| format!(", origin {origin}"));
        format!(
            "service {}: {} {}, {} of {}, redirected at {}{}\n",
            it.service,
            it.addresses.join(" "),
            it.ports.join(" "),
            it.policy,
            some(&it.replicas),
            some(&it.at),
            origin.unwrap_or_default()
        )
    };
    let mut text: String = services.iter().take(SERVICES_MAX).map(line).collect();
    if let Some(more) = services.len().checked_sub(SERVICES_MAX + 1) {
        text.push_str(&format!("… and {} more: --json has them\n", more + 1));
    }
    text
}

/// Their names, the first few.
fn some(names: &[String]) -> String {
    let shown = names.iter().take(NAMES_MAX).cloned().collect::<Vec<_>>().join(" ");
    match names.len().checked_sub(NAMES_MAX + 1) {
        None => shown,
        Some(more) => format!("{shown} and {} more", more + 1),
    }
}

const SERVICES_MAX: usize = 40;
const NAMES_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_has_a_line_that_names_some_of_its_nodes() {
        let names = |count: usize| (1..=count).map(|it| format!("s{it}")).collect();
        let www = ServicePlanSummary {
            service: "www".to_owned(),
            addresses: vec!["10.1.0.80".to_owned()],
            ports: vec!["80/tcp".to_owned()],
            policy: "nearest",
            replicas: names(10),
            at: names(8),
            origin: Some("web".to_owned()),
        };
        assert_eq!(
            text(&[www]),
            "service www: 10.1.0.80 80/tcp, nearest of s1 s2 s3 s4 s5 s6 s7 s8 and 2 more, \
             redirected at s1 s2 s3 s4 s5 s6 s7 s8, origin web\n"
        );
    }
}
