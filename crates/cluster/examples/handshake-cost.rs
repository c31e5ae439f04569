//! What unfinished handshakes cost an agent: its resident memory without any, and the
//! most while strangers hold as many as it permits (if this machine is fast enough to begin them
//! within 5 s), from 16 addresses, for half a minute.
//!
//! `cargo run -p windtunnel-cluster --example handshake-cost`

use std::cell::RefCell;
use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Endpoint};
use tokio::net::UdpSocket;
use windtunnel_cluster::{AgentConfiguration, AgentNotice, ClusterKey};

fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().nth(1).as_deref() == Some(AGENT) {
        return agent();
    }
    // A process of its own, so that the memory is the agent's alone. It ends with its input.
    let mut command = Command::new(std::env::current_exe()?);
    let mut child = command.arg(AGENT).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut address = String::new();
    BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut address)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let flood = flood(address.trim().parse()?, child.id());
    let result = tokio::task::LocalSet::new().block_on(&runtime, flood);
    drop(child.stdin.take());
    child.wait()?;
    result
}

fn agent() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("handshake-cost-{}", std::process::id()));
    let agent = AgentConfiguration {
        listen: (Ipv4Addr::LOCALHOST, 0).into(),
        advertise: None,
        join: Vec::new(),
        name: None,
        labels: Default::default(),
        cpus: None,
        memory: None,
        uplink: None,
        clock_offsets: None,
        key: ClusterKey::generate()?.0,
        worker: None,
        look: None,
        trial: None,
        limits: Default::default(),
        folder,
        host_timeout: Default::default(),
        keep_results: Default::default(),
        linger: None,
        until_stdin_closes: true,
    };
    agent.run(|notice| {
        if let AgentNotice::Listening { listen, .. } = notice {
            println!("{listen}");
        }
    })?;
    Ok(())
}

/// By stranger: when the agent answered its present beginning.
struct Answered(RefCell<Vec<Option<Instant>>>);

impl Answered {
    fn record(&self, number: usize) {
        let own = &mut self.0.borrow_mut()[number];
        *own = own.filter(|at| is_held(*at)).or_else(|| Some(Instant::now()));
    }

    fn held(&self) -> usize {
        self.0.borrow().iter().flatten().filter(|at| is_held(**at)).count()
    }
}

async fn flood(agent: SocketAddr, process: u32) -> Result<(), Box<dyn Error>> {
    let before = resident_kb(process)?;
    println!("resident memory of the agent: {before} kB");
    let answered = Rc::new(Answered(RefCell::new(vec![None; STRANGERS])));
    for number in 0..STRANGERS {
        let answered = Rc::clone(&answered);
        tokio::task::spawn_local(async move {
            if let Err(error) = hold(agent, number, &answered).await {
                eprintln!("stranger {number}: {error}");
            }
        });
    }
    let until = Instant::now() + LASTING;
    // How many were under way when most were, with the memory of that moment.
    let (mut held_most, mut held_kb, mut most_kb) = (0, before, before);
    while Instant::now() < until {
        tokio::time::sleep(PAUSE).await;
        let now_kb = resident_kb(process)?;
        let held = answered.held();
        if held > held_most {
            (held_most, held_kb) = (held, now_kb);
        }
        most_kb = most_kb.max(now_kb);
    }
    let each = held_kb.saturating_sub(before) / u64::try_from(held_most.max(1))?;
    println!("with {held_most} handshakes under way: {held_kb} kB, {each} kB each");
    println!("the most within {} s: {most_kb} kB", LASTING.as_secs());
    Ok(())
}

fn is_held(answered: Instant) -> bool {
    answered.elapsed() < GIVEN_UP_AFTER
}

/// A stranger that proves its address (passes Retry packets on), and keeps all else that the agent
/// says from its QUIC, which says its beginning again and again.
async fn hold(agent: SocketAddr, number: usize, answered: &Answered) -> Result<(), Box<dyn Error>> {
    let source = Ipv4Addr::new(127, 0, 1, u8::try_from(1 + number % ADDRESSES)?);
    let front = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let back = UdpSocket::bind((IpAddr::from(source), 0)).await?;
    let mut endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into())?;
    endpoint.set_default_client_config(settings()?);
    let (mut out, mut back_in) = ([0; 2048], [0; 2048]);
    let mut client = None;
    loop {
        let connecting = endpoint.connect(front.local_addr()?, "windtunnel")?;
        tokio::pin!(connecting);
        loop {
            tokio::select! {
                // No answer for long: once more.
                _ = &mut connecting => break,
                Ok((length, from)) = front.recv_from(&mut out) => {
                    client = Some(from);
                    back.send_to(&out[..length], agent).await?;
                }
                Ok((length, _)) = back.recv_from(&mut back_in) => {
                    // A long header of type Retry (RFC 9000, 17.2.5).
                    if back_in[0] & 0xf0 != 0xf0 {
                        answered.record(number);
                    } else if let Some(client) = client {
                        front.send_to(&back_in[..length], client).await?;
                    }
                }
            }
        }
    }
}

/// Those of a stranger that knows the agents' protocol and not their key: it never comes to
/// certificates.
fn settings() -> Result<ClientConfig, Box<dyn Error>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let settings = rustls::ClientConfig::builder_with_provider(provider);
    let settings = settings.with_protocol_versions(&[&rustls::version::TLS13])?;
    let settings = settings.with_root_certificates(rustls::RootCertStore::empty());
    let mut settings = settings.with_no_client_auth();
    settings.alpn_protocols = vec![b"windtunnel-agent/2".to_vec()];
    Ok(ClientConfig::new(Arc::new(QuicClientConfig::try_from(settings)?)))
}

/// What a process has in memory now (proc_pid_status(5)).
fn resident_kb(process: u32) -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// The argument that makes this program the agent.
const AGENT: &str = "agent";
/// As many as an agent permits at a time, and fewer of each address than one address may have.
const STRANGERS: usize = 256;
const ADDRESSES: usize = 16;
/// How long an agent waits for the end of a handshake.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(5);
const LASTING: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(20);
