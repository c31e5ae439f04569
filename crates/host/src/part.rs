//! One machine's part of a run over several: a process of its own, which its agent starts and talks
//! to.
//!
//! The stages are those of [`crate::run`], with the agent between them: the socket to the other
//! machines is opened before the process leaves the machine's network; the run begins when all
//! machines can begin it; and in the place of a verdict there are results, of which the verdict on
//! the whole run is made.

pub(crate) mod link;
pub(crate) mod news;
mod own;

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;

use windtunnel_control::part::{FromPart, PartSetup, StopWhy, ToPart, bytes_of, with_causes};
use windtunnel_folder::RunOutputFolder;
use windtunnel_model::Plan;
use windtunnel_sys::{limits, schedule};
use windtunnel_tunnel::{Security, TunnelSettings, UdpTunnel};
use windtunnel_verdict::PartResults;

use crate::error::{RunError, step};
use crate::live::{AgentMembership, RunMemberTable};
use crate::observer::Observer;
use crate::options::RunOptions;
use crate::roots;
use crate::run::{ENDING, prepare};
use link::AgentConnection;
use windtunnel_dataplane::RemoteMachines;

/// What only this machine knows of its part of a run.
#[derive(Debug, Clone, Default)]
pub struct PartPlace {
    /// Files and folders that no program of a node may see.
    pub hidden: Vec<PathBuf>,
    /// The control group that all nodes are to be in, by its address.
    pub group: Option<String>,
}

/// Does this machine's part of a run, as the agent at the other end of `stream` wants it, and
/// reports the outcome to it. The calling thread must be the process's only one.
///
/// # Errors
/// If the agent has gone before it said anything that makes sense.
pub fn part(stream: UnixStream, place: PartPlace) -> std::io::Result<()> {
    // Programs are to have the usual time slices, and not their agent's.
    let _ = schedule::set_slice(0);
    let mut link = AgentConnection::new(stream)?;
    link.greet()?;
    let writer = link.writer().clone();
    let ToPart::Setup(setup) = link.wait()? else {
        return Err(std::io::Error::other("the agent has not said what the run is"));
    };
    match do_part(link, &setup, place) {
        Ok(()) => writer.send(&FromPart::Ended),
        Err(error) => writer.send(&FromPart::Failed {
            message: with_causes(&error),
            hint: error.hint(),
            code: error.exit_code(),
        }),
    }
    Ok(())
}

fn do_part(link: AgentConnection, setup: &PartSetup, place: PartPlace) -> Result<(), RunError> {
    let plan = Arc::new(setup.plan.clone());
    let folder = RunOutputFolder::create(&setup.folder, &plan)?;
    let reserved = PartResults::reserve(&folder, &plan).map_err(RunError::from);
    let done = reserved.and_then(|()| in_folder(link, setup, place, &plan, &folder));
    if done.is_err() {
        folder.discard();
    }
    done
}

fn in_folder(
    mut link: AgentConnection,
    setup: &PartSetup,
    PartPlace { hidden, group }: PartPlace,
    plan: &Arc<Plan>,
    folder: &RunOutputFolder,
) -> Result<(), RunError> {
    let (first, last) = setup.ports;
    let socket = bind(setup.bind, first, last)?;
    let port = socket.local_addr().map_err(step("open a UDP socket"))?.port();
    link.writer().send(&FromPart::Bound { port });
    let writer = Arc::new(link.writer().clone());
    let member = setup.members.get(usize::from(setup.member)).cloned().unwrap_or_default();
    let member = Some((setup.member, member));
    let options = RunOptions { hidden, group, member, ..options(setup) };
    let here = setup.placement.iter().map(|place| *place == setup.member).collect();
    let observer: Arc<dyn Observer> = writer;
    let mut prepared = prepare(plan, &options, folder, &observer, Some(here), &ENDING)?;
    if options.base_dir != setup.base_dir {
        let missing = setup.base_dir.display();
        prepared.note(format!(
            "there is no folder {missing}: programs that name none of their own start in {}",
            options.base_dir.display()
        ));
    }
    link.writer().send(&FromPart::Prepared);
    let addresses = peers(&mut link, setup)?;
    let remote = remote(socket, setup, plan, addresses)?;
    let members = RunMemberTable::new(setup.member, setup.members.clone(), setup.placement.clone());
    let membership = AgentMembership::new(link, members);
    let mut live = prepared.start(plan, &options, folder, observer, Some((membership, remote)))?;
    // Nodes are there, and start programs: from now on this thread carries news between the agent
    // and the packet loop, which are to be soon there. It works without, too.
    let _ = schedule::set_slice(schedule::SHORTEST_SLICE_NS);
    if !live.until_measure() {
        return Err(live.not_begun());
    }
    live.measure_paths();
    let Some(origin) = live.until_begin() else { return Err(live.not_begun()) };
    let mut done = live.through(origin, &[]);
    done.results.notes.extend(roots::remove(plan, folder));
    if done.membership.as_ref().is_some_and(AgentMembership::agent_is_gone) {
        // No process will fetch anything, and nothing of a run outlives its agent.
        folder.discard();
        return Ok(());
    }
    if let Err(error) = own::take(folder.path()) {
        done.results.notes.push(format!("not all files that nodes left can be read: {error}"));
    }
    let results = PartResults {
        member: setup.member,
        host: setup.members.get(usize::from(setup.member)).cloned().unwrap_or_default(),
        kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
        cpus: limits::cpus().map_or(1, |cpus| cpus.len()),
        ..done.results
    };
    results.write(folder)?;
    Ok(())
}

