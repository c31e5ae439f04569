//! Services as clients of the control socket see them.

use windtunnel_control::{ReplicaStatusMessage, ServiceFlow, ServiceList, ServiceStatus, TableRow};
use windtunnel_engine::{PinnedFlow, ServiceRow};
use windtunnel_model::plan::Service;
use windtunnel_model::{NodeId, Plan, RouterId, ServiceId, Time};
use windtunnel_verdict::evidence::{ReplicaHistory, ServiceState};

use super::ServiceMonitor;
use crate::live::context::RunContext;
use crate::live::network::NetworkController;
use crate::live::refusal::{RequestRefusal, list};
use windtunnel_dataplane::{RedirectionsNow, ServiceRedirectionTotals};

/// Describes services: what is known of replicas, with what redirectors have done.
pub(in crate::live) struct ServiceInspector<'a> {
    pub(in crate::live) cx: &'a RunContext,
    pub(in crate::live) monitor: &'a ServiceMonitor,
    pub(in crate::live) network: &'a NetworkController,
}

impl ServiceInspector<'_> {
    /// All services, without what single flows do.
    pub(in crate::live) fn statuses(&self) -> Vec<ServiceStatus> {
        if self.cx.plan.services.is_empty() {
            return Vec::new();
        }
        self.described(&self.network.redirections(None))
    }

    /// All services, or all that is known of one.
    pub(in crate::live) fn list(&self, name: Option<&str>) -> Result<ServiceList, RequestRefusal> {
        let plan = &self.cx.plan;
        let one = name.map(|name| find_service(plan, name)).transpose()?;
        let seen = self.network.redirections(one);
        let mut services = self.described(&seen);
        if let Some(id) = one {
            services = services.into_iter().skip(id.index()).take(1).collect();
            for service in &mut services {
                let flow = |it: &PinnedFlow| self.flow(it);
                service.flows = seen.flows.iter().map(flow).collect();
                let table = seen.table.iter();
                let table = table.map(|(router, row, replica)| self.row(*router, row, *replica));
                service.table = table.collect();
                service.flows.sort_by(|a, b| (&a.client, &a.service).cmp(&(&b.client, &b.service)));
                let order =
                    |row: &TableRow| (row.router.clone(), row.address.clone(), row.port.clone());
                service.table.sort_by_cached_key(order);
                service.table_left_out = seen.table_left_out as u64;
            }
        }
        Ok(ServiceList {
            name: plan.name.clone(),
            elapsed_ns: self.cx.journal.elapsed().as_nanos(),
            pins: seen.all.pins.held,
            pins_max: seen.all.pins.capacity,
            services,
        })
    }

    fn described(&self, seen: &RedirectionsNow) -> Vec<ServiceStatus> {
        let none = ServiceRedirectionTotals::default();
        let services = self.cx.plan.services.iter().zip(&self.monitor.states);
        let described = services.enumerate().map(|(position, (service, state))| {
            let redirected = seen.all.services.get(position).unwrap_or(&none);
            self.status_of(service, state, redirected)
        });
        described.collect()
    }

    fn status_of(
        &self,
        service: &Service,
        state: &ServiceState,
        redirected: &ServiceRedirectionTotals,
    ) -> ServiceStatus {
        let counters = &redirected.counters;
        let plan = &self.cx.plan;
        let replicas = state.replicas.iter();
        ServiceStatus {
            service: service.name.clone(),
            addresses: service.addresses().map(|it| it.to_string()).collect(),
            ports: service.ports.iter().map(ToString::to_string).collect(),
            origin: service.origin.map(|node| self.cx.nodes.name(node.index()).to_owned()),
            policy: service.policy.into(),
            fail_over: service.fail_over.into(),
            at: service.at.iter().map(|it| plan.routers[it.index()].name.clone()).collect(),
            replicas: replicas.map(|it| self.replica(it, redirected)).collect(),
            unserved_packets: counters.unserved,
            picked_up: counters.picked_up,
            moved_flows: counters.moved_flows,
            lost_packets: counters.lost,
            resets: counters.resets,
            clamped: counters.clamped,
            evicted: counters.evicted,
            expired: counters.expired,
            table: Vec::new(),
            table_left_out: 0,
            flows: Vec::new(),
        }
    }

    fn replica(
        &self,
        replica: &ReplicaHistory,
        redirected: &ServiceRedirectionTotals,
    ) -> ReplicaStatusMessage {
        let state = &replica.state;
        let counters = redirected.replica(state.node);
        let since = |at: Time| at.since(self.cx.journal.origin()).as_nanos();
        ReplicaStatusMessage {
            replica: self.cx.nodes.name(state.node.index()).to_owned(),
            state: state.availability().into(),
            ports: state.registered.iter().map(ToString::to_string).collect(),
            weight: state.weight,
            registered_ns: replica.registered_at.map(since),
            withdrawn_ns: replica.withdrawn_at.map(since),
            connections: counters.connections,
            flows: counters.flows,
            live_connections: counters.live_connections,
            live_flows: counters.live_flows,
            packets: counters.packets,
            bytes: counters.bytes,
        }
    }

    fn row(&self, router: RouterId, row: &ServiceRow, replica: Option<NodeId>) -> TableRow {
        TableRow {
            router: self.cx.plan.routers[router.index()].name.clone(),
            address: row.address.to_string(),
            port: row.port.to_string(),
            replica: replica.map(|node| self.cx.nodes.name(node.index()).to_owned()),
        }
    }

    fn flow(&self, flow: &PinnedFlow) -> ServiceFlow {
        ServiceFlow {
            client: flow.client.to_string(),
            service: flow.service.to_string(),
            replica: self.cx.nodes.name(flow.replica.index()).to_owned(),
            state: flow.state.into(),
            silent_ms: flow.silent_ms,
        }
    }
}

fn find_service(plan: &Plan, name: &str) -> Result<ServiceId, RequestRefusal> {
    plan.service_named(name).ok_or_else(|| {
        let message = format!("no service is called {name}");
        let names = plan.services.iter().map(|it| it.name.as_str());
        match plan.services.is_empty() {
            true => RequestRefusal::with_hint(message, "this run has no services"),
            false => RequestRefusal::with_hint(message, &list("the services are", names)),
        }
    })
}
