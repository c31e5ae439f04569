//! Agents that are started over ssh, by the user's own program with the user's own configuration.

use std::net::{IpAddr, SocketAddr};

use windtunnel_cluster::PORT;
use windtunnel_cluster::client::bare;
use windtunnel_model::Span;

use super::lines::LINE_BYTES_MAX;
use super::session::{AgentLaunchCommand, AgentLaunchFailure};
use super::{ShellCommandWords, words_of_offsets};
use crate::error::{LeadError, LeadErrorKind};
use crate::machines::MachineWithoutAgent;

/// How the agent of a machine is started.
///
/// # Errors
/// A name that ssh would take for an option.
pub(super) fn plan(
    ssh: &ShellCommandWords,
    remote: Option<&ShellCommandWords>,
    clock_offsets: Option<Span>,
    machine: &MachineWithoutAgent,
) -> Result<AgentLaunchCommand, LeadError> {
    let (host, listen) = place(&machine.name);
    if host.starts_with('-') {
        return Err(LeadError::new(
            LeadErrorKind::Usage,
            format!("`{}` is not a machine", machine.name),
        ));
    }
    let remote = remote.map_or("windtunnel", |words| words.text.as_str());
    let mut command =
        format!("{remote} agent --key - --until-stdin-closes --advertise ssh --listen {listen}");
    for word in words_of_offsets(clock_offsets) {
        command.push(' ');
        command.push_str(&word);
    }
    let mut words = ssh.words.clone();
    // Without a terminal, and without questions: there is no user to answer them.
    words.extend(["-T", "-o", "BatchMode=yes"].map(str::to_owned));
    words.extend([host, command]);
    Ok(AgentLaunchCommand {
        what: format!("the ssh session with {}", machine.name),
        words,
        agents: 1,
    })
}

/// Whether there was no place for the agent because another one has it by now.
pub(super) fn is_there_now(why: &AgentLaunchFailure) -> bool {
    let AgentLaunchFailure::Ended { said, .. } = why else { return false };
    said.iter().any(|line| line.contains("an agent runs already"))
}

/// Why no agent was started, with what ssh said.
pub(super) fn failed(
    ssh: &ShellCommandWords,
    machine: &MachineWithoutAgent,
    why: &AgentLaunchFailure,
) -> LeadError {
    let MachineWithoutAgent { name, has_address, others } = machine;
    let (host, _) = place(name);
    let what = match has_address {
        true => format!("no agent answers at {name}, and none can be started there"),
        false => {
            format!(
                "no agent is called `{name}`, it is not an address, and none can be started there"
            )
        }
    };
    let (cause, hint) = match why {
        AgentLaunchFailure::NoProgram { program, error } => (
            format!("cannot run {program}: {error}"),
            "install it, or name another with --ssh; or start an agent there with `windtunnel agent`"
                .to_owned(),
        ),
        AgentLaunchFailure::Silent { said } => (
            cause(said, "ssh has been silent for a minute"),
            format!("try `{ssh} {host}`: it has to work without a question"),
        ),
        AgentLaunchFailure::Overlong { stream } => (
            format!("a line of the {stream} of ssh is over {LINE_BYTES_MAX} bytes"),
            format!("see what `{ssh} {host} true` writes: a shell there should say little"),
        ),
        AgentLaunchFailure::Ended { status, said } => {
            let code = status.and_then(|status| status.code());
            let silent = match code {
                Some(code) => format!("{ssh} ended with exit code {code}"),
                None => format!("{ssh} ended"),
            };
            (cause(said, &silent), hint(ssh, &host, code, said))
        }
    };
    let hint = match others {
        // The name may be a misspelt one.
        Some(others) if !has_address => format!("{hint}; agents are {others}"),
        _ => hint,
    };
    LeadError::new(LeadErrorKind::Machine, format!("{what}: {cause}")).with_hint(hint)
}

/// What to do about an end of ssh with this exit code: 255 is its own, all else the shell's or the
/// agent's there.
fn hint(ssh: &ShellCommandWords, host: &str, code: Option<i32>, said: &[String]) -> String {
    let has = |text: &str| said.iter().any(|line| line.contains(text));
    match code {
        Some(255) if has("Host key verification failed") => {
            format!("see whether it is the right machine: `{ssh} {host}`, once, by hand")
        }
        Some(255) if has("Permission denied") => format!(
            "`{ssh} {host}` has to work without a question: put a key of yours there with `ssh-copy-id`, or load \
             yours with `ssh-add`"
        ),
        Some(126 | 127) => {
            "install windtunnel there, or name its path with --remote-windtunnel".to_owned()
        }
        Some(2) if has("unexpected argument") || has("unrecognized subcommand") => {
            "another version of windtunnel is there: use the same on all machines".to_owned()
        }
        _ => match said.iter().find_map(|line| line.strip_prefix("hint: ")) {
            Some(hint) => hint.to_owned(),
            None => format!(
                "`{ssh} {host}` has to work without a question; or start an agent there with `windtunnel agent`"
            ),
        },
    }
}

