//! The live page's server: runs and files over HTTP, for the browser of the user that started it.
//!
//! Promises: only what knows the token is answered, and only under a name that no foreign page can
//! have; what a page does to a run is a command of this same program, with the same result and the
//! same errors; every buffer is bounded, and a browser that is too slow misses messages and is
//! informed, while the run goes on undisturbed. Refuses: other interfaces than asked for, a shell
//! of its own, paths from the network.
//!
//! | module | what |
//! | --- | --- |
//! | [`server`] | listening, and which request goes where |
//! | [`token`] | the secret in the page's address |
//! | `guard` | which requests are answered at all |
//! | `answer` | responses and their headers |
//! | [`runs`] | the runs that there are, by their ids |
//! | `follow` | what a run does, as messages: files that grow, and the control socket |
//! | `hub` | messages for all who look at a run |
//! | `stream` | messages as server-sent events |
//! | `command` | commands of this program, with a list of those that are allowed |
//! | [`edit`] | a scenario file: reading, checking, saving, changes on disk |
//!
//! ```
//! let token = windtunnel_web::WebAccessToken::random()?;
//! assert_eq!(token.text().len(), 64);
//! assert!(token.is(token.text()) && !token.is("0"));
//! # Ok::<(), std::io::Error>(())
//! ```

mod answer;
mod command;
pub mod edit;
mod follow;
mod guard;
mod hub;
pub mod runs;
pub mod server;
mod stream;
pub mod token;

pub use runs::{LiveRunLocation, RunListEntry};
pub use server::{WebError, WebServer, WebServerContent, WebServerOptions};
pub use token::WebAccessToken;
