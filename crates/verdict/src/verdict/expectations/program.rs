//! Expectations of programs.

use windtunnel_model::expect::{ExitWanted, ProgramFact, ValueBounds};
use windtunnel_model::quantity::total;
use windtunnel_model::{NodeId, Span, Time};

use super::outcome::{ExpectationFinding, ExpectationOutcome, seconds};
use crate::evidence::{LogMatches, ProgramKey, ProgramLifecycle, RunEvidence, SupervisedProgram};
use crate::text::rounded;

pub(super) fn check(
    evidence: &RunEvidence<'_>,
    index: usize,
    nodes: &[NodeId],
    fact: &ProgramFact,
) -> ExpectationOutcome {
    let (figure, asked) = describe(fact);
    let name = |node: &NodeId| evidence.plan.nodes[node.index()].name.clone();
    let found: Vec<ExpectationFinding> =
        nodes.iter().map(|node| of_node(evidence, index, *node, fact)).collect();
    let met = found.iter().any(|node| node.met);
    match (nodes, found.first()) {
        ([node], Some(ExpectationFinding { seen, met, look })) => ExpectationOutcome {
            about: format!("node {} {figure}", name(node)),
            asked,
            seen: seen.clone(),
            met: *met,
            look: look.clone(),
        },
        _ => {
            let count = found.iter().filter(|node| node.met).count();
            let group = nodes.first().map(|node| evidence.plan.nodes[node.index()].group.clone());
            let shown = nodes.iter().zip(&found).take(MEMBERS_SHOWN);
            let shown: Vec<_> =
                shown.map(|(node, found)| format!("{}: {}", name(node), found.seen)).collect();
            ExpectationOutcome {
                about: format!("any node of {} {figure}", group.unwrap_or_default()),
                asked,
                seen: format!("true of {count} of {}; {}", nodes.len(), shown.join("; ")),
                met,
                look: found
                    .into_iter()
                    .find(|node| node.met == met)
                    .map_or_else(String::new, |node| node.look),
            }
        }
    }
}

fn describe(fact: &ProgramFact) -> (String, String) {
    match fact {
        ProgramFact::Exit(ExitWanted::Any) => ("exit".to_owned(), "any exit".to_owned()),
        ProgramFact::Exit(ExitWanted::Code(code)) => ("exit".to_owned(), code.to_string()),
        ProgramFact::Exit(ExitWanted::Signal(signal)) => {
            ("exit".to_owned(), format!("ended by signal {signal}"))
        }
        ProgramFact::Exited(bounds) => ("exited".to_owned(), bounds.to_string()),
        ProgramFact::Ready(bounds) => ("ready".to_owned(), bounds.to_string()),
        ProgramFact::Runtime(bounds) => ("runtime".to_owned(), bounds.to_string()),
        ProgramFact::Log { pattern, count, .. } => {
            (format!("log /{pattern}/"), format!("{count} lines"))
        }
    }
}

fn of_node(
    evidence: &RunEvidence<'_>,
    index: usize,
    node: NodeId,
    fact: &ProgramFact,
) -> ExpectationFinding {
    if let ProgramFact::Log { count, .. } = fact {
        return log(evidence, index, node, count);
    }
    let programs = evidence.programs.iter().filter(|(key, _)| key.node == node.index());
    let seen: Vec<(String, bool)> = programs
        .map(|(_, program)| match fact {
            ProgramFact::Exit(wanted) => exit(program, *wanted),
            ProgramFact::Exited(bounds) => exited(program, bounds),
            ProgramFact::Ready(bounds) => ready(program, bounds),
            ProgramFact::Runtime(bounds) => runtime(program, bounds, evidence.elapsed),
            ProgramFact::Log { .. } => (String::new(), false),
        })
        .collect();
    let met = seen.iter().all(|(_, met)| *met);
    let name = &evidence.plan.nodes[node.index()].name;
    let look = match fact {
        ProgramFact::Exit(_) => format!("nodes/{name}/stderr and stdout"),
        _ => format!("events.jsonl, lines with `\"node\":\"{name}\"`"),
    };
    let seen: Vec<String> = seen.into_iter().map(|(text, _)| text).collect();
    ExpectationFinding { seen: seen.join(", "), met, look }
}

fn exit(program: &SupervisedProgram, wanted: ExitWanted) -> (String, bool) {
    let (text, code) = ending(program);
    let signal = program.last_exit.and_then(|exit| exit.signal);
    let as_wanted = code.is_some()
        && match wanted {
            ExitWanted::Any => true,
            ExitWanted::Code(wanted) => code == Some(wanted),
            ExitWanted::Signal(wanted) => signal == Some(wanted),
        };
    // Churn has taken it away: that is not an exit of its own.
    let taken = program.absent && (program.ended_by_event || program.last_exit.is_none());
    (text, as_wanted || taken)
}

/// How a program's life ended, in words and as an exit code.
pub(in crate::verdict) fn ending(program: &SupervisedProgram) -> (String, Option<u8>) {
    let never_started = || match program.absent {
        true => ("it never joined".to_owned(), None),
        false => ("it never started".to_owned(), None),
    };
    match (&program.life, program.last_exit) {
        (ProgramLifecycle::Running { .. } | ProgramLifecycle::Starting, _) => {
            ("it still ran at the end".to_owned(), None)
        }
        (_, Some(exit)) if program.ended_by_run => {
            (format!("it still ran at the end, then {exit}"), None)
        }
        (ProgramLifecycle::Failed { message }, _) => (message.clone(), None),
        (ProgramLifecycle::Lost, _) => ("its machine was lost".to_owned(), None),
        (_, Some(exit)) if program.absent && program.ended_by_event => {
            (format!("it left: {exit}"), Some(exit.code))
        }
        (_, Some(exit)) => (exit.to_string(), Some(exit.code)),
        (_, None) => never_started(),
    }
}

