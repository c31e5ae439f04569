//! An agent: one process for each machine of a cluster, of an ordinary user.
//!
//! One thread with one runtime. All events go through one channel to one loop,
//! which owns the mesh; answers that take longer are tasks of their own.

mod answer;
mod audit;
mod end;
pub(crate) mod exec;
mod folder;
mod lapses;
mod leavers;
mod life;
mod limits;
mod losses;
mod measure;
mod refusals;
mod responder;
mod runs;
mod seek;
mod trial;
pub(crate) mod watch;
mod worker;

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use quinn::{Endpoint, EndpointConfig, TokioRuntime};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};
use tokio::sync::mpsc::unbounded_channel;
use windtunnel_model::{Bytes, Rate, Span, Time};
use windtunnel_sys::{clock, interfaces, schedule};

pub use audit::{CommandAuditRecord, RunAuditRecord};
use folder::PartsFolder;
pub use lapses::LimitLapseLog;
use life::AgentRuntime;
pub use limits::AgentResourceLimits;
pub use worker::PartWorkerCommand;

use crate::carrier::{AgentConnectionPool, canonical};
use crate::hello::AgentHello;
use crate::key::ClusterKey;
use crate::protocol::MachineIneligibility;
use crate::protocol::run::RunSetup;
use crate::{machine, tls};

/// What an agent is made of.
#[derive(Debug, Clone)]
pub struct AgentConfiguration {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Where others reach it, with port 0 at that of `listen`; `None`: found out.
    pub advertise: Option<SocketAddr>,
    /// Agents to look for: names or addresses, with or without a port. Names that mean nothing are
    /// tried again.
    pub join: Vec<String>,
    /// The machine's name; `None`: its own.
    pub name: Option<String>,
    /// What its owner calls it.
    pub labels: BTreeSet<String>,
    /// Processors that runs may use; `None`: all.
    pub cpus: Option<u32>,
    /// Memory that runs may use; `None`: all.
    pub memory: Option<Bytes>,
    /// What the machine can send to others.
    pub uplink: Option<Rate>,
    /// How far the real-time clocks of all machines are apart at the most, as the operator knows.
    pub clock_offsets: Option<Span>,
    /// The cluster's key.
    pub key: ClusterKey,
    /// How a part of a run is started; `None`: this agent does no runs.
    pub worker: Option<PartWorkerCommand>,
    /// Finds out what nodes of a member need and this machine does not have.
    pub look: Option<fn(&RunSetup, u16) -> Vec<String>>,
    /// A run of one machine, of which a part is made and removed at the start: so others know
    /// whether this one can. `None`: that is not tried.
    pub trial: Option<RunSetup>,
    /// What runs may use.
    pub limits: AgentResourceLimits,
    /// Where parts of runs have their folders until their results are fetched. Those that are
    /// there are removed; a folder with anything else, or of another agent, is refused.
    pub folder: PathBuf,
    /// How long another machine of a run may be silent before it is lost, where the run's file says
    /// nothing.
    pub host_timeout: Span,
    /// How long the files of a part that is over wait to be fetched.
    pub keep_results: Span,
    /// For how long an agent that is to end first ends its runs, as `stop` does, and lets their
    /// results be fetched; `None`: it ends at once, and its runs with it.
    pub linger: Option<Span>,
    /// Whether the agent ends when its standard input does, once no client watches a run that has
    /// a part here; then its folder goes, too.
    pub until_stdin_closes: bool,
}

/// Why an agent could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// It cannot listen.
    #[error("cannot listen on {address}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// Parts of runs cannot have their folders there.
    #[error("cannot use the folder {path}")]
    Folder {
        /// Where.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The key cannot be used.
    #[error("cannot use the key: {0}")]
    Key(String),
    /// Another step; it is named.
    #[error("cannot {step}")]
    Step {
        /// What was tried.
        step: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl AgentError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            AgentError::Listen { source, .. } if source.kind() == io::ErrorKind::AddrInUse => Some(
                "an agent runs already, or name another port with --listen ADDRESS:PORT".into(),
            ),
            AgentError::Folder { .. } => {
                Some("name a folder that is not there yet with --folder DIR".to_owned())
            }
            AgentError::Key(_) => Some("make one with `windtunnel keygen`".to_owned()),
            _ => None,
        }
    }
}

