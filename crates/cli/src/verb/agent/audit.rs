//! Lines of an agent's log about what others have it do.

use windtunnel_cluster::protocol::run::text_of;
use windtunnel_cluster::{CommandAuditRecord, RunAuditRecord};

use crate::render::quantity;
use crate::render::text::{escaped, is_active};

/// A run that begins here, or is refused.
pub(super) fn begun(begun: &RunAuditRecord, outcome: &Result<(), String>) -> String {
    let RunAuditRecord { run, name, from, by, nodes, programs } = begun;
    let (run, nodes) = (text_of(*run), quantity::count(*nodes, "node"));
    let by = if by.is_empty() { String::new() } else { format!(" by {}", plain(by)) };
    let mut shown: Vec<String> = programs.iter().take(PROGRAMS).map(|it| plain(it)).collect();
    if programs.len() > PROGRAMS {
        shown.push(format!("{} more", programs.len() - PROGRAMS));
    }
    let programs = if shown.is_empty() { "none".to_owned() } else { shown.join(", ") };
    let (verb, why) = match outcome {
        Ok(()) => ("begins", String::new()),
        Err(why) => ("is refused", format!("; {}", plain(why))),
    };
    format!(
        "agent: run {run} ({}) {verb}{by}, from {from}: {nodes} here, programs: {programs}{why}",
        plain(name)
    )
}

/// A command in a node. Its arguments may hold secrets and are not shown.
pub(super) fn command(command: &CommandAuditRecord) -> String {
    let CommandAuditRecord { run, node, from, argv } = command;
    let program = argv.first().map_or_else(String::new, |program| plain(program));
    let run = text_of(*run);
    format!("agent: run {run}: command in {}, from {from}: {program}", plain(node))
}

/// Text of another machine on one line of this one's, without effect on a terminal.
fn plain(text: &str) -> String {
    escaped(text, is_active)
}

/// Programs that a line names.
const PROGRAMS: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    fn of(programs: &[String]) -> RunAuditRecord {
        RunAuditRecord {
            run: 0xabc,
            name: "net-1".to_owned(),
            from: "10.0.0.5:4000".parse().expect("an address"),
            by: "ann@laptop".to_owned(),
            nodes: 3,
            programs: programs.iter().cloned().collect(),
        }
    }

    #[test]
    fn a_run_has_one_line_with_who_from_where_and_which_programs() {
        let run = of(&["ping".to_owned(), "iperf3".to_owned()]);
        assert_eq!(
            begun(&run, &Ok(())),
            "agent: run 0000000000000abc (net-1) begins by ann@laptop, from 10.0.0.5:4000: 3 nodes \
             here, programs: iperf3, ping"
        );
        assert_eq!(
            begun(&run, &Err("`nc` is denied".to_owned())),
            "agent: run 0000000000000abc (net-1) is refused by ann@laptop, from 10.0.0.5:4000: 3 \
             nodes here, programs: iperf3, ping; `nc` is denied"
        );
        let many: Vec<String> = (10..30).map(|number| format!("p{number}")).collect();
        assert!(begun(&of(&many), &Ok(())).ends_with("p21, 8 more"));
    }

    #[test]
    fn a_hostile_text_stays_on_its_line() {
        let hostile = "x\r\x1b[2Kagent: all is well\n".to_owned();
        let run = RunAuditRecord { by: hostile.clone(), ..of(std::slice::from_ref(&hostile)) };
        let line = begun(&run, &Err(hostile));
        assert!(!line.contains(char::is_control), "{line:?}");
        let of_node = CommandAuditRecord {
            run: 1,
            node: "a".to_owned(),
            from: "10.0.0.5:4000".parse().expect("an address"),
            argv: vec!["\u{7}ls".to_owned(), "--password=x".to_owned()],
        };
        assert_eq!(
            command(&of_node),
            "agent: run 0000000000000001: command in a, from 10.0.0.5:4000: \\u{7}ls"
        );
    }
}
