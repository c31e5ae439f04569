//! The gateway process, as its parent sees it.

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{self, AssertUnwindSafe};
use std::time::Duration;

use windtunnel_sys::namespace::{self, NamespaceFlags, NamespaceFork};
use windtunnel_sys::poll::{self, PollFd, PollFlags};
use windtunnel_sys::process::{self, Signal};
use windtunnel_sys::{descriptor, limits, schedule, unix};

use crate::message::{self, GatewayCommand, GatewayEvent};
use crate::report::GatewayReport;
use crate::settings::{GatewaySettings, PublishedNodePort};
use crate::socket;
use crate::worker::{self, GatewayForkParameters};

/// The gateway process. Dropping it ends the process, and so does the end of the thread that
/// started it.
#[derive(Debug)]
pub struct Gateway {
    pidfd: OwnedFd,
    control: OwnedFd,
    /// What the node's init gets.
    inside: Option<OwnedFd>,
    ended: bool,
}

/// A published port that is listened at.
#[derive(Debug)]
pub(crate) struct Listening {
    pub(crate) socket: OwnedFd,
    /// Where it leads.
    pub(crate) to: SocketAddr,
}

/// Why there is no gateway process.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    #[error("cannot publish a port of node {node}: {at} of this machine")]
    Listen { node: String, at: SocketAddr, source: io::Error },
    #[error("cannot start the gateway to the machine's outside")]
    Start(#[from] io::Error),
    #[error("the gateway to the machine's outside does not work: {0}")]
    Failed(String),
}

impl StartError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            StartError::Listen { source, at, .. } => match source.kind() {
                io::ErrorKind::AddrInUse => Some(format!(
                    "another program listens there: choose another port than {}, or end it",
                    at.port()
                )),
                io::ErrorKind::PermissionDenied => {
                    Some("ports below 1024 are root's: choose a higher one".to_owned())
                }
                io::ErrorKind::AddrNotAvailable => {
                    Some("it is not an address of this machine".to_owned())
                }
                _ => None,
            },
            StartError::Start(_) | StartError::Failed(_) => {
                Some("`windtunnel doctor` shows what this machine allows".to_owned())
            }
        }
    }
}

impl Gateway {
    /// Listens at all published ports, and forks the process, which stays in the network namespace
    /// of the caller with the caller's rights. `log` gets a line for each flow. The calling process
    /// must have one thread only.
    ///
    /// # Errors
    /// A port that cannot be had, or what fork(2) says.
    pub fn start(settings: GatewaySettings, log: File) -> Result<Gateway, StartError> {
        let listening = listen(&settings.published)?;
        let (control, theirs) = unix::seqpacket_pair()?;
        let (inside, of_init) = unix::seqpacket_pair()?;
        match namespace::fork_into(NamespaceFlags::NONE)? {
            NamespaceFork::Parent { pidfd, .. } => {
                Ok(Gateway { pidfd, control, inside: Some(of_init), ended: false })
            }
            NamespaceFork::Child => {
                let log = OwnedFd::from(log);
                live(GatewayForkParameters { settings, control: theirs, inside, log, listening })
            }
        }
    }

    /// The end of a socket that the init of the node gets, once.
    pub fn take_inside(&mut self) -> Option<OwnedFd> {
        self.inside.take()
    }

    /// Waits until it works.
    ///
    /// # Errors
    /// Why it does not.
    pub fn until_ready(&self, patience: Duration) -> Result<(), StartError> {
        match self.news(patience).map_err(StartError::Failed)? {
            GatewayEvent::Ready => Ok(()),
            GatewayEvent::Failed(why) => Err(StartError::Failed(why)),
            GatewayEvent::Ended(_) => Err(StartError::Failed("it has ended".to_owned())),
        }
    }

    /// The run's clock starts, at this time of `CLOCK_MONOTONIC`. A process that is gone is noticed
    /// at the end.
    pub fn begin(&self, origin_ns: u64) {
        let _ = message::send(&self.control, &GatewayCommand::Begin { origin_ns }, &[]);
    }

