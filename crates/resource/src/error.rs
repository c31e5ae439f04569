//! Why a run cannot have what it asks of its machine.

use windtunnel_budget::admission::ResourceShortfall;

/// Why a run cannot have what it asks of its machine; nothing has been started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResourceError {
    /// Not every disk of this machine can be divided by weight.
    #[error("{who}: `disk` cannot have a weight: {why}")]
    DiskWeight {
        /// The node, program or reservation.
        who: String,
        /// What was tried.
        why: String,
    },
    /// This machine has no mechanism for a limit.
    #[error("{who}: `{key}` needs a control group, and none can be made: {why}")]
    Limit {
        /// The node or program.
        who: String,
        /// The key of the file.
        key: &'static str,
        /// What was tried.
        why: String,
    },
    /// What a reservation has cannot be divided over machines.
    #[error("reservation {reservation}: its nodes are on several machines, which cannot share it")]
    Spread {
        /// Its name.
        reservation: String,
    },
    /// What is reserved does not fit this machine, beside what other runs have reserved.
    #[error("{}", lacking(.0))]
    Admission(Vec<ResourceShortfall>),
}

impl ResourceError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            ResourceError::DiskWeight { .. } | ResourceError::Limit { key: "disk", .. } => {
                "`windtunnel doctor` shows what limits of disks need"
            }
            ResourceError::Limit { .. } => {
                "run it as root, or as `systemd-run --user --scope -p Delegate=yes windtunnel run …`"
            }
            ResourceError::Spread { .. } => "`pin` puts its nodes on one machine",
            ResourceError::Admission(_) => {
                "`windtunnel reserve` shows who holds what; `cpu: {limit: 50%}` limits and reserves \
                 nothing"
            }
        }
    }
}

/// Each resource of which there is too little.
pub(crate) fn lacking(lacking: &[ResourceShortfall]) -> String {
    lacking.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
