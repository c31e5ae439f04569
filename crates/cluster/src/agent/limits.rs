//! What the owner of a machine lets runs do on it.

use std::collections::BTreeSet;

use windtunnel_model::plan::{HealthProbe, Program};
use windtunnel_model::{NodeId, Resource, ResourceAmounts};

use super::lapses::LimitLapseLog;
use crate::protocol::run::RunSetup;

/// What all runs together may use of a machine. A run may use less, never more.
#[derive(Debug, Clone, Default)]
pub struct AgentResourceLimits {
    /// Nodes.
    pub nodes: Option<usize>,
    /// Processor time and memory that nodes ask for.
    pub resources: ResourceAmounts,
    /// Names of programs that are not run; `*` stands for any text.
    pub deny_exec: BTreeSet<String>,
    /// Where it is said that these did not hold.
    pub lapses: LimitLapseLog,
}

impl AgentResourceLimits {
    /// Whether a part may begin beside those that run.
    ///
    /// # Errors
    /// What is too much, with numbers.
    pub(crate) fn check<'a>(
        &self,
        setup: &RunSetup,
        member: u16,
        running: impl Iterator<Item = (&'a RunSetup, u16)>,
    ) -> Result<(), String> {
        let wanted = demand(setup, member);
        let all = running.fold(wanted, |all, (other, member)| all.plus(demand(other, member)));
        let of = |resource: Resource| {
            let amount = |demand: &MemberDemand| demand.resources.amount(resource);
            (self.resources.of(resource), amount(&wanted), amount(&all))
        };
        let nodes = (self.nodes.map(|nodes| nodes as u64), wanted.nodes, all.nodes);
        let limits = [
            ("nodes", nodes),
            ("thousandths of a processor", of(Resource::Cpu)),
            ("bytes of memory", of(Resource::Memory)),
        ];
        for (what, (limit, wanted, all)) in limits {
            if let Some(limit) = limit.filter(|limit| all > *limit) {
                return Err(format!(
                    "{what}: {wanted} asked for, {} in use, and the machine's owner allows {limit}",
                    all.saturating_sub(wanted)
                ));
            }
        }
        self.check_programs(setup, member)
    }

    /// What nodes run, and what is run in them to see whether their programs are ready or well.
    fn check_programs(&self, setup: &RunSetup, member: u16) -> Result<(), String> {
        for (replica, node) in nodes_of(setup, member) {
            let own = node.programs.iter().flat_map(Program::names);
            let probes = setup.plan.services.iter().filter_map(|service| {
                service.replica(replica)?;
                match &service.health.as_ref()?.probe {
                    HealthProbe::Command(words) => words.first().map(String::as_str),
                    _ => None,
                }
            });
            for word in own.chain(probes) {
                if let Some(pattern) = self.denied(word) {
                    return Err(format!(
                        "node {} runs {word}, which the machine's owner does not allow ({pattern})",
                        node.name
                    ));
                }
            }
        }
        Ok(())
    }

    /// The pattern that a program's name matches: the whole of it, or what is behind the last
    /// slash.
    pub(crate) fn denied(&self, word: &str) -> Option<&str> {
        let name = word.rsplit('/').next().unwrap_or(word);
        let matches = |pattern: &&String| fits(pattern, word) || fits(pattern, name);
        self.deny_exec.iter().find(matches).map(String::as_str)
    }
}

fn nodes_of(
    setup: &RunSetup,
    member: u16,
) -> impl Iterator<Item = (NodeId, &windtunnel_model::plan::Node)> {
    let all = setup.plan.nodes.iter().zip(&setup.placement).enumerate();
    let own = all.filter(move |(_, (_, place))| **place == member);
    own.map(|(index, (node, _))| (NodeId::from_index(index), node))
}

/// What nodes of a member ask for.
#[derive(Clone, Copy, Default)]
struct MemberDemand {
    nodes: u64,
    resources: ResourceAmounts,
}

impl MemberDemand {
    fn plus(self, other: MemberDemand) -> MemberDemand {
        let nodes = self.nodes.saturating_add(other.nodes);
        MemberDemand { nodes, resources: self.resources.plus(other.resources) }
    }
}

fn demand(setup: &RunSetup, member: u16) -> MemberDemand {
    let of_node = |node: &windtunnel_model::plan::Node| {
        let cpu_millis = node.demand.most_cpu_millis().map(u64::from);
        MemberDemand { nodes: 1, resources: ResourceAmounts { cpu_millis, ..node.demand.limits() } }
    };
    let nodes = nodes_of(setup, member).map(|(_, node)| of_node(node));
    nodes.fold(MemberDemand::default(), MemberDemand::plus)
}

/// Whether a text is what a pattern with `*` says.
fn fits(pattern: &str, text: &str) -> bool {
    let Some((before, behind)) = pattern.split_once('*') else { return pattern == text };
    let Some(rest) = text.strip_prefix(before) else { return false };
    (0..=rest.len()).filter_map(|at| rest.get(at..)).any(|rest| fits(behind, rest))
}

#[cfg(test)]
mod tests {
    use windtunnel_model::Bytes;
    use windtunnel_model::plan::{
        ReadinessCheckSettings, ReadinessCondition, ReplicaHealthCheck, Service,
    };

    use super::*;

    #[test]
    fn a_star_stands_for_any_text_and_the_folder_of_a_program_does_not_matter() {
        let limits = AgentResourceLimits {
            deny_exec: ["nc*".to_owned(), "/opt/*/x".to_owned()].into(),
            ..AgentResourceLimits::default()
        };
        for denied in ["nc", "ncat", "/usr/bin/nc", "/opt/a/b/x"] {
            assert!(limits.denied(denied).is_some(), "{denied}");
        }
        for fine in ["rsync", "/opt/x", "sync/nac"] {
            assert_eq!(limits.denied(fine), None, "{fine}");
        }
    }

