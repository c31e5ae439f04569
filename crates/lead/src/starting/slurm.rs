//! Agents on the machines of a Slurm allocation: one step with a task on each. The allocation is
//! the user's; windtunnel asks for none.

use windtunnel_model::Span;

use super::lines::LINE_BYTES_MAX;
use super::session::{AgentLaunchCommand, AgentLaunchFailure};
use super::{ShellCommandWords, words_of_offsets};
use crate::error::{LeadError, LeadErrorKind};

/// What an agent's machine is called until it says so itself.
pub(super) const JOB: &str = "a machine of the allocation";

/// How the agents of the allocation are started that this process is in: srun(1), with the
/// variables of sbatch(1) and salloc(1).
pub(super) fn plan(
    remote: Option<&ShellCommandWords>,
    clock_offsets: Option<Span>,
) -> Result<AgentLaunchCommand, LeadError> {
    let nodes = nodes(|name| std::env::var(name).ok())?;
    let program = match remote {
        Some(words) => words.words.clone(),
        None => vec![own_path()?],
    };
    let mut words = words(nodes, program);
    words.extend(words_of_offsets(clock_offsets));
    Ok(AgentLaunchCommand { what: "srun".to_owned(), words, agents: nodes })
}

/// Why there are no agents.
pub(super) fn failed(why: &AgentLaunchFailure) -> LeadError {
    let (text, hint) = match why {
        AgentLaunchFailure::NoProgram { error, .. } => {
            (format!("cannot run srun: {error}"), "it is part of Slurm: see that PATH has it")
        }
        AgentLaunchFailure::Silent { said } => (
            format!("srun has not started all agents in a minute{}", lines(said)),
            "`squeue --steps` shows what the allocation is busy with",
        ),
        AgentLaunchFailure::Overlong { stream } => (
            format!("a line of the {stream} of srun is over {LINE_BYTES_MAX} bytes"),
            "see what `srun hostname` writes in this allocation",
        ),
        AgentLaunchFailure::Ended { said, .. } => {
            let has = |text: &str| said.iter().any(|line| line.contains(text));
            let hint = if has("execve") || has("unexpected argument") {
                "windtunnel has to be the same at the same path on all machines: name another with --remote-windtunnel"
            } else {
                "`srun hostname` has to work in this allocation"
            };
            (format!("srun starts no agents{}", lines(said)), hint)
        }
    };
    LeadError::new(LeadErrorKind::Machine, text).with_hint(hint)
}

fn nodes(variable: impl Fn(&str) -> Option<String>) -> Result<usize, LeadError> {
    if variable("SLURM_JOB_ID").is_none() {
        let text = "--hosts slurm: this is not inside a Slurm allocation (SLURM_JOB_ID is not set)";
        let hint = "run it in a script for `sbatch`, or in `salloc`: docs/slurm.md has an example";
        return Err(LeadError::new(LeadErrorKind::Usage, text).with_hint(hint));
    }
    let nodes = variable("SLURM_JOB_NUM_NODES").and_then(|nodes| nodes.parse().ok());
    nodes.filter(|nodes| *nodes > 0).ok_or_else(|| {
        let text = "--hosts slurm: SLURM_JOB_NUM_NODES does not say how many machines there are";
        LeadError::new(LeadErrorKind::Usage, text)
    })
}

/// A step beside others, with all that the allocation has on each of its machines. Each agent takes
/// a free port: other jobs may have agents on the same machines.
fn words(nodes: usize, program: Vec<String>) -> Vec<String> {
    let mut words =
        vec!["srun".to_owned(), format!("--nodes={nodes}"), format!("--ntasks={nodes}")];
    let options = [
        "--ntasks-per-node=1",
        "--overlap",
        "--input=all",
        "--cpu-bind=none",
        "--kill-on-bad-exit=0",
        "--wait=0",
        "--job-name=windtunnel",
    ];
    words.extend(options.map(str::to_owned));
    words.extend(program);
    let agent = ["agent", "--key", "-", "--until-stdin-closes", "--slurm", "--listen", "[::]:0"];
    words.extend(agent.map(str::to_owned));
    words
}