/// A notice of an agent to its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AgentNotice {
    /// It listens, and others reach it there.
    Listening {
        /// Where it listens.
        listen: SocketAddr,
        /// Where others reach it.
        advertise: SocketAddr,
    },
    /// The name of an agent to look for means nothing so far.
    NotFound {
        /// The name.
        name: String,
        /// What the system said.
        why: String,
    },
    /// Another agent is there.
    Joined(SocketAddr),
    /// Another agent said that it ends.
    Left(SocketAddr),
    /// Another agent is lost.
    Lost(SocketAddr),
    /// A connection was refused.
    Refused {
        /// Its peer.
        from: SocketAddr,
        /// Why.
        why: String,
    },
    /// So many others were refused since, without a notice for each.
    MoreRefused {
        /// How many.
        refusals: u64,
        /// Of how many addresses, at least.
        addresses: usize,
        /// In which time.
        within: Span,
    },
    /// Another agent refuses this one. The same reason is reported once.
    RefusedBy {
        /// Where it listens.
        by: SocketAddr,
        /// Why.
        why: String,
    },
    /// A run is to have a part here.
    RunBegun {
        /// Which, and who wants it.
        begun: RunAuditRecord,
        /// It begins; or why it is refused.
        outcome: Result<(), String>,
    },
    /// A command is to be executed in a node.
    Executes(CommandAuditRecord),
    /// The files of a part were not fetched within [`AgentConfiguration::keep_results`].
    Expired {
        /// Number of the run.
        run: u64,
        /// Name of the experiment.
        name: String,
        /// They are gone; or why they could not be removed.
        removed: Result<(), String>,
    },
    /// This machine can do no part of a run.
    Unfit(MachineIneligibility),
    /// What [`AgentResourceLimits`] allow was not held, and why; runs that are here get it, too.
    NotHeld {
        /// In a sentence.
        why: String,
    },
    /// It is to end: its runs are ended, and their results can be fetched for so long.
    Lingers(Span),
    /// It ends.
    Ends,
}

impl AgentConfiguration {
    /// Runs until SIGINT, SIGTERM or SIGHUP, or as [`AgentConfiguration::until_stdin_closes`] says; then the
    /// others are notified.
    ///
    /// # Errors
    /// [`AgentError`] if it cannot start.
    pub fn run(self, notify: impl FnMut(AgentNotice)) -> Result<(), AgentError> {
        self.run_until(end::signalled, notify)
    }

    /// Runs until the future of `end` is ready; then the others are notified.
    ///
    /// # Errors
    /// [`AgentError`] if it cannot start.
    pub fn run_until<F: Future<Output = io::Result<()>>>(
        self,
        end: impl FnOnce() -> F,
        notify: impl FnMut(AgentNotice),
    ) -> Result<(), AgentError> {
        // Others take it for lost if it does not answer soon, on a machine with more work than
        // processors; a wish, not a need. Parts of runs do not keep it.
        let _ = schedule::set_slice(schedule::SHORTEST_SLICE_NS);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(step("start a runtime"))?;
        tokio::task::LocalSet::new().block_on(&runtime, self.live(end, notify))
    }