    /// The run has ended: what is lost or refused from now on, while programs are stopped, does not
    /// count.
    pub fn count_no_more(&self) {
        let _ = message::send(&self.control, &GatewayCommand::CountNoMore, &[]);
    }

    /// Ends it: what it has carried, refused and lost, or how it came to an end before.
    ///
    /// # Errors
    /// That it ended by itself, or does not answer.
    pub fn end(mut self, patience: Duration) -> Result<GatewayReport, String> {
        // One that is gone is noticed by the answer.
        let _ = message::send(&self.control, &GatewayCommand::End, &[]);
        let news = self.news(patience);
        self.stop();
        match news? {
            GatewayEvent::Ended(report) => Ok(report),
            GatewayEvent::Failed(why) => Err(why),
            GatewayEvent::Ready => Err("it gave no account".to_owned()),
        }
    }

    fn news(&self, patience: Duration) -> Result<GatewayEvent, String> {
        let ready = loop {
            match poll::wait(&mut [PollFd::new(&self.control, PollFlags::IN)], Some(patience)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                ready => break ready.map_err(|error| error.to_string())?,
            }
        };
        if ready == 0 {
            return Err(format!("it did not answer in {} s", patience.as_secs()));
        }
        let news =
            message::receive::<GatewayEvent>(&self.control).map_err(|error| error.to_string())?;
        news.map(|(news, _)| news).ok_or_else(|| "it has ended by itself".to_owned())
    }

    fn stop(&mut self) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        // One that is gone already needs no signal.
        let _ = process::pidfd_send_signal(&self.pidfd, Signal::KILL);
        while let Err(error) = process::wait_pidfd(&self.pidfd, false) {
            if error.kind() != io::ErrorKind::Interrupted {
                break;
            }
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A machine without IPv6 has no second loopback address.
fn listen(published: &[PublishedNodePort]) -> Result<Vec<Listening>, StartError> {
    let mut listening = Vec::new();
    for PublishedNodePort { node, publish, to } in published {
        for at in publish.addresses() {
            let is_extra = publish.address.is_none() && at.is_ipv6();
            match socket::listen(at) {
                Ok(socket) => {
                    listening.push(Listening { socket, to: SocketAddr::new(*to, publish.to) });
                }
                Err(source) if is_extra && source.kind() == io::ErrorKind::AddrNotAvailable => {}
                Err(source) if is_extra && source.raw_os_error() == Some(NO_FAMILY) => {}
                Err(source) => {
                    return Err(StartError::Listen { node: node.clone(), at, source });
                }
            }
        }
    }
    Ok(listening)
}

/// The life of the process. It must not return into the parent's code, not even by a panic.
fn live(start: GatewayForkParameters) -> ! {
    let lived = panic::catch_unwind(AssertUnwindSafe(|| {
        let begun = begin(&start);
        begun.and_then(|()| worker::run(start))
    }));
    process::exit_now(match lived {
        Ok(Ok(())) => 0,
        Ok(Err(_)) => 1,
        Err(_) => 101,
    })
}

fn begin(start: &GatewayForkParameters) -> io::Result<()> {
    process::set_parent_death_signal(Some(Signal::KILL))?;
    // Signals of a terminal are for the run, which ends this process.
    process::begin_session()?;
    process::set_name("wt-gateway")?;
    let listening = start.listening.iter().map(|it| it.socket.as_fd());
    let own = [start.control.as_fd(), start.inside.as_fd(), start.log.as_fd()];
    let kept: Vec<_> = own.into_iter().chain(listening).collect();
    descriptor::close_all_but(&kept)?;
    // Packets are not to wait for programs; only root may raise itself, and for others programs are
    // nicer.
    let own = schedule::nice().unwrap_or(0);
    let _ = schedule::set_nice(own - NICE_DISTANCE);
    // Fewer are enough for most.
    let _ = limits::raise_open_files();
    Ok(())
}

/// As far as the packet loop is from programs.
const NICE_DISTANCE: i32 = 10;
/// `EAFNOSUPPORT`.
const NO_FAMILY: i32 = rustix::io::Errno::AFNOSUPPORT.raw_os_error();
