//! Whether this machine can do a part of a run: an agent has one made at its start, nodes and all, and
//! removed again. What stands in a part's way here is found by what a part does.

use std::fs;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use windtunnel_control::part::{FromPart, PartSetup, ToPart};

use super::worker::PartWorkerCommand;
use crate::carrier::CarrierEvent;
use crate::protocol::MachineIneligibility;

/// Makes all of a part that can be made without other machines. Returns why that is not possible.
pub(super) async fn attempt(
    worker: &PartWorkerCommand,
    setup: PartSetup,
) -> Option<MachineIneligibility> {
    let (events, mut said) = unbounded_channel();
    let folder = setup.folder.clone();
    let part = match worker.start(setup.run, events) {
        Ok(part) => part,
        Err(error) => {
            return Some(unfit(format!("cannot start {}: {error}", worker.program.display())));
        }
    };
    let _ = part.send(ToPart::Setup(Box::new(setup)));
    let made = tokio::time::timeout(PATIENCE, until_made(&mut said, &part)).await;
    let late = || Some(unfit(format!("its nodes were not made within {} s", PATIENCE.as_secs())));
    let outcome = made.unwrap_or_else(|_| late());
    // A part ends with its agent's end of the socket.
    drop(part);
    let ended = async { while said.recv().await.is_some() {} };
    let _ = tokio::time::timeout(FAREWELL, ended).await;
    // It is not there if the part could not make it.
    let _ = fs::remove_dir_all(folder);
    outcome
}

async fn until_made(
    said: &mut UnboundedReceiver<CarrierEvent>,
    part: &UnboundedSender<ToPart>,
) -> Option<MachineIneligibility> {
    loop {
        match said.recv().await {
            Some(CarrierEvent::Part { said: Ok(said), .. }) => match said {
                // There are no others.
                FromPart::Bound { .. } => {
                    let _ = part.send(ToPart::Peers { addresses: vec![None] });
                }
                // Its nodes are there, and packets move.
                FromPart::Reached => return None,
                FromPart::Failed { message, hint, .. } => {
                    return Some(MachineIneligibility { why: message, hint });
                }
                _ => {}
            },
            Some(CarrierEvent::Part { said: Err(why), .. }) => return Some(unfit(why)),
            Some(_) => {}
            None => return Some(unfit("its process has ended".to_owned())),
        }
    }
}

fn unfit(why: String) -> MachineIneligibility {
    MachineIneligibility { why, hint: None }
}

/// As long as what leads a run waits for a part's nodes.
const PATIENCE: Duration = Duration::from_secs(60);
const FAREWELL: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use windtunnel_control::SoftwareVersion;
    use windtunnel_control::frame;

    use super::*;
    use crate::agent::runs::part_setup;
    use crate::protocol::run::RunSetup;
    use crate::protocol::valid::tests::run as run_json;

    /// What comes of a trial with a part that writes these messages and then waits for its end.
    fn outcome(messages: &[FromPart]) -> Option<MachineIneligibility> {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("9f2c41d07ab35e18");
        fs::create_dir(&folder).unwrap();
        let setup: RunSetup = serde_json::from_value(run_json()).unwrap();
        let any = std::net::Ipv4Addr::LOCALHOST.into();
        let setup = part_setup(&setup, 0, &folder, any, (7448, 7547));
        let version = frame::encode(&SoftwareVersion::own()).unwrap();
        let said = messages.iter().flat_map(|message| frame::encode(message).unwrap());
        let octal: String =
            version.into_iter().chain(said).map(|byte| format!("\\{byte:03o}")).collect();
        let script = format!("printf '{octal}' >&0; exec cat >/dev/null");
        let arguments = vec!["-c".into(), script.into()];
        let worker = PartWorkerCommand { program: "/bin/sh".into(), arguments };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let tried = tokio::task::LocalSet::new().block_on(&runtime, attempt(&worker, setup));
        assert!(!folder.exists(), "nothing is left of it");
        tried
    }

    #[test]
    fn a_machine_is_fit_if_a_part_comes_to_where_it_needs_others() {
        let all = [FromPart::Bound { port: 7448 }, FromPart::Prepared, FromPart::Reached];
        assert_eq!(outcome(&all), None);
    }

    #[test]
    fn what_a_part_says_of_its_failure_is_why_a_machine_is_unfit() {
        let (message, hint) = ("cannot make a user namespace".to_owned(), "allow them".to_owned());
        let failed =
            FromPart::Failed { message: message.clone(), hint: Some(hint.clone()), code: 4 };
        let unfit = MachineIneligibility { why: message, hint: Some(hint) };
        assert_eq!(outcome(&[FromPart::Bound { port: 7448 }, failed]), Some(unfit));
    }

    #[test]
    fn a_part_that_does_not_start_makes_a_machine_unfit() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let worker = PartWorkerCommand { program: "/no/such".into(), arguments: Vec::new() };
        let setup: RunSetup = serde_json::from_value(run_json()).unwrap();
        let any = std::net::Ipv4Addr::LOCALHOST.into();
        let setup = part_setup(&setup, 0, std::path::Path::new("/no/such/run"), any, (1, 1));
        let tried = tokio::task::LocalSet::new().block_on(&runtime, attempt(&worker, setup));
        assert!(tried.unwrap().why.starts_with("cannot start /no/such: "));
    }
}
