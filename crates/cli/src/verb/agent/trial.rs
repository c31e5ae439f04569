//! The run that an agent tries at its start, to find out whether its machine can have nodes.

use std::path::PathBuf;

use windtunnel_cluster::protocol::AllocatedResources;
use windtunnel_cluster::protocol::run::{RunMember, RunSetup};
use windtunnel_host::RunOptions;
use windtunnel_scenario::{ScenarioOverrides, ScenarioSource};

/// Two nodes and a link between them: namespaces, devices, addresses and packets of both families.
pub(super) fn run() -> RunSetup {
    let source = ScenarioSource { name: "trial", text: FILE, default_name: "trial", base_dir: "/" };
    let instead = ScenarioOverrides { several_machines: true, ..ScenarioOverrides::default() };
    let plan = windtunnel_scenario::load_instead(&source, &|_| Err(String::new()), instead)
        .expect("the file has no mistake")
        .plan;
    let root = PathBuf::from("/");
    let member = RunMember {
        agent: "0".to_owned(),
        host: "trial".to_owned(),
        address: ([127, 0, 0, 1], 0).into(),
        has: AllocatedResources::default(),
    };
    RunSetup {
        run: 0,
        placement: vec![0; plan.nodes.len()],
        plan,
        plan_hash: "0".repeat(64),
        members: vec![member],
        key: None,
        base_dir: root.clone(),
        shared: RunOptions::new(root.clone(), root).shared(),
        by: String::new(),
    }
}

const FILE: &[u8] = b"nodes: {a: {}, b: {}}\nlinks: [{between: [a, b], latency: 1ms}]\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_that_is_tried_has_two_nodes_on_one_machine() {
        let run = run();
        assert_eq!((run.plan.nodes.len(), run.members.len(), run.placement), (2, 1, vec![0, 0]));
    }
}
