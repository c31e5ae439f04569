//! The machine's outside as a node of the network.
//!
//! A *gateway process* stays in the machine's network namespace with the user's rights, and carries
//! what the node `internet` gets and sends: TCP by the kernel's own TCP on both sides, UDP and ICMP
//! echo packet by packet, names by the machine's resolvers, published ports the other way round.
//!
//! Promises: a connection is refused, unreachable or silent inside as it is outside; nothing of the
//! machine itself is reached without permission; what is refused is answered and counted; what
//! could not be carried is counted as lost. Refuses: rights that an ordinary program has not.
//!
//! | module | nouns |
//! | --- | --- |
//! | `process` | [`Gateway`]: the process, as its parent sees it |
//! | `settings` | [`GatewaySettings`]: what it knows from the fork |
//! | [`inside`] | what the node's init does for it |
//! | `report` | [`GatewayReport`]: what it has carried, refused and lost |
//! | `policy` (pure) | what may be reached, and what that is outside |
//! | `flows` (pure) | connections by their addresses, and how far each is |
//! | `frames` (pure) | frames in the name of addresses outside |
//! | `worker` (private) | its loop; beside it the protocols: `tcp`, `splice`, `udp`, `echo`, `names`, `publish` |
//!
//! ```
//! use windtunnel_gateway::{EgressPolicy, EgressRefusal, GatewaySettings};
//!
//! let policy = EgressPolicy::new(&GatewaySettings { allow_internet: true, ..GatewaySettings::default() });
//! let own = "127.0.0.1".parse().unwrap();
//! assert_eq!(policy.outside(own, Some(80)), Err(EgressRefusal::Machine));
//! ```

mod echo;
mod flows;
mod frames;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
pub mod inside;
mod log;
mod loopback;
mod maker;
mod message;
mod names;
mod policy;
mod poller;
mod process;
mod publish;
mod reassembly;
mod report;
mod said;
mod settings;
mod socket;
mod splice;
mod tcp;
mod udp;
mod wire_out;
mod worker;

#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::fuzz_one;
pub use log::InternetFlowKind;
pub use policy::{EgressPolicy, EgressRefusal};
pub use process::{Gateway, StartError};
pub use report::{GatewayCounterUpdate, GatewayReport};
pub use settings::{GatewaySettings, PublishedNodePort};