/// A socket at the first port that is free.
fn bind(address: IpAddr, first: u16, last: u16) -> Result<UdpSocket, RunError> {
    for port in first..=last {
        match UdpSocket::bind((address, port)) {
            Err(error) if error.kind() == ErrorKind::AddrInUse => {}
            bound => return bound.map_err(step("open a UDP socket")),
        }
    }
    Err(RunError::NoPort { address, first, last })
}

/// Where the packets of the others come from.
fn peers(
    link: &mut AgentConnection,
    setup: &PartSetup,
) -> Result<Vec<Option<SocketAddr>>, RunError> {
    loop {
        match link.wait().map_err(step("receive from the agent"))? {
            ToPart::Peers { addresses } => return only_others(addresses, setup),
            ToPart::Stop(why) => {
                return Err(match why {
                    StopWhy::Asked => RunError::Stopped("by command".to_owned()),
                    StopWhy::Signal(signal) => RunError::Interrupted(signal),
                    StopWhy::Failed(reason) => RunError::Stopped(reason),
                });
            }
            // Clocks and losses are repeated when it matters.
            _ => {}
        }
    }
}

/// One for each member but this one.
fn only_others(
    addresses: Vec<Option<SocketAddr>>,
    setup: &PartSetup,
) -> Result<Vec<Option<SocketAddr>>, RunError> {
    let mut numbered = (0_u16..).zip(&addresses);
    let each = numbered.all(|(member, address)| (member == setup.member) == address.is_none());
    if each && addresses.len() == setup.members.len() {
        return Ok(addresses);
    }
    let source = std::io::Error::other("the agent names addresses of other members than there are");
    Err(RunError::Step { step: "find the other machines", source })
}

fn remote(
    socket: UdpSocket,
    setup: &PartSetup,
    plan: &Plan,
    peers: Vec<Option<SocketAddr>>,
) -> Result<RemoteMachines, RunError> {
    let security = match &setup.key {
        Some(key) => Security::Sealed(bytes_of(key).ok_or_else(|| {
            let source = std::io::Error::other("the agent gave a key that is none");
            RunError::Step { step: "seal packets", source }
        })?),
        None => Security::Plain,
    };
    let tunnel = TunnelSettings { run: setup.run, own: setup.member, peers, security };
    let tunnel = UdpTunnel::open(socket, tunnel).map_err(|error| RunError::Step {
        step: "open the way to the other machines",
        source: std::io::Error::other(error),
    })?;
    let members = u16::try_from(setup.members.len()).unwrap_or(u16::MAX);
    let memory = setup.shared.packet_memory.0;
    Ok(RemoteMachines::new(tunnel, plan, &setup.placement, setup.member, members, memory))
}

fn options(setup: &PartSetup) -> RunOptions {
    let base_dir =
        if setup.base_dir.is_dir() { setup.base_dir.clone() } else { setup.folder.clone() };
    RunOptions::with_shared(setup.folder.clone(), base_dir, &setup.plan_hash, &setup.shared)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use windtunnel_control::{SoftwareVersion, frame};

    use super::*;

    #[test]
    fn an_agent_of_another_version_is_refused_with_both_versions_and_gets_this_one() {
        let (mut agent, stream) = UnixStream::pair().unwrap();
        let other = SoftwareVersion { protocol: 999, windtunnel: "9.9.9".to_owned() };
        agent.write_all(&frame::encode(&other).unwrap()).unwrap();
        let (own, why) =
            (SoftwareVersion::own(), part(stream, PartPlace::default()).unwrap_err().to_string());
        let expected =
            format!("the agent is of windtunnel 9.9.9 (protocol 999), and this program of {own}");
        assert_eq!(why, expected);
        let mut said = Vec::new();
        agent.read_to_end(&mut said).unwrap();
        assert_eq!(said, frame::encode(&own).unwrap());
    }

    #[test]
    fn parts_take_the_first_free_port_of_their_range_and_say_when_none_is() {
        let here = IpAddr::from([127, 0, 0, 1]);
        // Some two ports behind each other, that are free.
        let (first, sockets) = (20_000..60_000)
            .step_by(7)
            .find_map(|port| {
                let one = bind(here, port, port + 1).ok().filter(|it| port_of(it) == port)?;
                let two = bind(here, port, port + 1).ok().filter(|it| port_of(it) == port + 1)?;
                Some((port, [one, two]))
            })
            .unwrap();
        let error = bind(here, first, first + 1).unwrap_err();
        let text = format!(
            "all UDP ports from {first} to {} at 127.0.0.1 are taken: each run on a machine has one",
            first + 1
        );
        assert_eq!(error.to_string(), text);
        assert!(error.hint().unwrap().contains("--listen"));
        drop(sockets);
    }

    fn port_of(socket: &UdpSocket) -> u16 {
        socket.local_addr().unwrap().port()
    }
}