/// The lines that say what is wrong, or else the last ones.
fn cause(said: &[String], silent: &str) -> String {
    let errors: Vec<&str> = said.iter().filter_map(|line| line.strip_prefix("error: ")).collect();
    if !errors.is_empty() {
        return errors.join("; ");
    }
    let is_cause = |line: &&str| !line.is_empty() && !line.starts_with("Warning: ");
    let lines: Vec<&str> = said.iter().map(|line| line.trim()).filter(is_cause).collect();
    match lines.len() {
        0 => silent.to_owned(),
        many => lines[many.saturating_sub(LINES_SHOWN)..].join("; "),
    }
}

/// What ssh calls a machine, and where its agent has to listen to be found there again.
fn place(name: &str) -> (String, SocketAddr) {
    let (host, port) = if let Ok(address) = name.parse::<SocketAddr>() {
        (address.ip().to_string(), address.port())
    } else if let Ok(ip) = bare(name).parse::<IpAddr>() {
        (ip.to_string(), PORT)
    } else {
        match name.rsplit_once(':').map(|(host, port)| (host, port.parse::<u16>())) {
            Some((host, Ok(port))) => (host.to_owned(), port),
            _ => (name.to_owned(), PORT),
        }
    };
    // Of both families, where the machine has both.
    (host, SocketAddr::new(std::net::Ipv6Addr::UNSPECIFIED.into(), port))
}

