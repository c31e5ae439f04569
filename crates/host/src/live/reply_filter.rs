//! Which replies are accepted from a node. An init is honest, but a process that got hold of its
//! channel need not be: a reply about another node's program, or to no request, is dropped before
//! anything is done with it.

use windtunnel_node::NodeInitReply;

use super::connections::EXEC_FIRST;
use super::measurements::Measurements;
use super::programs::key_of;
use super::services::PROBE_FIRST;
use crate::supervisor::Supervisor;

/// What was asked of nodes.
pub(super) struct AwaitedReplies<'a> {
    pub(super) supervisor: &'a Supervisor,
    pub(super) measurements: &'a Measurements,
    /// Whether a node does a probe or a check of that number.
    pub(super) probes: &'a dyn Fn(usize, u64) -> bool,
    /// Whether a node runs a client's command of that number.
    pub(super) runs_command: &'a dyn Fn(usize, u64) -> bool,
    /// Whether a node is to confirm a signal of that token.
    pub(super) signals: &'a dyn Fn(usize, u64) -> bool,
}

impl AwaitedReplies<'_> {
    /// Whether a reply of `node` is about something of its own that was asked.
    pub(super) fn allows(&self, node: usize, reply: &NodeInitReply) -> bool {
        match reply {
            NodeInitReply::Spawned { id, .. }
            | NodeInitReply::SpawnFailed { id, .. }
            | NodeInitReply::Exited { id, .. } => {
                if *id >= PROBE_FIRST {
                    (self.probes)(node, *id)
                } else if *id >= EXEC_FIRST {
                    (self.runs_command)(node, *id)
                } else {
                    self.supervisor.key_of(*id).is_some_and(|key| key.node == node)
                }
            }
            NodeInitReply::Listening { token } => {
                let key = key_of(*token);
                key.node == node && self.supervisor.program(key).is_some()
            }
            NodeInitReply::Probed { token, .. } => (self.probes)(node, *token),
            NodeInitReply::Signalled { token, .. } => (self.signals)(node, *token),
            NodeInitReply::EchoDone { .. } => self.measurements.expects(node, reply),
            // These name nothing but the node itself.
            NodeInitReply::SignalFailed { .. }
            | NodeInitReply::RoutesFailed { .. }
            | NodeInitReply::Interference(_)
            | NodeInitReply::ReceiveFailed { .. }
            | NodeInitReply::Limited(_) => true,
            // These belong to the set-up, which is over; others are of other versions.
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use windtunnel_model::{Span, Time};
    use windtunnel_node::ExitStatus;

    use super::*;
    use crate::live::context::RunContext;
    use crate::live::testing::{context, plan};
    use crate::supervisor::example;
    use windtunnel_verdict::evidence::ProgramExit;
    use windtunnel_verdict::evidence::ProgramKey;

    /// Node 0 measures a path, node 1 another.
    const PATHS: &str = "
nodes: {a: {}, b: {}, c: {}}
links: [{between: [a, b]}, {between: [b, c]}]
expect:
  - {path: [a, b], rtt: {max: 1s}}
  - {path: [b, c], rtt: {max: 1s}}
";

    fn measurements() -> (RunContext, Measurements) {
        let (context, _, _) = context(plan(PATHS), None);
        let mut measurements = Measurements::new(&context.plan);
        measurements.start_before_run(&context);
        (context, measurements)
    }

    /// Numbers that mean something, and any others.
    fn number() -> impl Strategy<Value = u64> {
        let packed = (0_u64..4, 0_u64..3).prop_map(|(node, program)| node << 32 | program);
        prop_oneof![0_u64..8, packed, (EXEC_FIRST - 1)..(EXEC_FIRST + 3), any::<u64>()]
    }

    fn status() -> impl Strategy<Value = ExitStatus> {
        prop_oneof![
            any::<i32>().prop_map(ExitStatus::Code),
            any::<i32>().prop_map(ExitStatus::Signal)
        ]
    }

    fn reply() -> impl Strategy<Value = NodeInitReply> {
        let text = || "[a-z]{0,8}";
        let echoes = prop::collection::vec((any::<u64>(), any::<Option<u64>>()), 0..4);
        prop_oneof![
            (number(), any::<u32>(), any::<u64>())
                .prop_map(|(id, pid, at_ns)| NodeInitReply::Spawned { id, pid, at_ns }),
            (number(), text(), any::<i32>()).prop_map(|(id, message, errno)| {
                NodeInitReply::SpawnFailed { id, message, errno, by_program: errno % 2 == 0 }
            }),
            (number(), status()).prop_map(|(id, status)| NodeInitReply::Exited { id, status }),
            number().prop_map(|token| NodeInitReply::Listening { token }),
            (number(), any::<u64>(), echoes).prop_map(|(token, began_ns, echoes)| {
                NodeInitReply::EchoDone { token, began_ns, echoes, error: None }
            }),
            text().prop_map(|message| NodeInitReply::RoutesFailed { message }),
            Just(NodeInitReply::Prepared),
        ]
    }

    /// What the run does with a reply that it believes.
    fn believe(supervisor: &mut Supervisor, measurements: &mut Measurements, reply: NodeInitReply) {
        match reply {
            NodeInitReply::Spawned { id, pid, .. } => {
                supervisor.on_spawned(id, i32::try_from(pid).unwrap_or(0), Span::ZERO);
            }
            NodeInitReply::SpawnFailed { id, message, .. } => {
                supervisor.on_spawn_failed(id, &message);
            }
            NodeInitReply::Exited { id, status } => {
                let code = u8::try_from(status.shell_code() & 0xff).unwrap_or(u8::MAX);
                supervisor.on_exited(id, ProgramExit { code, signal: None }, Span::ZERO);
            }
            NodeInitReply::Listening { token } => {
                supervisor.on_ready(key_of(token), Span::ZERO);
            }
            NodeInitReply::EchoDone { token, began_ns, echoes, error } => {
                measurements.finish(Time::ZERO, token, began_ns, &echoes, error);
            }
            _ => {}
        }
    }

    proptest! {
        /// Whatever node 1 forges, nothing panics and the programs of the others stay as they are.
        #[test]
        fn nothing_forged_panics_or_touches_another_node(forged in prop::collection::vec(reply(), 1..20)) {
            let mut supervisor = example(3);
            supervisor.tick(Span::ZERO);
            let (_context, mut measurements) = measurements();
            let state = |supervisor: &Supervisor, node| {
                format!("{:?}", supervisor.program(ProgramKey { node, program: 0 }))
            };
            let before = [0, 2].map(|node| state(&supervisor, node));
            for reply in forged {
                let asked = AwaitedReplies {
                    supervisor: &supervisor,
                    measurements: &measurements,
                    probes: &|_, _| false,
                    runs_command: &|node, id| (node, id) == (0, EXEC_FIRST),
                    signals: &|_, _| false,
                };
                if asked.allows(1, &reply) {
                    let of_client = matches!(
                        reply,
                        NodeInitReply::Spawned { id, .. } | NodeInitReply::Exited { id, .. } if id >= EXEC_FIRST
                    );
                    prop_assert!(!of_client, "{reply:?}");
                    believe(&mut supervisor, &mut measurements, reply);
                }
            }
            prop_assert_eq!(before, [0, 2].map(|node| state(&supervisor, node)));
        }
    }

    #[test]
    fn a_node_speaks_of_its_own_programs_and_of_what_it_was_asked() {
        let mut supervisor = example(2);
        supervisor.tick(Span::ZERO);
        let (_context, measurements) = measurements();
        let asked = AwaitedReplies {
            supervisor: &supervisor,
            measurements: &measurements,
            probes: &|node, token| (node, token) == (0, PROBE_FIRST),
            runs_command: &|node, id| (node, id) == (1, EXEC_FIRST),
            signals: &|node, token| (node, token) == (0, 4),
        };
        // Starts are numbered from 1, in the order of the nodes.
        let spawned = |id| NodeInitReply::Spawned { id, pid: 2, at_ns: 0 };
        assert!(asked.allows(1, &spawned(2)) && !asked.allows(1, &spawned(1)));
        assert!(asked.allows(1, &spawned(EXEC_FIRST)) && !asked.allows(0, &spawned(EXEC_FIRST)));
        assert!(asked.allows(0, &spawned(PROBE_FIRST)) && !asked.allows(1, &spawned(PROBE_FIRST)));
        let probed = |token| NodeInitReply::Probed { token, failure: None };
        assert!(
            asked.allows(0, &probed(PROBE_FIRST)) && !asked.allows(0, &probed(PROBE_FIRST + 1))
        );
        let signalled = |token| NodeInitReply::Signalled { token, at_ns: 0 };
        assert!(asked.allows(0, &signalled(4)) && !asked.allows(1, &signalled(4)));
        assert!(!asked.allows(0, &signalled(5)));
        let listening = |node: u64| NodeInitReply::Listening { token: node << 32 };
        assert!(asked.allows(1, &listening(1)) && !asked.allows(1, &listening(0)));
        let echo =
            |token| NodeInitReply::EchoDone { token, began_ns: 0, echoes: Vec::new(), error: None };
        assert!(
            asked.allows(1, &echo(1)) && !asked.allows(0, &echo(1)) && !asked.allows(1, &echo(7))
        );
    }
}