fn exited(program: &SupervisedProgram, bounds: &ValueBounds<Span>) -> (String, bool) {
    match (ending(program), program.exited_at) {
        ((_, Some(_)), Some(at)) => (format!("at {}s", seconds(at)), bounds.allow(&at)),
        ((text, _), _) => (text, false),
    }
}

fn ready(program: &SupervisedProgram, bounds: &ValueBounds<Span>) -> (String, bool) {
    match program.ready_at {
        Some(at) => (format!("at {}s", seconds(at)), bounds.allow(&at)),
        None if program.starts == 0 => ("it never started".to_owned(), false),
        None => ("it never was ready".to_owned(), false),
    }
}

/// A program that still runs has run until the end of the run.
fn runtime(
    program: &SupervisedProgram,
    bounds: &ValueBounds<Span>,
    elapsed: Span,
) -> (String, bool) {
    let Some(start) = program.started_at else { return (ending(program).0, false) };
    let exited = program.exited_at.filter(|at| *at >= start && !program.ended_by_run);
    let runtime = exited.unwrap_or(elapsed).saturating_sub(start);
    let still = if exited.is_none() { ", to the end of the run" } else { "" };
    (format!("{}{still}", rounded(runtime)), bounds.allow(&runtime))
}

fn log(
    evidence: &RunEvidence<'_>,
    index: usize,
    node: NodeId,
    count: &ValueBounds<u64>,
) -> ExpectationFinding {
    let all = evidence.carried.logs.iter();
    let of_node: Vec<&LogMatches> =
        all.filter(|seen| seen.expectation == index && seen.key.node == node.index()).collect();
    let lines = total(of_node.iter().map(|seen| seen.lines));
    let name = &evidence.plan.nodes[node.index()].name;
    let file = |seen: &LogMatches| {
        let file = seen.file.file_name().unwrap_or_default().to_string_lossy();
        format!("nodes/{name}/{file}")
    };
    let firsts = of_node.iter().filter_map(|seen| Some((*seen, seen.first.as_ref()?)));
    let first = firsts.min_by_key(|(_, line)| line.at_ns);
    let (seen, look) = match first {
        Some((stream, line)) => {
            let at = Time::from_nanos(line.at_ns).since(evidence.origin);
            let seen = format!("{lines} lines, the first at {}s: {}", seconds(at), line.text);
            (seen, format!("{}:{}", file(stream), line.number))
        }
        None => {
            let mut files: Vec<String> = of_node.iter().map(|seen| file(seen)).collect();
            files.sort();
            files.dedup();
            let wrote = written(evidence, node);
            (format!("no such line in {wrote} bytes of output"), files.join(" and "))
        }
    };
    ExpectationFinding { seen, met: count.allow(&lines), look }
}

fn written(evidence: &RunEvidence<'_>, node: NodeId) -> u64 {
    let volumes = evidence.carried.volumes.iter();
    let own = volumes.filter(|(ProgramKey { node: owner, .. }, _)| *owner == node.index());
    total(own.map(|(_, volume)| volume.bytes))
}

const MEMBERS_SHOWN: usize = 5;

#[cfg(test)]
mod tests {
    use windtunnel_model::plan::{Program, Restart};

    use super::*;
    use crate::evidence::ProgramExit;

    fn program() -> SupervisedProgram {
        let spec = Program {
            argv: vec!["true".into()],
            daemon: false,
            ready_within: None,
            ready: None,
            after: Vec::new(),
            start: Span::ZERO,
            cwd: None,
            env: Default::default(),
            restart: Restart::Never,
            demand: Default::default(),
        };
        SupervisedProgram::new(spec)
    }

    fn at_most(secs: u64) -> ValueBounds<Span> {
        ValueBounds { min: None, max: Some(Span::from_secs(secs)) }
    }

    #[test]
    fn a_program_that_never_started_meets_nothing() {
        let program = program();
        assert_eq!(exit(&program, ExitWanted::Any), ("it never started".to_owned(), false));
        assert!(!exited(&program, &at_most(9)).1);
        assert!(!ready(&program, &at_most(9)).1);
        assert!(!runtime(&program, &at_most(9), Span::from_secs(5)).1);
    }

    #[test]
    fn the_runtime_is_that_of_the_last_life() {
        let mut program = program();
        program.started_at = Some(Span::from_secs(2));
        let elapsed = Span::from_secs(9);
        let lived = |program: &SupervisedProgram, max| runtime(program, &at_most(max), elapsed);
        assert_eq!(lived(&program, 7), ("7.00s, to the end of the run".to_owned(), true));
        program.exited_at = Some(Span::from_secs(5));
        assert_eq!(lived(&program, 2), ("3.00s".to_owned(), false));
    }

    #[test]
    fn a_signal_is_more_than_its_code() {
        let mut program = program();
        let by_code = ProgramExit { code: 137, signal: None };
        program.life = ProgramLifecycle::Exited { exit: by_code };
        program.last_exit = Some(by_code);
        assert!(exit(&program, ExitWanted::Code(137)).1);
        assert!(!exit(&program, ExitWanted::Signal(9)).1);
        let by_signal = ProgramExit { code: 137, signal: Some(9) };
        program.life = ProgramLifecycle::Exited { exit: by_signal };
        program.last_exit = Some(by_signal);
        assert!(exit(&program, ExitWanted::Code(137)).1);
        assert!(exit(&program, ExitWanted::Signal(9)).1);
    }
}