    #[test]
    fn what_says_whether_a_program_is_ready_or_well_may_be_denied_too() {
        let limits = AgentResourceLimits {
            deny_exec: ["nc*".to_owned()].into(),
            ..AgentResourceLimits::default()
        };
        let mut run = run(&[(0, None, None), (1, None, None)]);
        let argv = vec!["/bin/nc".to_owned(), "-z".to_owned()];
        let check =
            ReadinessCheckSettings { argv: argv.clone(), ..ReadinessCheckSettings::default() }
                .of_file();
        let program = serde_json::json!({
            "argv": ["serve"], "daemon": true, "ready": ReadinessCondition::Command(check), "after": [],
            "start": windtunnel_model::Span::from_secs(0), "cwd": null, "env": {}, "restart": "never",
        });
        run.plan.nodes[1].programs = vec![serde_json::from_value(program).unwrap()];
        let refused = |run: &RunSetup, member| limits.check(run, member, [].into_iter()).is_err();
        assert_eq!([0, 1].map(|member| refused(&run, member)), [false, true]);
        run.plan.nodes[1].programs.clear();
        assert!(!refused(&run, 1));
        let second = windtunnel_model::Span::from_secs(1);
        let probe = HealthProbe::Command(argv);
        let health = ReplicaHealthCheck { probe, every: second, timeout: second, rise: 1, fall: 1 };
        let service = Service { health: Some(health), ..Service::new("www", [NodeId(1)]) };
        run.plan.services.push(service);
        assert_eq!([0, 1].map(|member| refused(&run, member)), [false, true]);
    }

    /// Demands of each node of a run, by its member, in processors' thousandths and bytes.
    fn run(nodes: &[(u16, Option<u32>, Option<u64>)]) -> RunSetup {
        let mut run: RunSetup =
            serde_json::from_value(crate::protocol::valid::tests::run()).unwrap();
        let node = run.plan.nodes[0].clone();
        run.plan.nodes = nodes.iter().map(|_| node.clone()).collect();
        run.placement = nodes.iter().map(|(member, ..)| *member).collect();
        for (node, (_, cpu_millis, memory)) in run.plan.nodes.iter_mut().zip(nodes) {
            node.demand.cpu_millis = *cpu_millis;
            node.demand.memory = memory.map(Bytes);
        }
        run
    }

    fn check(
        limits: &AgentResourceLimits,
        wanted: &RunSetup,
        running: &[(&RunSetup, u16)],
    ) -> String {
        limits.check(wanted, 0, running.iter().copied()).err().unwrap_or_default()
    }

    #[test]
    fn only_the_nodes_of_the_own_member_count_and_up_to_the_limit() {
        let two_here = run(&[(0, None, None), (1, None, None), (0, None, None)]);
        let most =
            |nodes| AgentResourceLimits { nodes: Some(nodes), ..AgentResourceLimits::default() };
        assert_eq!(check(&most(2), &two_here, &[]), "");
        assert_eq!(
            check(&most(1), &two_here, &[]),
            "nodes: 2 asked for, 0 in use, and the machine's owner allows 1"
        );
        // Of the other run this machine has member 1, with one node.
        assert_eq!(check(&most(3), &two_here, &[(&two_here, 1)]), "");
        assert_eq!(
            check(&most(3), &two_here, &[(&two_here, 0)]),
            "nodes: 2 asked for, 2 in use, and the machine's owner allows 3"
        );
    }

    #[test]
    fn processors_and_memory_of_all_runs_together_are_bounded_and_sums_do_not_overflow() {
        let one = run(&[(0, Some(600), Some(1000)), (0, None, None)]);
        let limits = AgentResourceLimits {
            resources: ResourceAmounts {
                cpu_millis: Some(1500),
                memory: Some(2000),
                ..ResourceAmounts::default()
            },
            ..AgentResourceLimits::default()
        };
        assert_eq!(check(&limits, &one, &[(&one, 0)]), "");
        assert_eq!(
            check(&limits, &one, &[(&one, 0), (&one, 0)]),
            "thousandths of a processor: 600 asked for, 1200 in use, and the machine's owner allows 1500"
        );
        let more = run(&[(0, None, Some(1001))]);
        assert_eq!(
            check(&limits, &more, &[(&one, 0)]),
            "bytes of memory: 1001 asked for, 1000 in use, and the machine's owner allows 2000"
        );
        let huge = run(&[(0, Some(u32::MAX), Some(u64::MAX)), (0, Some(u32::MAX), Some(u64::MAX))]);
        assert!(check(&limits, &huge, &[(&huge, 0)]).starts_with("thousandths of a processor: "));
        let memory = AgentResourceLimits {
            resources: ResourceAmounts::only(Resource::Memory, u64::MAX),
            ..AgentResourceLimits::default()
        };
        assert_eq!(check(&memory, &huge, &[(&huge, 0)]), "");
    }

    #[test]
    fn a_pattern_fits_with_several_stars_and_at_character_boundaries_only() {
        for (pattern, text) in [
            ("*", ""),
            ("a*b*c", "abc"),
            ("a*b*c", "a--b--bc"),
            ("*é", "éé"),
            ("**", "x"),
            ("", ""),
        ] {
            assert!(fits(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in
            [("a*b*c", "acb"), ("*b", "abc"), ("a", "ab"), ("", "x"), ("b*", "ab")]
        {
            assert!(!fits(pattern, text), "{pattern} {text}");
        }
    }
}