    async fn live<F: Future<Output = io::Result<()>>>(
        mut self,
        end: impl FnOnce() -> F,
        mut notify: impl FnMut(AgentNotice),
    ) -> Result<(), AgentError> {
        let listening = |source| AgentError::Listen { address: self.listen, source };
        let socket = bind(self.listen).map_err(listening)?;
        let listen = socket.local_addr().map_err(listening)?;
        let found = seek::resolve_all(&self.join, listen).await;
        let advertise = self.advertised(listen, &found.known);
        let (server, client) = tls::settings(&self.key).map_err(AgentError::Key)?;
        let runtime = Arc::new(TokioRuntime);
        let mut endpoint = Endpoint::new(EndpointConfig::default(), Some(server), socket, runtime)
            .map_err(listening)?;
        endpoint.set_default_client_config(client);
        let (events, received) = unbounded_channel();
        let host = self.name.clone().unwrap_or_else(machine::name);
        let carrier =
            AgentConnectionPool::new(endpoint.clone(), events.clone(), AgentHello::own(host));
        let has_runs = self.worker.is_some();
        // Parts get its path, and their working folder is another.
        if let Ok(folder) = std::path::absolute(&self.folder) {
            self.folder = folder;
        }
        let own = has_runs.then(|| PartsFolder::open(&self.folder)).transpose();
        let _own =
            own.map_err(|source| AgentError::Folder { path: self.folder.clone(), source })?;
        let mut life = AgentRuntime::new(&self, listen, advertise, carrier.clone(), events.clone());
        life.try_out(self.trial.as_ref(), &mut notify).await;
        tokio::task::spawn_local(carrier.accept());
        notify(AgentNotice::Listening { listen, advertise });
        for (name, why) in found.unknown.iter().cloned() {
            notify(AgentNotice::NotFound { name, why });
        }
        tokio::task::spawn_local(seek::seek(self.join.clone(), listen, found, events.clone()));
        if self.until_stdin_closes {
            end::watch_stdin(events.clone());
        }
        let ended = life.run(received, end(), &mut notify).await;
        notify(AgentNotice::Ends);
        endpoint.close(0_u32.into(), b"the agent ends");
        // A peer that does not receive it notices by its timeout.
        let _ = tokio::time::timeout(FAREWELL, endpoint.wait_idle()).await;
        if self.until_stdin_closes {
            // Another process may have put something there.
            let _ = std::fs::remove_dir(&self.folder);
        }
        ended.map_err(step("wait for signals"))
    }

    /// Where others reach this machine: the address from which it would speak to the first agent
    /// that it looks for, or to any other; or else one that it has.
    fn advertised(&self, listen: SocketAddr, known: &[SocketAddr]) -> SocketAddr {
        if let Some(mut address) = self.advertise {
            if address.port() == 0 {
                address.set_port(listen.port());
            }
            return address;
        }
        if !listen.ip().is_unspecified() {
            return canonical(listen);
        }
        let own = known.first().and_then(|to| speaking_to(*to));
        let outside = || {
            speaking_to(OUTSIDE)
                .or_else(|| listen.is_ipv6().then(|| speaking_to(OUTSIDE_V6)).flatten())
        };
        let own = own.or_else(outside).or_else(|| {
            let all = interfaces::addresses().unwrap_or_default();
            first_for_others(all.iter().map(|one| one.address), listen.ip())
        });
        SocketAddr::new(own.unwrap_or(Ipv4Addr::LOCALHOST.into()), listen.port())
    }
}

/// A socket there. At every address of IPv6 it is of both families, whatever the system's default
/// (`net.ipv6.bindv6only`); a machine without IPv6 has those of IPv4.
fn bind(listen: SocketAddr) -> io::Result<UdpSocket> {
    if !(listen.is_ipv6() && listen.ip().is_unspecified()) {
        return UdpSocket::bind(listen);
    }
    let both = || {
        let kind = (AddressFamily::INET6, SocketType::DGRAM);
        let socket = net::socket_with(kind.0, kind.1, SocketFlags::CLOEXEC, None)?;
        net::sockopt::set_ipv6_v6only(&socket, false)?;
        net::bind(&socket, &listen)?;
        rustix::io::Result::Ok(UdpSocket::from(socket))
    };
    match both() {
        Err(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL) => {
            UdpSocket::bind((Ipv4Addr::UNSPECIFIED, listen.port()))
        }
        done => Ok(done?),
    }
}

/// Where there is no route to others, as on a switch without a router: the first address of the
/// machine that others can use, IPv4 first.
fn first_for_others(all: impl Iterator<Item = IpAddr>, listen: IpAddr) -> Option<IpAddr> {
    let may = |address: &IpAddr| match address {
        IpAddr::V4(v4) => !v4.is_loopback(),
        // One of a link means nothing without the link.
        IpAddr::V6(v6) => listen.is_ipv6() && !v6.is_loopback() && !v6.is_unicast_link_local(),
    };
    let (v4, v6): (Vec<IpAddr>, Vec<IpAddr>) = all.filter(may).partition(IpAddr::is_ipv4);
    v4.into_iter().chain(v6).next()
}

