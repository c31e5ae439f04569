//! What NATs of a live run do.

use serde::{Deserialize, Serialize};
use windtunnel_model::Plan;
use windtunnel_model::plan::{IpTransport, NatType};
use windtunnel_model::valid::{PlanValidationError, Validate, ensure};
use windtunnel_model::word::StateWord;

use crate::valid::{ensure_label, is_word};

/// The NAT of a router.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NatStatus {
    pub router: String,
    /// `full-cone`, `address-restricted`, `port-restricted` or `symmetric`.
    pub r#type: StateWord<NatType>,
    /// Mappings that packets have made since the run began.
    pub mappings_made: u64,
    /// Mappings that there are, forwarded ports among them.
    pub mappings_held: u64,
    /// Pairs of a mapping and a remote endpoint that there are.
    pub sessions_held: u64,
    /// Mappings, a thousand at most, by protocol and external endpoint.
    pub mappings: Vec<NatMapping>,
}

/// An internal endpoint and the external one by which it is known.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NatMapping {
    pub protocol: StateWord<IpTransport>,
    /// Address and port; of ICMP queries the identifier.
    pub internal: String,
    pub external: String,
    /// The only remote endpoint that it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// Whether the file forwards the port.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forwarded: bool,
    /// When it ends without a further packet, in nanoseconds after the run began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ns: Option<u64>,
    /// Remote endpoints.
    pub sessions: u32,
    /// Packets from inside.
    pub outbound: u64,
    /// Packets to inside.
    pub inbound: u64,
}

impl Validate for NatStatus {
    fn validate(&self) -> Result<(), PlanValidationError> {
        ensure_label(&self.router)?;
        ensure(is_word(self.r#type.as_str()), || {
            format!("router `{}` has no type of NAT", self.router)
        })?;
        ensure(self.mappings.len() <= MAPPINGS_MAX, || {
            format!("router `{}` shows {} mappings", self.router, self.mappings.len())
        })?;
        self.mappings.iter().try_for_each(NatMapping::validate)
    }
}

impl Validate for NatMapping {
    fn validate(&self) -> Result<(), PlanValidationError> {
        let ends = [Some(&self.internal), Some(&self.external), self.remote.as_ref()];
        let mut ends = ends.into_iter().flatten();
        let are = ends.all(|text| text.parse::<std::net::SocketAddrV4>().is_ok());
        ensure(are && is_word(self.protocol.as_str()), || "a mapping is of no endpoints".to_owned())
    }
}

/// NATs of a plan.
pub(crate) fn validate_all(nats: &[NatStatus]) -> Result<(), PlanValidationError> {
    ensure(nats.len() <= Plan::LINKS_MAX, || format!("{} NATs", nats.len()))?;
    nats.iter().try_for_each(NatStatus::validate)
}

/// The most mappings that are shown of a NAT.
const MAPPINGS_MAX: usize = 1000;