/// More than the first is context.
const LINES_SHOWN: usize = 3;

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;
    use crate::error::text;

    fn words(text: &str) -> ShellCommandWords {
        text.parse().unwrap()
    }

    fn machine(name: &str) -> MachineWithoutAgent {
        MachineWithoutAgent { name: name.into(), has_address: true, others: None }
    }

    #[test]
    fn the_agent_of_a_machine_named_for_ssh_listens_on_the_named_port() {
        let place = |name| {
            let (host, listen) = place(name);
            format!("{host} {listen}")
        };
        assert_eq!(place("b"), "b [::]:7447");
        assert_eq!(place("b:80"), "b [::]:80");
        assert_eq!(place("10.0.0.1:80"), "10.0.0.1 [::]:80");
        assert_eq!(place("fd00::1"), "fd00::1 [::]:7447");
        assert_eq!(place("[fd00::1]:80"), "fd00::1 [::]:80");
    }

    #[test]
    fn the_command_line_has_no_key_and_asks_nothing() {
        let plan =
            plan(&words("ssh -p 2222"), Some(&words("~/bin/wt")), None, &machine("b")).unwrap();
        let expected = [
            "ssh",
            "-p",
            "2222",
            "-T",
            "-o",
            "BatchMode=yes",
            "b",
            "~/bin/wt agent --key - --until-stdin-closes --advertise ssh --listen [::]:7447",
        ];
        assert_eq!(plan.words, expected);
        assert!(super::plan(&words("ssh"), None, None, &machine("-oProxyCommand=x:1")).is_err());
    }

    #[test]
    fn what_is_known_of_clocks_is_given_to_the_agent() {
        let known = Some(Span::from_micros(50));
        let plan = plan(&words("ssh"), None, known, &machine("b")).unwrap();
        let command = plan.words.last().unwrap();
        assert!(command.ends_with(" --listen [::]:7447 --clock-offsets 50000ns"), "{command}");
    }

    /// What is said if ssh has ended so.
    fn ended(code: i32, said: &[&str]) -> String {
        let said = said.iter().map(|line| (*line).to_owned()).collect();
        let why = AgentLaunchFailure::Ended { status: Some(ExitStatus::from_raw(code << 8)), said };
        text(&failed(&words("ssh"), &machine("b"), &why))
    }

    #[test]
    fn errors_of_ssh_are_reported_with_what_can_be_done() {
        let start = "error: no agent answers at b, and none can be started there: ";
        let seen = ended(255, &["ann@b: Permission denied (publickey)."]);
        assert!(seen.starts_with(&format!(
            "{start}ann@b: Permission denied (publickey).\nhint: `ssh b` has"
        )));
        let seen = ended(127, &["sh: 1: windtunnel: not found"]);
        assert!(seen.ends_with(
            "not found\nhint: install windtunnel there, or name its path with --remote-windtunnel"
        ));
        let seen =
            ended(2, &["error: unexpected argument '--until-stdin-closes' found", "", "Usage: x"]);
        assert!(seen.contains("another version of windtunnel is there"), "{seen}");
        let seen = ended(5, &["Welcome", "error: cannot do it", "hint: do it yourself"]);
        assert_eq!(seen, format!("{start}cannot do it\nhint: do it yourself"));
        assert!(ended(1, &[]).starts_with(&format!("{start}ssh ended with exit code 1\n")));
        let misspelt = MachineWithoutAgent {
            name: "m".into(),
            has_address: false,
            others: Some("m1 (10.0.0.1:7447)".into()),
        };
        let why = AgentLaunchFailure::Ended { status: None, said: Vec::new() };
        let seen = text(&failed(&words("ssh"), &misspelt, &why));
        assert!(seen.ends_with("; agents are m1 (10.0.0.1:7447)"), "{seen}");
    }

    /// Why no agent was started, with the hint.
    fn why(why: &AgentLaunchFailure) -> String {
        text(&failed(&words("ssh -p 22"), &machine("b:80"), why))
    }

    #[test]
    fn each_end_of_ssh_has_the_hint_that_helps() {
        let hint = |code, said: &[&str]| {
            let seen = ended(code, said);
            seen.split_once("\nhint: ").unwrap().1.to_owned()
        };
        let by_hand = "see whether it is the right machine: `ssh b`, once, by hand";
        assert_eq!(hint(255, &["Host key verification failed."]), by_hand);
        let install = "install windtunnel there, or name its path with --remote-windtunnel";
        assert_eq!((hint(126, &["denied"]), hint(127, &[])), (install.into(), install.into()));
        let usual = "`ssh b` has to work without a question; or start an agent there with `windtunnel agent`";
        // Only ssh's own exit code says that it was ssh; a shell there may say the same.
        assert_eq!(hint(1, &["Permission denied"]), usual);
        assert_eq!(hint(255, &["Connection refused"]), usual);
        assert_eq!(
            hint(2, &["error: unrecognized subcommand 'agent'"]),
            "another version of windtunnel is there: use the same on all machines"
        );
    }

    #[test]
    fn the_last_lines_are_the_cause_without_warnings_and_blanks() {
        let start = "error: no agent answers at b, and none can be started there: ";
        let seen = ended(255, &["1", "Warning: Permanently added 'b'", "2", "", "3 ", "4"]);
        assert!(seen.starts_with(&format!("{start}2; 3; 4\n")), "{seen}");
        let seen = ended(5, &["error: one", "more", "error: two"]);
        assert!(seen.starts_with(&format!("{start}one; two\n")), "{seen}");
    }

    #[test]
    fn a_missing_silent_or_endless_ssh_is_named_as_it_was_given() {
        let start = "error: no agent answers at b:80, and none can be started there: ";
        let no_program = AgentLaunchFailure::NoProgram {
            program: "ssh".into(),
            error: std::io::ErrorKind::NotFound.into(),
        };
        let seen = why(&no_program);
        assert!(seen.starts_with(&format!("{start}cannot run ssh: entity not found\n")), "{seen}");
        let seen = why(&AgentLaunchFailure::Silent { said: Vec::new() });
        assert_eq!(
            seen,
            format!(
                "{start}ssh has been silent for a minute\nhint: try `ssh -p 22 b`: it has to work without a question"
            )
        );
        let seen = why(&AgentLaunchFailure::Overlong { stream: "standard output" });
        assert!(
            seen.contains("a line of the standard output of ssh is over 65536 bytes"),
            "{seen}"
        );
        assert!(
            seen.ends_with("see what `ssh -p 22 b true` writes: a shell there should say little")
        );
    }

    #[test]
    fn an_agent_that_runs_there_by_now_is_seen_by_its_error() {
        let is_there = |said: &str| {
            is_there_now(&AgentLaunchFailure::Ended {
                status: None,
                said: vec!["x".into(), said.to_owned()],
            })
        };
        assert!(is_there("hint: an agent runs already, or name another port"));
        assert!(!is_there("error: cannot listen"));
        assert!(!is_there_now(&AgentLaunchFailure::Silent {
            said: vec!["an agent runs already".to_owned()]
        }));
    }

    #[test]
    fn a_user_and_a_port_are_given_to_ssh_and_to_the_agent() {
        let plan = plan(&words("ssh"), None, None, &machine("ann@b:80")).unwrap();
        assert_eq!(plan.words[4], "ann@b");
        let command =
            "windtunnel agent --key - --until-stdin-closes --advertise ssh --listen [::]:80";
        assert_eq!((plan.words[5].as_str(), plan.agents), (command, 1));
        assert_eq!(plan.what, "the ssh session with ann@b:80");
    }
}