/// The address from which this machine speaks to another: nothing is sent for it.
#[must_use]
pub fn speaking_to(other: SocketAddr) -> Option<IpAddr> {
    let any: IpAddr = match other {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(other).ok()?;
    Some(socket.local_addr().ok()?.ip().to_canonical())
}

fn now() -> Time {
    Time::from_nanos(clock::monotonic_ns())
}

fn step(step: &'static str) -> impl FnOnce(io::Error) -> AgentError {
    move |source| AgentError::Step { step, source }
}

/// Any address outside: documentation's own (RFC 5737).
const OUTSIDE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 9);
/// The same of IPv6 (RFC 3849).
const OUTSIDE_V6: SocketAddr =
    SocketAddr::new(IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)), 9);
const FAREWELL: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_route_the_first_address_that_others_can_use_is_advertised() {
        let first = |all: &[&str], listen: &str| {
            let all = all.iter().map(|text| text.parse().unwrap());
            first_for_others(all, listen.parse().unwrap()).map(|address| address.to_string())
        };
        let all = ["fe80::1", "fd00::1", "10.99.0.1", "192.168.7.1"];
        assert_eq!(first(&all, "0.0.0.0").as_deref(), Some("10.99.0.1"));
        assert_eq!(first(&all[..2], "::").as_deref(), Some("fd00::1"));
        assert_eq!(first(&all[..2], "0.0.0.0"), None);
        assert_eq!(first(&["fe80::1", "127.0.0.1"], "::"), None);
    }

    #[test]
    fn a_socket_of_all_addresses_takes_datagrams_of_both_families() {
        let socket = bind("[::]:0".parse().unwrap()).unwrap();
        let port = socket.local_addr().unwrap().port();
        let mut sources = vec!["127.0.0.1"];
        // A machine may be without IPv6.
        if UdpSocket::bind("[::1]:0").is_ok() {
            sources.push("::1");
        }
        for source in sources {
            let source: IpAddr = source.parse().unwrap();
            let from = UdpSocket::bind((source, 0)).unwrap();
            from.send_to(b"x", (source, port)).unwrap();
            let (_, sender) = socket.recv_from(&mut [0; 1]).unwrap();
            assert_eq!(canonical(sender), from.local_addr().unwrap());
        }
    }

    #[test]
    fn an_agent_advertises_what_it_is_given_or_the_address_on_which_it_listens() {
        let advertised = |listen: &str, advertise: Option<&str>| {
            let agent = AgentConfiguration {
                listen: listen.parse().unwrap(),
                advertise: advertise.map(|address| address.parse().unwrap()),
                join: Vec::new(),
                name: None,
                labels: BTreeSet::new(),
                cpus: None,
                memory: None,
                uplink: None,
                clock_offsets: None,
                key: ClusterKey::generate().unwrap().0,
                worker: None,
                look: None,
                trial: None,
                limits: AgentResourceLimits::default(),
                folder: PathBuf::new(),
                host_timeout: Span::from_secs(5),
                keep_results: Span::ZERO,
                linger: None,
                until_stdin_closes: false,
            };
            agent.advertised(agent.listen, &[]).to_string()
        };
        assert_eq!(advertised("0.0.0.0:80", Some("192.0.2.7:90")), "192.0.2.7:90");
        assert_eq!(advertised("0.0.0.0:80", Some("192.0.2.7:0")), "192.0.2.7:80");
        assert_eq!(advertised("10.0.0.1:80", None), "10.0.0.1:80");
        assert_eq!(advertised("[::ffff:10.0.0.1]:80", None), "10.0.0.1:80");
        assert!(advertised("0.0.0.0:80", None).ends_with(":80"));
        assert!(!advertised("0.0.0.0:80", None).starts_with("0.0.0.0"));
    }

    #[test]
    fn each_error_has_the_hint_that_helps() {
        let source = |kind: io::ErrorKind| io::Error::from(kind);
        let address = SocketAddr::from(([0, 0, 0, 0], 80));
        let used = AgentError::Listen { address, source: source(io::ErrorKind::AddrInUse) };
        assert!(used.hint().unwrap().starts_with("an agent runs already"));
        let denied =
            AgentError::Listen { address, source: source(io::ErrorKind::PermissionDenied) };
        assert_eq!(
            (denied.to_string(), denied.hint()),
            ("cannot listen on 0.0.0.0:80".into(), None)
        );
        let folder = AgentError::Folder { path: "/x".into(), source: source(io::ErrorKind::Other) };
        assert!(folder.hint().unwrap().ends_with("--folder DIR"));
        assert!(AgentError::Key("bad".into()).hint().unwrap().contains("keygen"));
    }
}
