//! The main loop of a run: programs, events, measurements and control requests meet here. It never
//! touches a packet.
//!
//! [`RunLoop`] takes a run through its `stages`. It has a `reactor`, which is composed of parts. Each
//! of them owns its state and is tested by itself:
//!
//! | part | what it owns |
//! | --- | --- |
//! | `context` | what all parts share: the plan, `nodes` (requests to inits), `journal` (events, observer, clock) |
//! | `programs` | the supervisor, events about programs (`agenda`, and `aim` ahead of them), freezes, starts (`launcher`, `foreground`) |
//! | `network` | orders to the packet loop, what `links` are like, routes |
//! | `services` | what is known of replicas, and who looks at them |
//! | `measurements` | echo requests for expectations of paths |
//! | `capture` | captures of frames that go on |
//! | `connections`, `answers` | clients of the control socket, and what they wait for |
//! | `membership` | in a run over several machines: the agent, the other members, announcements |
//! | `punctuality` | whether what was planned for a time happened then |
//! | `end_request`, `farewell` | why the run is to end; when daemons have seen it |
//!
//! `turn` is one turn of the reactor: it does what is due, and waits. What happens is handed on by
//! its source: `replies` (nodes, filtered by `reply_filter`), `notes` (threads), `requests` (clients),
//! `agent`.
//!
//! A job that needs several parts borrows these: `orders` (what clients and other members order),
//! `services::registrar` (what follows what is seen of replicas), `limited` (limits of nodes),
//! `inspector` (what clients may see).

mod agenda;
mod agent;
mod aim;
mod answers;
pub(crate) mod capture;
mod connections;
mod context;
mod end_request;
mod farewell;
mod foreground;
mod freeze;
mod inspector;
mod interference;
mod journal;
mod launcher;
mod limited;
mod links;
mod load;
mod measurements;
mod membership;
mod nats;
mod network;
mod nodes;
mod notes;
mod orders;
mod outcome;
mod programs;
mod punctuality;
mod reactor;
mod readiness;
mod refusal;
mod replies;
mod reply_filter;
mod requests;
mod services;
mod stages;
mod state;
#[cfg(test)]
mod testing;
mod turn;
mod under_way;

pub(crate) use connections::ControlConnectionTable;
pub(crate) use membership::{AgentMembership, RunMemberTable};
pub(crate) use readiness::Readiness;
pub(crate) use refusal::RequestRefusal;
pub(crate) use services::ReplicaWatcher;
pub(crate) use state::{RunLoop, RunLoopSetup, Threads};
