//! Routes that have changed: told, and brought to the kernels of nodes with several interfaces.

use std::sync::Arc;

use windtunnel_model::Time;
use windtunnel_model::plan::RouteChange;
use windtunnel_routing::Routes;
use windtunnel_trace::event::{What, WhyRerouted};

use super::Live;

impl Live {
    /// Follows the packet loop, which uses new routes since `at`.
    pub(super) fn follow_routes(&mut self, routes: Arc<Routes>, at: Time, by_itself: bool) {
        let intended = at.since(self.origin);
        if by_itself {
            self.tell(Some(intended), What::Rerouted { why: WhyRerouted::Lanes });
        }
        let places = routes.differences(&self.routes, &self.plan);
        let told = self.village.change_routes(&self.plan, &self.routes, &routes);
        self.routes = routes;
        self.announce_anew();
        let name = |index: usize| self.plan.nodes[index].name.clone();
        for (node, outcome) in &told {
            if let Err(error) = outcome {
                let name = name(node.index());
                self.warn(format!("new routes did not reach node {name}: {error}"));
            }
        }
        let nodes = told.iter().map(|(node, _)| name(node.index())).collect();
        self.tell(Some(intended), What::RoutesChanged { places, nodes });
    }

    pub(super) fn routes_failed(&self, node: usize, message: &str) {
        let name = &self.plan.nodes[node].name;
        self.warn(format!("node {name} could not change its routes: {message}"));
    }

    /// What a change of fixed routes is, as the log has it.
    pub(super) fn route_change(&self, change: &RouteChange) -> Vec<What> {
        let node = |id: &windtunnel_model::NodeId| self.plan.nodes[id.index()].name.clone();
        let free = change
            .release
            .iter()
            .map(|(from, to)| What::RouteFreed { from: node(from), to: node(to) });
        let fixed = change.fix.iter().map(|route| {
            let names = route.path.iter().map(|&vertex| self.plan.vertex_name(vertex).to_owned());
            What::RouteFixed { path: names.collect() }
        });
        free.chain(fixed).collect()
    }
}
