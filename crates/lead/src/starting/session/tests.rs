//! Tests of ssh sessions that start agents.

use super::*;
use crate::tests::{Recorder, key};

/// A program that does `script`, and starts so many agents.
fn plan(script: &str, agents: usize) -> AgentLaunchCommand {
    let words = ["sh", "-c", script].map(str::to_owned).into();
    AgentLaunchCommand { what: "the session".to_owned(), words, agents }
}

/// What became of a session.
type Opened = Result<Vec<SocketAddr>, AgentLaunchFailure>;

fn open(plans: &[AgentLaunchCommand]) -> (Sessions, Vec<Opened>, Arc<Recorder>) {
    let recorder = Recorder::new();
    let progress: Arc<dyn ClusterRunObserver> = Arc::<Recorder>::clone(&recorder);
    let (sessions, opened) = Sessions::open(plans, &key(), &progress);
    (sessions, opened, recorder)
}

#[test]
fn a_session_has_the_addresses_that_its_agents_announce_and_no_other_line() {
    let script = "echo welcome; echo windtunnel agent at nowhere; echo ' windtunnel agent at 10.0.0.1:7'; \
        echo windtunnel agent at [fd00::1]:8; echo windtunnel agent at 10.0.0.9:9; cat >/dev/null";
    let (sessions, mut opened, recorder) = open(&[plan(script, 2)]);
    let addresses = opened.remove(0).unwrap();
    let expected: Vec<SocketAddr> =
        ["10.0.0.1:7", "[fd00::1]:8"].map(|text| text.parse().unwrap()).into();
    assert_eq!(addresses, expected);
    // It ends with its standard input, as it should: nothing is to be said.
    drop(sessions);
    assert!(recorder.take().is_empty());
}

#[test]
fn the_key_comes_through_standard_input_which_stays_open() {
    let folder = tempfile::tempdir().unwrap();
    let got = folder.path().join("key");
    // As many lines as a key has; `read` would wait for ever if it did not come.
    let key = key();
    let lines = key.text().lines().count();
    let script = format!(
        "for i in $(seq {lines}); do read -r line; echo \"$line\"; done >'{}'; \
         echo windtunnel agent at 10.0.0.1:7; cat >/dev/null",
        got.display()
    );
    let progress: Arc<dyn ClusterRunObserver> = Recorder::new();
    let (sessions, opened) = Sessions::open(&[plan(&script, 1)], &key, &progress);
    assert_eq!(opened[0].as_ref().unwrap().len(), 1);
    assert_eq!(std::fs::read_to_string(got).unwrap(), key.text());
    drop(sessions);
}

#[test]
fn a_program_that_ends_early_is_reported_with_its_status_and_its_last_lines() {
    let script = "i=0; while [ $i -lt 25 ]; do i=$((i+1)); echo line $i >&2; done; exit 7";
    let (_sessions, opened, _) = open(&[plan(script, 1), plan("exit 0", 1)]);
    let Err(AgentLaunchFailure::Ended { status, said }) = &opened[0] else { panic!("{opened:?}") };
    assert_eq!((status.and_then(|status| status.code()), said.len()), (Some(7), 20));
    assert_eq!((said[0].as_str(), said[19].as_str()), ("line 6", "line 25"));
    let Err(AgentLaunchFailure::Ended { status, said }) = &opened[1] else { panic!("{opened:?}") };
    assert_eq!((status.and_then(|status| status.code()), said.len()), (Some(0), 0));
}

#[test]
fn fewer_agents_than_were_to_start_are_a_failure() {
    let (_sessions, opened, _) = open(&[plan("echo windtunnel agent at 10.0.0.1:7", 2)]);
    assert!(matches!(&opened[0], Err(AgentLaunchFailure::Ended { .. })), "{opened:?}");
}

#[test]
fn a_program_that_does_not_exist_does_not_keep_the_others_from_starting() {
    let missing = AgentLaunchCommand {
        what: String::new(),
        words: vec!["/no/such/ssh".to_owned()],
        agents: 1,
    };
    let good = plan("echo windtunnel agent at 10.0.0.1:7; cat >/dev/null", 1);
    let (_sessions, opened, _) = open(&[missing, good]);
    let Err(AgentLaunchFailure::NoProgram { program, error }) = &opened[0] else {
        panic!("{opened:?}")
    };
    assert_eq!((program.as_str(), error.kind()), ("/no/such/ssh", io::ErrorKind::NotFound));
    assert_eq!(opened[1].as_ref().unwrap().len(), 1);
}

#[test]
fn a_line_without_an_end_is_a_failure_that_names_the_stream() {
    let endless = "head -c 70000 /dev/zero | tr '\\0' x";
    let plans = [
        plan(&format!("{endless}; cat >/dev/null"), 1),
        plan(&format!("{endless} >&2; cat >/dev/null"), 1),
    ];
    let (_sessions, opened, _) = open(&plans);
    let stream = |opened: &Opened| match opened {
        Err(AgentLaunchFailure::Overlong { stream }) => *stream,
        other => panic!("{other:?}"),
    };
    let streams = [stream(&opened[0]), stream(&opened[1])];
    assert_eq!(streams, ["standard output", "standard error"]);
}

#[test]
fn a_session_that_ends_before_the_run_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let script = format!(
        "echo windtunnel agent at 10.0.0.1:7; while [ ! -e '{}' ]; do sleep 0.01; done",
        go.display()
    );
    let (_sessions, opened, recorder) = open(&[plan(&script, 1)]);
    assert!(opened[0].is_ok());
    std::fs::write(go, "").unwrap();
    let until = Instant::now() + PATIENCE;
    let warnings = loop {
        let warnings = recorder.take();
        if !warnings.is_empty() {
            break warnings;
        }
        assert!(Instant::now() < until, "it is not reported in time");
        thread::sleep(PAUSE);
    };
    assert_eq!(warnings, ["the session is over before the run is"]);
}
