//! Settings of an agent from its environment: an ssh session or a step of a Slurm job.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use windtunnel_cluster::agent::speaking_to;
use windtunnel_model::Bytes;

use crate::exit::ExitCategory;
use crate::failure::VerbFailure;

/// `--advertise`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AdvertisedAddress {
    /// The address that the ssh session has reached.
    Ssh,
    /// This one; port 0 is that at which the agent listens.
    At(SocketAddr),
}

impl AdvertisedAddress {
    /// The address; `None` if it is not known.
    pub(crate) fn address(self) -> Option<SocketAddr> {
        match self {
            AdvertisedAddress::Ssh => reached_by_ssh(&variable("SSH_CONNECTION")?),
            AdvertisedAddress::At(address) => Some(address),
        }
    }
}

impl FromStr for AdvertisedAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "ssh" {
            return Ok(AdvertisedAddress::Ssh);
        }
        let address = text.parse().or_else(|_| Ok(SocketAddr::new(text.parse()?, 0)));
        address.map(AdvertisedAddress::At).map_err(|_: std::net::AddrParseError| {
            "write ADDRESS, ADDRESS:PORT or `ssh`".to_owned()
        })
    }
}

/// The resources of a step of a Slurm job on this machine: the variables of srun(1).
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Slurm {
    pub(crate) name: Option<String>,
    pub(crate) cpus: Option<u32>,
    pub(crate) memory: Option<Bytes>,
    pub(crate) advertise: Option<SocketAddr>,
}

impl Slurm {
    /// # Errors
    /// This process is not in a step.
    pub(crate) fn of_step(variable: impl Fn(&str) -> Option<String>) -> Result<Self, VerbFailure> {
        if variable("SLURM_STEP_ID").is_none() {
            let text = "--slurm: this is not a step of a Slurm job (SLURM_STEP_ID is not set)";
            return Err(VerbFailure::new(ExitCategory::Usage, text).hint("start it with `srun`"));
        }
        let number = |name: &str| variable(name).and_then(|text| text.parse::<u64>().ok());
        // No limit is written as none or as 0.
        let cpus = number("SLURM_CPUS_ON_NODE").filter(|cpus| *cpus > 0);
        let by_cpu = || Some(number("SLURM_MEM_PER_CPU")?.saturating_mul(cpus?));
        let memory = number("SLURM_MEM_PER_NODE").or_else(by_cpu).filter(|memory| *memory > 0);
        Ok(Slurm {
            name: variable("SLURMD_NODENAME"),
            cpus: cpus.and_then(|cpus| u32::try_from(cpus).ok()),
            memory: memory.map(|memory| Bytes(memory.saturating_mul(MIB))),
            advertise: variable("SLURM_LAUNCH_NODE_IPADDR").and_then(|text| towards(&text)),
        })
    }
}

/// An environment variable that is set to something.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// `client-address client-port server-address server-port` (ssh(1), `SSH_CONNECTION`).
fn reached_by_ssh(connection: &str) -> Option<SocketAddr> {
    let ip: IpAddr = connection.split_whitespace().nth(2)?.parse().ok()?;
    others_reach(ip.to_canonical())
}

/// The source address of packets from this machine to the one that has started the step: on the
/// cluster's network.
fn towards(launcher: &str) -> Option<SocketAddr> {
    let launcher: IpAddr = launcher.parse().ok()?;
    others_reach(speaking_to(SocketAddr::new(launcher, DISCARD))?)
}

/// An address that other machines reach: not a loopback address.
fn others_reach(ip: IpAddr) -> Option<SocketAddr> {
    (!ip.is_loopback()).then(|| SocketAddr::new(ip, 0))
}

const MIB: u64 = 1 << 20;
/// Nothing is sent there.
const DISCARD: u16 = 9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_needs_no_port() {
        let at = |text: &str| Ok(AdvertisedAddress::At(text.parse().unwrap()));
        assert_eq!("10.0.0.1".parse::<AdvertisedAddress>(), at("10.0.0.1:0"));
        assert_eq!("10.0.0.1:7".parse::<AdvertisedAddress>(), at("10.0.0.1:7"));
        assert_eq!("fd00::1".parse::<AdvertisedAddress>(), at("[fd00::1]:0"));
        assert_eq!("ssh".parse(), Ok(AdvertisedAddress::Ssh));
        assert!("b:7".parse::<AdvertisedAddress>().is_err());
    }

    #[test]
    fn the_address_that_ssh_has_reached_is_the_third_word_unless_it_is_loopback() {
        let at = |text: &str| reached_by_ssh(text).map(|address| address.to_string());
        assert_eq!(at("10.0.0.9 50000 10.0.0.1 22").as_deref(), Some("10.0.0.1:0"));
        assert_eq!(at("::ffff:10.0.0.9 5 ::ffff:10.0.0.1 22").as_deref(), Some("10.0.0.1:0"));
        assert_eq!((at("127.0.0.1 50000 127.0.0.1 22"), at("")), (None, None));
    }

    #[test]
    fn a_step_has_the_resources_in_its_variables() {
        let of = |all: &'static [(&str, &str)]| {
            let value = |name: &str| {
                all.iter().find(|(one, _)| *one == name).map(|(_, value)| (*value).into())
            };
            Slurm::of_step(value)
        };
        const STEP: (&str, &str) = ("SLURM_STEP_ID", "0");
        let by_node = &[
            STEP,
            ("SLURMD_NODENAME", "n2"),
            ("SLURM_CPUS_ON_NODE", "4"),
            ("SLURM_MEM_PER_NODE", "100"),
        ];
        let expected = Slurm {
            name: Some("n2".into()),
            cpus: Some(4),
            memory: Some(Bytes(100 << 20)),
            advertise: None,
        };
        assert_eq!(of(by_node).unwrap(), expected);
        let by_cpu = &[STEP, ("SLURM_CPUS_ON_NODE", "3"), ("SLURM_MEM_PER_CPU", "10")];
        assert_eq!(of(by_cpu).unwrap().memory, Some(Bytes(30 << 20)));
        let unlimited = &[STEP, ("SLURM_CPUS_ON_NODE", "3"), ("SLURM_MEM_PER_NODE", "0")];
        assert_eq!(of(unlimited).unwrap().memory, None);
        assert!(of(&[("SLURM_JOB_ID", "1")]).is_err());
    }
}