fn own_path() -> Result<String, LeadError> {
    let failed = |why: String| {
        LeadError::new(
            LeadErrorKind::Machine,
            format!("cannot find out where windtunnel itself is: {why}"),
        )
    };
    let path = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    path.into_os_string()
        .into_string()
        .map_err(|path| failed(format!("{} is not text", path.display())))
}

fn lines(said: &[String]) -> String {
    let lines: Vec<&str> =
        said.iter().map(|line| line.trim()).filter(|line| !line.is_empty()).collect();
    match lines.len() {
        0 => String::new(),
        many => format!(": {}", lines[many.saturating_sub(LINES_SHOWN)..].join("; ")),
    }
}

const LINES_SHOWN: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::text;

    #[test]
    fn an_allocation_is_known_by_its_variables() {
        let of = |all: &'static [(&str, &str)]| {
            nodes(|name| all.iter().find(|(one, _)| *one == name).map(|(_, value)| (*value).into()))
        };
        assert_eq!(of(&[("SLURM_JOB_ID", "7"), ("SLURM_JOB_NUM_NODES", "3")]).unwrap(), 3);
        assert!(text(&of(&[("SLURM_JOB_ID", "7")]).unwrap_err()).contains("SLURM_JOB_NUM_NODES"));
        let outside = text(&of(&[("SLURM_JOB_NUM_NODES", "3")]).unwrap_err());
        assert!(outside.contains("not inside a Slurm allocation"), "{outside}");
    }

    #[test]
    fn a_step_has_one_agent_on_each_machine_and_no_key_on_its_command_line() {
        let words = words(3, vec!["/opt/windtunnel".into()]).join(" ");
        assert!(
            words.starts_with("srun --nodes=3 --ntasks=3 --ntasks-per-node=1 --overlap"),
            "{words}"
        );
        assert!(words.ends_with(
            "/opt/windtunnel agent --key - --until-stdin-closes --slurm --listen [::]:0"
        ));
    }

    #[test]
    fn an_allocation_of_no_machines_or_of_nonsense_is_refused() {
        for number in ["0", "-1", "three", ""] {
            let refused = nodes(|name| match name {
                "SLURM_JOB_ID" => Some("7".to_owned()),
                _ => Some(number.to_owned()),
            });
            assert_eq!(
                text(&refused.unwrap_err()),
                "error: --hosts slurm: SLURM_JOB_NUM_NODES does not say how many machines there are"
            );
        }
    }

    #[test]
    fn each_failure_of_srun_is_one_of_the_machines_with_what_to_look_at() {
        let said = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        let ended = |lines: &[&str]| AgentLaunchFailure::Ended { status: None, said: said(lines) };
        let cases = [
            (
                AgentLaunchFailure::NoProgram {
                    program: "srun".into(),
                    error: std::io::ErrorKind::NotFound.into(),
                },
                "error: cannot run srun: entity not found\nhint: it is part of Slurm: see that PATH has it",
            ),
            (
                AgentLaunchFailure::Silent { said: said(&["srun: job 7 queued", ""]) },
                "error: srun has not started all agents in a minute: srun: job 7 queued\nhint: \
                 `squeue --steps` shows what the allocation is busy with",
            ),
            (
                AgentLaunchFailure::Overlong { stream: "standard error" },
                "error: a line of the standard error of srun is over 65536 bytes\nhint: see what \
                 `srun hostname` writes in this allocation",
            ),
            (
                ended(&["1", "2", "3", "4", "5", " 6 "]),
                "error: srun starts no agents: 2; 3; 4; 5; 6\nhint: `srun hostname` has to work in \
                 this allocation",
            ),
            (
                ended(&["slurmstepd: error: execve(): No such file"]),
                "error: srun starts no agents: slurmstepd: error: execve(): No such file\nhint: \
                 windtunnel has to be the same at the same path on all machines: name another with \
                 --remote-windtunnel",
            ),
        ];
        for (why, expected) in cases {
            let error = failed(&why);
            assert_eq!((text(&error).as_str(), error.exit_code()), (expected, 4));
        }
    }
}
